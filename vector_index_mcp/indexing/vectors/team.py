"""Fetches vectors that a team shares, while the model works, which never waits for them.

Chunks without a vector are noted here as soon as they are known. A task of its own looks for their
vectors in the packs of the team's store, and puts what it finds into the embedding cache. Before a
pack is used, some of its vectors, chosen at random, are compared with those that the model makes of
the same texts here.
"""

import logging
import random
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import anyio
import anyio.to_thread

from vector_index_mcp.engine.models.cache import EmbeddingCache
from vector_index_mcp.engine.types import ModelIdentity, Vector
from vector_index_mcp.errors import (
    EmbeddingError,
    StorageError,
    counted,
    is_of_machine,
    sentence,
)
from vector_index_mcp.indexing.vectors.packs import Listed, Packs
from vector_index_mcp.objects.opening import opened

_log = logging.getLogger(__name__)

Makes = Callable[[ModelIdentity, Sequence[tuple[str, Vector]]], Awaitable[bool]]
"""Returns whether a model makes the same vectors of some texts."""

# Fewer vectors are made faster here than fetched and compared, so a saved file causes no request.
_FEWEST = 32
_MOST_WANTED = 16_384  # texts of about 1 KB each; `want` will be called again with the others
_LOOK_SECONDS = 60.0  # between two listings of the packs
_REST_SECONDS = 300.0  # until a store that failed is tried again
_SAMPLE, _LATER_SAMPLE = 8, 2  # vectors compared when a pack is read for the first time, and later
_MOST_SAMPLES = 1_000  # that wait for the model, 5 KB each

_REPORT = "please report it with the end of the log"
OFF = "switched off"
"""Begins the notice about a store that is not asked any more: it had wrong vectors, for example."""


@dataclass(frozen=True, slots=True)
class TeamPlace:
    """The place of a team's vectors."""

    uri: str
    """A folder or a bucket; empty for none."""
    folder: Path
    """The folder for the packs that are kept on this machine."""


class TeamVectors:
    """Finds vectors that are missing here in a team's store."""

    def __init__(
        self,
        place: TeamPlace | None,
        cache: EmbeddingCache,
        message_of: Callable[[StorageError], str] = str,
    ) -> None:
        """Prepare; this sends no request.

        Args:
            place: The place of the team's vectors; None if no team shares any.
            cache: Receives the vectors that are found.
            message_of: Returns the message of an error, with what to do about it.
        """
        self._message_of = message_of
        self.deliveries = 0
        """Grows whenever vectors were put into the cache."""
        self._place, self._cache = place, cache
        self._model: ModelIdentity | None = None
        self._packs: Packs | None = None
        self._wanted: dict[str, str] = {}
        self._nowhere: set[str] = set()  # hashes that no pack has
        self._used: dict[str, int] = {}  # number of vectors used, by pack; all were compared
        # Vectors that are used already, and still have to be compared with the model's.
        self._samples: list[tuple[ModelIdentity, str, Vector, Listed]] = []
        self._is_wanted = anyio.Event()
        self._last_look = -_LOOK_SECONDS
        self._rests_until = 0.0
        self._problem = ""
        self._is_off = place is None

    @property
    def notice(self) -> str:
        """The state of the team's store, for the status; empty if there is no store."""
        if self._place is None:
            return ""
        return f"{self._place.uri}: {'; '.join(filter(None, (self._so_far, self._problem)))}"

    @property
    def is_used(self) -> bool:
        """Whether there is a store, and it was not switched off."""
        return not self._is_off

    @property
    def _so_far(self) -> str:
        packs = self._packs
        if packs is None:
            return "not asked yet"
        used = counted(sum(self._used.values()), "vector")
        read = f"{used} used of {counted(len(self._used), 'pack')}"
        return f"{read} ({counted(packs.requests, 'request')}, {packs.bytes_read / 1e6:,.1f} MB)"

    def want(self, model: ModelIdentity, texts: Mapping[str, str]) -> None:
        """Have the task look for vectors of `texts`. Returns at once.

        Args:
            model: The model that made the vectors.
            texts: The texts to embed, by hash. Some are embedded here for the comparison.
        """
        now = anyio.current_time()
        if self._is_off or now < self._rests_until:
            return
        if self._model is None or model.digest != self._model.digest:
            self._model, self._packs = model, None
            self._wanted.clear()
            self._nowhere.clear()
            self._samples.clear()
        if now >= self._last_look + _LOOK_SECONDS:
            self._nowhere.clear()  # somebody may have shared these vectors meanwhile
        free = _MOST_WANTED - len(self._wanted)
        new = [key for key in texts if key not in self._nowhere and key not in self._wanted]
        self._wanted |= {key: texts[key] for key in new[:free]}
        if len(self._wanted) >= _FEWEST:
            self._is_wanted.set()

    async def at_hand(self, model: ModelIdentity, texts: Mapping[str, str]) -> dict[str, Vector]:
        """Vectors of `texts`, by hash, from packs that are kept here as a whole. Sends no request.

        Only from packs whose vectors were compared before; two more of each are compared later. The
        task looks for the vectors that this does not find, as after `want`.
        """
        found: dict[str, Vector] = {}
        packs = self._packs
        if self.is_used and packs is not None and packs.model.digest == model.digest:
            for listed in [packs.listed[name] for name in self._used if name in packs.listed]:
                lacking = [key for key in texts if key not in found]
                if len(lacking) < _FEWEST:
                    break
                new = await packs.vectors_here(listed, await packs.rows_of(listed, lacking))
                self._used[listed.name] += len(new)
                free = _MOST_SAMPLES - len(self._samples)
                for key in _some(new, min(_LATER_SAMPLE, free)):
                    self._samples.append((model, texts[key], new[key], listed))
                    self._is_wanted.set()
                found |= new
            await anyio.to_thread.run_sync(self._cache.put, model, found)
        self.want(model, {key: text for key, text in texts.items() if key not in found})
        return found

    def may_have(self, key: str) -> bool:
        """Whether the task still looks for the vector with this hash."""
        return key in self._wanted

    def forget(self, keys: Mapping[str, Vector]) -> None:
        """Stop looking for these vectors, since they are there by now."""
        for key in keys:
            self._wanted.pop(key, None)

    async def read_forever(self, makes: Makes) -> None:
        """Look for wanted vectors, until cancelled or until the store is switched off.

        Args:
            makes: Compares vectors with those that the model makes here.
        """
        while not self._is_off:
            await self._is_wanted.wait()
            self._is_wanted = anyio.Event()
            try:
                await self._compare(makes)
                if len(self._wanted) >= _FEWEST:  # else they were made or given up meanwhile
                    await self._read(makes)
            except StorageError as error:
                self._rest(self._message_of(error))
            except EmbeddingError:  # without the model no vector can be compared, so none is used
                self._wanted.clear()
            except Exception as error:  # noqa: BLE001 - the service goes on without these vectors
                if is_of_machine(error):
                    self._rest(sentence(error))
                else:
                    _log.exception("the team's vectors: an error of this program")
                    kind = type(error).__name__
                    self._switch_off(f"an error of this program ({kind}); {_REPORT}")

    def _rest(self, reason: str) -> None:
        self._rests_until = anyio.current_time() + _REST_SECONDS
        self._problem = f"left alone for {_REST_SECONDS / 60:g} min: {reason}"
        _log.warning("the team's vectors: %s", self._problem)
        self._wanted.clear()

    async def _compare(self, makes: Makes) -> None:
        """Compare the samples of vectors that `at_hand` has returned."""
        while self._samples:
            sample = self._samples[0]
            model, text, vector, listed = sample
            is_current = self._model is not None and self._model.digest == model.digest
            if is_current and not await makes(model, [(text, vector)]):
                self._switch_off(_lying(listed))
                self._samples.clear()
            elif self._samples and self._samples[0] is sample:
                # Not before: while the model is missing, it still has to be compared.
                del self._samples[0]

    async def _read(self, makes: Makes) -> None:
        packs = await self._looked()
        if self._packs is not packs:  # meanwhile, `want` was called for another model
            return
        wanted = dict(self._wanted)
        for listed in list(packs.listed.values()):
            if len(wanted) < _FEWEST:
                break
            rows = await packs.rows_of(listed, list(wanted))
            if len(rows) < _FEWEST:
                continue
            vectors = await packs.vectors(listed, rows)
            if not vectors:
                continue
            count = _LATER_SAMPLE if listed.name in self._used else _SAMPLE
            keys = _some(vectors, count)
            if not await makes(packs.model, [(wanted[key], vectors[key]) for key in keys]):
                self._switch_off(_lying(listed))
                return
            await anyio.to_thread.run_sync(self._cache.put, packs.model, vectors)
            if self._packs is not packs:
                return
            self._used[listed.name] = self._used.get(listed.name, 0) + len(vectors)
            self.deliveries += 1
            self.forget(vectors)
            wanted = {key: text for key, text in wanted.items() if key not in vectors}
        for key in wanted:
            self._wanted.pop(key, None)
        self._nowhere |= wanted.keys()

    async def _looked(self) -> Packs:
        """The packs of the model, listed again if the last listing is older than a minute."""
        assert self._place is not None
        assert self._model is not None
        packs = self._packs
        if packs is None:
            packs = self._packs = Packs(opened(self._place.uri), self._model, self._place.folder)
            self._last_look = -_LOOK_SECONDS
        now = anyio.current_time()
        if now >= self._last_look + _LOOK_SECONDS:
            self._last_look = now
            if await packs.look():
                self._nowhere.clear()
            self._problem = ""
        return packs

    def _switch_off(self, reason: str) -> None:
        self._is_off = True
        self._wanted.clear()
        self._problem = f"{OFF}: {reason}"
        _log.warning("the team's vectors: %s", self._problem)


def _lying(listed: Listed) -> str:
    return (
        f"the pack {listed.name} has vectors that differ from those that this model makes of the "
        "same texts; delete it there, and find out who has written it"
    )


def _some(vectors: Mapping[str, Vector], count: int) -> list[str]:
    """Some of the hashes, chosen at random, so that whoever writes a pack cannot foresee them."""
    return random.SystemRandom().sample(list(vectors), min(count, len(vectors)))
