"""A lease that makes one process the only writer among several machines.

The lease is an object that names its holder; it is taken and renewed with conditional writes. No
clocks are compared. The holder renews the lease, which changes the object's tag. Another process
takes it over once it has seen the same tag for longer than a holder goes on without renewing. Each
holder has a higher number than the one before.

An earlier holder may have been suspended in the middle of a write. To keep it from finishing is the
task of the code that writes (`engine.store.fencing`).
"""

import json
import secrets
import time
from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime

import anyio

from vector_index_mcp.errors import Problem, StorageError
from vector_index_mcp.objects.store import Objects

NAME = "writer.json"
_PROBE = "writer-probe-"  # names of objects that `probe` writes begin with this
_MOST_BYTES = 10_000
_LARGEST_NUMBER = 1_000_000_000
_RENEW_SECONDS = 10.0
_RETRY_SECONDS = 2.0  # after a renewal that failed
_REQUEST_SECONDS = 6.0  # for a renewal; after one that takes as long, there is time for a second
HOLD_SECONDS = 20.0
"""How long a holder goes on writing after its last successful renewal."""
PATIENCE_SECONDS = 30.0
"""How long others see no renewal before they take over; longer, so that two never write at once."""
_RELEASE_SECONDS = 2.0  # a service has 4 s to end


@dataclass(frozen=True, slots=True)
class Said:
    """The content of the object: who holds the lease."""

    number: int
    """Grows with each holder."""
    holder: str
    """The holder: its place and a random part; empty if the lease is free."""
    host: str
    """The name of the holder's machine, for people."""
    since: str
    """When it was taken, by the holder's clock, for people."""
    beat: int = 0
    """Counts the renewals, so that each one changes the tag."""


def now() -> float:
    """Return a time in seconds that runs on while the machine sleeps, if the system has one."""
    clock = getattr(time, "CLOCK_BOOTTIME", None)
    return time.monotonic() if clock is None else time.clock_gettime(clock)


class Lease:
    """The lease of one store of objects, as one process sees it."""

    def __init__(
        self,
        objects: Objects,
        host: str,
        place: str,
        *,
        clock: Callable[[], float] = now,
        sleep: Callable[[float], Awaitable[None]] = anyio.sleep,
    ) -> None:
        """Prepare; sends no request yet.

        Args:
            objects: The store with the lease.
            host: This machine's name, for people.
            place: A name for the processes of which only one can want the lease at a time. A lease
                that another one of them still holds is taken over at once.
            clock: Returns a time in seconds that passes evenly.
            sleep: Waits for a number of seconds.
        """
        self.said: Said | None = None
        """The object as it was last read or written; None before that, or if there is none."""
        self.number = 0
        """The number of the lease that this process holds or held last."""
        self._objects = objects
        self._host = host
        self._place = place
        self._clock, self._sleep = clock, sleep
        self._holder = ""
        self._tag = ""
        self._until = float("-inf")
        self._seen: tuple[str, float] = ("", 0.0)
        self._is_probed = False
        self._taken = anyio.Event()

    @property
    def is_held(self) -> bool:
        """Whether this process may write now."""
        return bool(self._holder) and self._clock() < self._until

    async def look(self) -> Said | None:
        """Read the object and return its content; None if there is none.

        Raises:
            StorageError: If the store cannot be read, or the object is not a lease.
        """
        content = await self._objects.get(NAME, _MOST_BYTES)
        self.said = None if content is None else _read(content.data, self._objects.uri)
        if content is not None and content.tag != self._seen[0]:
            self._seen = content.tag, self._clock()
        return self.said

    async def take(self) -> bool:
        """Become the holder and return True; False if another machine is the holder.

        Raises:
            StorageError: If the store cannot be written, or lets two machines write at once.
        """
        self._holder = ""
        await self.probe()
        said = await self.look()
        if said is not None and said.holder and not self._may_take_from(said):
            return False
        mine = Said(
            number=(said.number if said is not None else 0) + 1,
            holder=f"{self._place}:{secrets.token_hex(8)}",
            host=self._host,
            since=datetime.now(UTC).isoformat(timespec="seconds"),
        )
        if not await self._write(mine, self._seen[0] if said is not None else None):
            return False
        self._holder, self.number = mine.holder, mine.number
        self._taken.set()
        return True

    def _may_take_from(self, said: Said) -> bool:
        if said.holder.partition(":")[0] == self._place:
            return True
        return self._clock() - self._seen[1] >= PATIENCE_SECONDS

    async def renew_forever(self) -> None:
        """Renew the lease whenever it is held, until cancelled."""
        while True:
            await self._taken.wait()
            await self._sleep(_RENEW_SECONDS)
            while self.is_held and not await self._is_renewed():
                await self._sleep(_RETRY_SECONDS)
            if not self.is_held:
                self._holder = ""
                self._taken = anyio.Event()

    async def _is_renewed(self) -> bool:
        """Renew the lease once; False if it is unknown whether that has succeeded."""
        said = self.said
        assert said is not None, "renewed before it was taken"
        try:
            with anyio.fail_after(_REQUEST_SECONDS):
                if not await self._write(replace(said, beat=said.beat + 1), self._tag):
                    self._holder = ""
        except (StorageError, TimeoutError):
            return False
        return True

    async def _write(self, mine: Said, tag: str | None) -> bool:
        """Write the object if it still has `tag`; False if another holder has written it."""
        began, data = self._clock(), json.dumps(asdict(mine)).encode()
        if tag is None:
            new = await self._objects.put_new(NAME, data)
        else:
            new = await self._objects.replace(NAME, data, tag)
        if new is None:  # maybe this write or an earlier one was done, and its answer was lost
            content = await self._objects.get(NAME, _MOST_BYTES)
            found = None if content is None else _read(content.data, self._objects.uri)
            if (
                content is None
                or found is None
                or found.holder != mine.holder
                or content.tag == tag
            ):
                self.said = found
                return False
            new, mine = content.tag, found
        self.said, self._tag, self._until = mine, new, began + HOLD_SECONDS
        return True

    async def release(self) -> None:
        """Free the lease, so that another machine can take it at once; if that fails, it waits."""
        said, was_held = self.said, self.is_held
        self._holder = ""
        if not was_held or said is None:
            return
        free = json.dumps(asdict(replace(said, holder="", beat=said.beat + 1))).encode()
        with anyio.move_on_after(_RELEASE_SECONDS):
            try:
                await self._objects.replace(NAME, free, self._tag)
            except StorageError:
                return

    async def probe(self) -> None:
        """Make sure that the store supports conditional writes.

        Some stores ignore the conditions without an error; there, two machines would write at once.
        Others refuse what they should accept; there, no lease could be kept.

        Raises:
            StorageError: If it does not support them, or cannot be written.
        """
        if self._is_probed:
            return
        name, objects = _PROBE + secrets.token_hex(8), self._objects
        try:
            first = await objects.put_new(name, b"1")
            is_kept = await objects.put_new(name, b"2") is None
            content = await objects.get(name, _MOST_BYTES)
            is_kept = is_kept and content is not None and content.data == b"1"
            first = first or (content.tag if content is not None else "")
            if is_kept and await objects.replace(name, b"3", first) is not None:
                is_kept = await objects.replace(name, b"4", first) is None
            elif is_kept:  # refused with the right tag, or written and the answer was lost
                content = await objects.get(name, _MOST_BYTES)
                is_kept = content is not None and content.data == b"3"
        finally:
            with anyio.CancelScope(shield=True), anyio.move_on_after(_RELEASE_SECONDS):
                await _forgotten(objects, name)
        if not is_kept:
            raise StorageError(
                f"{objects.uri} ignores or refuses conditions of writes (If-None-Match, If-Match), "
                "so two machines could write there at once and lose each other's changes",
                Problem.STORE_UNCONDITIONAL,
            )
        self._is_probed = True


async def _forgotten(objects: Objects, name: str) -> None:
    """Remove the object of a probe; it stays if the key may write but not delete."""
    try:
        await objects.delete([name])
    except StorageError:
        return


def _read(data: bytes, uri: str) -> Said:
    try:
        said = Said(**json.loads(data))
        texts, numbers = (said.holder, said.host, said.since), (said.number, said.beat)
        if {type(text) for text in texts} != {str} or {type(number) for number in numbers} != {int}:
            raise TypeError("a value is of another type")
        if not 0 < said.number < _LARGEST_NUMBER:
            raise ValueError("its number is out of range")
    except (ValueError, TypeError, RecursionError) as error:
        raise StorageError(
            f"{NAME} in {uri} does not say who writes there; delete that object if nobody does"
        ) from error
    return said
