"""Objects as files in a folder, for example on a drive that a team shares.

Anybody may have written these files, and the drive may hang: see `within` and `detached`.
"""

import contextlib
import hashlib
import os
import re
import secrets
import stat
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO, TypeVar

import filelock

from vector_index_mcp.errors import Problem, StorageError
from vector_index_mcp.objects import within
from vector_index_mcp.objects.store import (
    Content,
    Entry,
    is_sound,
    kept_here,
    too_large,
    whole_or_nothing,
)
from vector_index_mcp.processes.detached import Detached, NoThreadError, Work

T = TypeVar("T")
_HIDDEN = ".writing-"  # names of unfinished files begin with this
_UNFINISHED = re.compile(re.escape(_HIDDEN) + "[0-9a-f]{16}")
_LEFT_OVER_SECONDS = 86_400.0  # after the last write; the process that wrote the file is gone
_LOCK = ".lock"
_LOCK_SECONDS = 10
_SECONDS = 20.0  # for one step: an entry of a listing, or a piece of a file
_ENDING_SECONDS = 0.5  # for an abandoned call to remove an unfinished file
_PIECE_BYTES = 1 << 20
_MOST_ENTRIES = 500_000
_MOST_REPLACED_BYTES = 1 << 26  # of an object read to compare its tag; documents have some kB
_AT_ONCE = 8  # threads; they are ours alone, so a drive that hangs blocks nobody else


class FolderObjects:
    """The objects in a folder; writing the first object makes the folder."""

    def __init__(self, folder: Path) -> None:
        self.uri = str(folder)
        self._folder = folder
        self._threads = Detached(_AT_ONCE, "store", ending_seconds=_ENDING_SECONDS)

    async def entries(self, prefix: str = "") -> list[Entry]:
        """See `Objects`."""

        def find(work: Work[list[Entry]]) -> list[Entry]:
            within.refuse_links(self._folder, PurePosixPath(prefix).parts)
            found = []
            for entry in self._found(prefix):
                work.step()
                found.append(entry)
                if len(found) > _MOST_ENTRIES:
                    raise StorageError(f"{self.uri} contains more than {_MOST_ENTRIES} objects")
            return sorted(found, key=lambda entry: entry.name)

        return await self._run(find)

    def _found(self, prefix: str) -> Iterator[Entry]:
        for place, _, names in within.walk(self._folder / prefix, _raise):
            for name in names:
                path = Path(place, name)
                with contextlib.suppress(FileNotFoundError):  # deleted meanwhile
                    status = path.lstat()
                    if not stat.S_ISREG(status.st_mode) or name == _LOCK:
                        continue
                    if name.startswith(_HIDDEN):
                        _remove_left_over(path, status)
                        continue
                    relative = path.relative_to(self._folder).as_posix()
                    yield Entry(relative, status.st_size, status.st_mtime)

    async def get(self, name: str, most_bytes: int) -> Content | None:
        """See `Objects`."""

        def read(work: Work[Content | None]) -> Content | None:
            with self._opened(name) as file:
                if file is None:
                    return None
                data = b"".join(self._pieces_of(name, file, most_bytes, work))
            return Content(data, _tag_of([data]))

        return await self._run(read)

    async def part(self, name: str, start: int, length: int) -> bytes | None:
        """See `Objects`."""

        def read(work: Work[bytes | None]) -> bytes | None:
            with self._opened(name) as file:
                if file is None:
                    return None
                file.seek(start)
                found = bytearray()
                while piece := file.read(min(_PIECE_BYTES, length - len(found))):
                    work.step()
                    found += piece
                return bytes(found)

        return await self._run(read)

    async def put(self, name: str, data: bytes) -> None:
        """See `Objects`."""
        await self._run(lambda work: self._write(name, _pieces_in(data), work))

    async def put_new(self, name: str, data: bytes) -> str | None:
        """See `Objects`."""

        def write(work: Work[str | None]) -> str | None:
            path = self._path(name)
            with self._locked():
                if os.path.lexists(path):
                    return None
                self._write(name, _pieces_in(data), work)
                return _tag_of([data])

        return await self._run(write)

    async def replace(self, name: str, data: bytes, tag: str) -> str | None:
        """See `Objects`."""

        def write(work: Work[str | None]) -> str | None:
            with self._locked():
                with self._opened(name) as file:
                    if file is None:
                        return None
                    before = self._pieces_of(name, file, _MOST_REPLACED_BYTES, work)
                    if _tag_of(before) != tag:
                        return None
                self._write(name, _pieces_in(data), work)
                return _tag_of([data])

        return await self._run(write)

    async def delete(self, names: Sequence[str]) -> None:
        """See `Objects`."""

        def remove(work: Work[None]) -> None:
            for name in names:
                work.step()
                path = self._path(name)
                within.refuse_links(self._folder, PurePosixPath(name).parts[:-1])
                path.unlink(missing_ok=True)

        await self._run(remove)

    async def download(self, name: str, path: Path, most_bytes: int) -> str | None:
        """See `Objects`."""

        def copy(work: Work[str | None]) -> str | None:
            digest = hashlib.sha256()
            with self._opened(name) as file:
                if file is None:
                    return None
                if os.fstat(file.fileno()).st_size > most_bytes:
                    raise too_large(self.uri, name, most_bytes)
                with _new_file(path) as write:
                    for piece in self._pieces_of(name, file, most_bytes, work):
                        write(piece)
                        digest.update(piece)
            return digest.hexdigest()

        return await self._run(copy)

    async def upload(self, path: Path, name: str) -> None:
        """See `Objects`."""
        await self._run(lambda work: self._write(name, _pieces_at(path), work))

    def _path(self, name: str) -> Path:
        if not is_sound(name):
            raise StorageError(f"{name!a} is not a valid name of an object")
        return self._folder / name

    @contextmanager
    def _opened(self, name: str) -> Iterator[BinaryIO | None]:
        """Open an object for reading; None if there is no such object."""
        self._path(name)
        try:
            file = within.opened(self._folder, name)
        except FileNotFoundError:
            yield None
            return
        with file:
            yield file

    def _pieces_of(
        self, name: str, file: BinaryIO, most_bytes: int, work: Work[Any]
    ) -> Iterator[bytes]:
        """Yield the content of an object; raise if it has more bytes, as it may still grow."""
        left = most_bytes
        while piece := file.read(min(_PIECE_BYTES, left + 1)):
            work.step()
            left -= len(piece)
            if left < 0:
                raise too_large(self.uri, name, most_bytes)
            yield piece

    def _write(self, name: str, pieces: Iterable[bytes], work: Work[Any]) -> None:
        """Write a file under another name and then rename it, so that nobody reads half of it."""
        path = self._path(name)
        within.refuse_links(self._folder, PurePosixPath(name).parts[:-1])
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_name(f"{_HIDDEN}{secrets.token_hex(8)}")
        with whole_or_nothing(unfinished):
            with unfinished.open("xb") as file:
                for piece in pieces:
                    work.step()
                    file.write(piece)
            work.step()
            unfinished.replace(path)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        self._folder.mkdir(parents=True, exist_ok=True)
        with filelock.FileLock(self._folder / _LOCK, timeout=_LOCK_SECONDS):
            yield

    async def _run(self, do: Callable[[Work[T]], T]) -> T:
        """Run a call that may hang, and translate its errors; if cancelled, abandon it."""
        try:
            return await self._threads.run(do, _SECONDS)
        except filelock.Timeout:
            raise StorageError(f"the store {self.uri} is locked by another machine") from None
        except NoThreadError as error:
            raise StorageError(f"the store {self.uri}: {error}") from error
        except TimeoutError as error:
            raise self._fault("it does not answer") from error
        except OSError as error:
            raise self._fault(error.strerror or str(error)) from error

    def _fault(self, words: str) -> StorageError:
        return StorageError(f"the store {self.uri}: {words}", Problem.STORE_FOLDER)


def _remove_left_over(path: Path, status: os.stat_result) -> None:
    """Remove an old unfinished file, whose writer was killed; ignore errors."""
    is_old = status.st_mtime < time.time() - _LEFT_OVER_SECONDS
    if is_old and _UNFINISHED.fullmatch(path.name):
        with contextlib.suppress(OSError):
            path.unlink()


def _pieces_in(data: bytes) -> Iterator[bytes]:
    return (data[at : at + _PIECE_BYTES] for at in range(0, len(data), _PIECE_BYTES))


def _pieces_at(path: Path) -> Iterator[bytes]:
    """Yield the content of a file on this machine.

    Raises:
        StorageError: If the file cannot be read.
    """
    with kept_here(path):
        file = path.open("rb")
    with file:
        while True:
            with kept_here(path):
                piece = file.read(_PIECE_BYTES)
            if not piece:
                return
            yield piece


def _raise(error: OSError) -> None:
    """Raise the error, so that a folder that cannot be listed is not taken for an empty one."""
    if not isinstance(error, FileNotFoundError):
        raise error


@contextmanager
def _new_file(path: Path) -> Iterator[Callable[[bytes], None]]:
    """Open a new file and yield a function that writes; remove it if it is not written whole.

    Raises:
        StorageError: If the file exists already or cannot be written.
    """
    with kept_here(path):
        file = path.open("xb")

    def write(piece: bytes) -> None:
        with kept_here(path):
            file.write(piece)

    with whole_or_nothing(path):
        try:
            yield write
        finally:
            with kept_here(path):
                file.close()


def _tag_of(pieces: Iterable[bytes]) -> str:
    digest = hashlib.sha256()
    for piece in pieces:
        digest.update(piece)
    return digest.hexdigest()
