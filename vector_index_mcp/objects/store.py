"""The interface of a store of objects, in a folder or a bucket.

A name is a path with slashes below the store's URI. An object is replaced as a whole or not at all.
Anybody may have written names and contents, so the code that reads them must check them.
"""

import contextlib
import math
import re
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Protocol

import anyio

from vector_index_mcp.errors import StorageError, sentence

_NAME = re.compile(r"[!-~]{1,500}")  # ASCII without spaces: the same in every store


@dataclass(frozen=True, slots=True)
class Entry:
    """One object of a listing."""

    name: str
    size: int
    """In bytes."""
    modified: float
    """By the store's clock, in seconds since 1970."""


@dataclass(frozen=True, slots=True)
class Content:
    """An object that was read whole."""

    data: bytes
    tag: str
    """Changes whenever the object is written; `replace` needs it."""


class Objects(Protocol):
    """A store of objects. Every method raises StorageError if the store refuses or is silent."""

    uri: str

    async def entries(self, prefix: str = "") -> list[Entry]:
        """Return all objects whose names begin with `prefix`, a folder's name and a slash."""

    async def get(self, name: str, most_bytes: int) -> Content | None:
        """Return an object; None if there is none. Raises StorageError if it is larger."""

    async def part(self, name: str, start: int, length: int) -> bytes | None:
        """Return some bytes of an object, fewer at its end; None if there is no such object."""

    async def put(self, name: str, data: bytes) -> None:
        """Write an object; replace it if it exists."""

    async def put_new(self, name: str, data: bytes) -> str | None:
        """Write an object that does not exist; return its tag, or None if it exists.

        If the store's answer is lost, the request is repeated. So None may also mean that this very
        call has written the object; a caller who needs to know reads it.
        """

    async def replace(self, name: str, data: bytes, tag: str) -> str | None:
        """Replace the object if it has `tag`; return its new tag, or None if it has another one.

        As with `put_new`, None may also mean that this very call has written the object.
        """

    async def delete(self, names: Sequence[str]) -> None:
        """Remove objects; a missing one is no error."""

    async def download(self, name: str, path: Path, most_bytes: int) -> str | None:
        """Write an object into a new file; return its SHA-256, in hex, or None if there is none.

        Also raises StorageError if the file cannot be written; then no file is left.
        """

    async def upload(self, path: Path, name: str) -> None:
        """Write a file as an object; replace the object if it exists.

        Also raises StorageError if the file cannot be read.
        """


async def at_once(jobs: Iterable[Callable[[], Awaitable[None]]], most: float = math.inf) -> None:
    """Run all `jobs` at the same time; the first that fails cancels the others.

    Args:
        jobs: The jobs, begun in this order.
        most: How many of them run at the same time.

    Raises:
        Exception: The error of the job that failed, not wrapped in a group.
    """
    failures: list[Exception] = []
    limit = anyio.CapacityLimiter(most)

    async def run(job: Callable[[], Awaitable[None]]) -> None:
        async with limit:
            try:
                await job()
            except Exception as error:  # noqa: BLE001 - it is raised below
                failures.append(error)
                tasks.cancel_scope.cancel()

    async with anyio.create_task_group() as tasks:
        for job in jobs:
            tasks.start_soon(run, job)
    if failures:
        raise failures[0]


@contextmanager
def kept_here(path: Path) -> Iterator[None]:
    """Translate errors of a file on this machine, which are not the store's fault.

    Raises:
        StorageError: If the file cannot be read or written.
    """
    try:
        yield
    except OSError as error:
        raise StorageError(f"{path} on this machine: {sentence(error)}") from error


@contextmanager
def whole_or_nothing(path: Path) -> Iterator[None]:
    """Remove the file again if writing it in this context fails."""
    is_whole = False
    try:
        yield
        is_whole = True
    finally:
        if not is_whole:
            with contextlib.suppress(OSError):  # the first error matters more
                path.unlink()


def too_large(uri: str, name: str, most_bytes: int) -> StorageError:
    """Return the error for an object that is larger than any of ours."""
    return StorageError(f"{name!a} in {uri} has more than {most_bytes} bytes and is not read")


def is_sound(name: str) -> bool:
    """Return whether a name can be an object's, and does not lead out of the store. Pure."""
    parts = PurePosixPath(name).parts
    is_plain = _NAME.fullmatch(name) is not None and "\\" not in name and ":" not in name
    return is_plain and "/".join(parts) == name and ".." not in parts
