"""What a store of objects can do, wherever it lies.

A name is a path with slashes below the store's URI. An object is replaced as a whole or not at
all. Names and contents may be anybody's: who reads them checks them.
"""

import math
import re
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Protocol

import anyio

from vector_index_mcp.errors import StorageError, sentence

_SCHEME = re.compile(r"([a-z][a-z0-9+.-]*)://")
_NAME = re.compile(r"[!-~]{1,500}")  # ASCII without spaces: the same in every store
BUCKETS = frozenset({"s3", "gs", "az"})
"""The schemes of buckets, as LanceDB has them."""


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
    """Changes whenever the object is written; `replace` wants it."""


class Objects(Protocol):
    """A store of objects. Every method raises StorageError if the store refuses or is silent."""

    uri: str

    async def entries(self, prefix: str = "") -> list[Entry]:
        """All objects whose names begin with `prefix`, a folder's name and a slash."""

    async def get(self, name: str, most_bytes: int) -> Content | None:
        """An object; None if there is none. One that is larger raises StorageError."""

    async def part(self, name: str, start: int, length: int) -> bytes | None:
        """Some bytes of an object, fewer where it ends; None if there is no such object."""

    async def put(self, name: str, data: bytes) -> None:
        """Write an object, whether or not there is one."""

    async def put_new(self, name: str, data: bytes) -> str | None:
        """Write an object where there is none; its tag, or None if there is one.

        An answer that was lost on its way is asked for again, so None may also mean that this very
        call has written it: whoever needs to know reads it.
        """

    async def replace(self, name: str, data: bytes, tag: str) -> str | None:
        """Write over the object that has `tag`; the new tag, or None if it has another one by now.

        What is said of None at `put_new` is true here as well.
        """

    async def delete(self, names: Sequence[str]) -> None:
        """Remove objects; those that are not there are no error."""

    async def download(self, name: str, path: Path, most_bytes: int) -> bool:
        """Write an object into a new file; False if there is none.

        It raises StorageError also if the file cannot be written; then there is none.
        """

    async def upload(self, path: Path, name: str) -> None:
        """Write a file as an object, whether or not there is one.

        It raises StorageError also if the file cannot be read.
        """


async def at_once(jobs: Iterable[Callable[[], Awaitable[None]]], most: float = math.inf) -> None:
    """Do all `jobs`, of which each asks a store; the first that fails ends the others.

    Args:
        jobs: What is to be done; begun in this order.
        most: How many of them at the same time.

    Raises:
        Exception: Of the job that failed, as it was raised: out of a task group it would come
            wrapped.
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
    """While a file of this machine is read or written: what is wrong with it is no store's fault.

    Raises:
        StorageError: If the system refuses.
    """
    try:
        yield
    except OSError as error:
        raise StorageError(f"{path} on this machine: {sentence(error)}") from error


def scheme_of(uri: str) -> str:
    """The scheme of a URI; empty for a folder."""
    match = _SCHEME.match(uri)
    return match[1] if match else ""


def opened(uri: str) -> Objects:
    """The store at `uri`, a folder or a bucket. Asks nothing of it yet.

    Raises:
        StorageError: If there are no such stores, or what reads them is not installed.
    """
    scheme = scheme_of(uri)
    if not scheme:
        from vector_index_mcp.objects.folder import FolderObjects

        return FolderObjects(Path(uri))
    if scheme in BUCKETS:
        from vector_index_mcp.objects.bucket import BucketObjects

        return BucketObjects(uri)
    known = ", ".join(f"{name}://" for name in sorted(BUCKETS))
    raise StorageError(f"{scheme}:// is no kind of store; known are a folder, {known}")


def is_sound(name: str) -> bool:
    """Whether a name can be one of an object, and leads nowhere else. Pure."""
    parts = PurePosixPath(name).parts
    is_plain = _NAME.fullmatch(name) is not None and "\\" not in name and ":" not in name
    return is_plain and "/".join(parts) == name and ".." not in parts
