"""Objects as files of a folder, such as one on a drive that a team shares."""

import contextlib
import hashlib
import os
import secrets
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import anyio
import anyio.to_thread
import filelock

from vector_index_mcp.errors import StorageError, sentence
from vector_index_mcp.objects.store import Content, Entry, is_sound, kept_here

T = TypeVar("T")
_HIDDEN = ".writing-"  # begins the names of files that are not whole yet
_LOCK = ".lock"
_LOCK_SECONDS = 10
_PIECE_BYTES = 1 << 20
_AT_ONCE = 8  # threads of their own: a drive that hangs keeps nobody else waiting


class FolderObjects:
    """The objects in a folder, which is made by the first that is written."""

    def __init__(self, folder: Path) -> None:
        self.uri = str(folder)
        self._folder = folder
        self._limit: anyio.CapacityLimiter | None = None

    async def entries(self, prefix: str = "") -> list[Entry]:
        """See `Objects`."""
        return await self._run(
            lambda: sorted(self._found(prefix), key=lambda e: e.name), is_reading=True
        )

    def _found(self, prefix: str) -> Iterator[Entry]:
        for place, folders, names in os.walk(self._folder / prefix, onerror=_raise):
            folders[:] = [name for name in folders if not Path(place, name).is_symlink()]
            for name in names:
                path = Path(place, name)
                if name.startswith(_HIDDEN) or name == _LOCK or path.is_symlink():
                    continue
                with contextlib.suppress(FileNotFoundError):  # deleted meanwhile
                    status = path.stat()
                    relative = path.relative_to(self._folder).as_posix()
                    yield Entry(relative, status.st_size, status.st_mtime)

    async def get(self, name: str, most_bytes: int) -> Content | None:
        """See `Objects`."""

        def read() -> Content | None:
            try:
                with self._path(name).open("rb") as file:
                    data = file.read(most_bytes + 1)
            except FileNotFoundError:
                return None
            if len(data) > most_bytes:
                raise too_large(self.uri, name, most_bytes)
            return Content(data, _tag_of(data))

        return await self._run(read, is_reading=True)

    async def part(self, name: str, start: int, length: int) -> bytes | None:
        """See `Objects`."""

        def read() -> bytes | None:
            try:
                with self._path(name).open("rb") as file:
                    file.seek(start)
                    return file.read(length)
            except FileNotFoundError:
                return None

        return await self._run(read, is_reading=True)

    async def put(self, name: str, data: bytes) -> None:
        """See `Objects`."""
        await self._run(lambda: self._write(name, lambda path: path.write_bytes(data)))

    async def put_new(self, name: str, data: bytes) -> str | None:
        """See `Objects`."""

        def write() -> str | None:
            with self._locked():
                if self._path(name).exists():
                    return None
                self._write(name, lambda path: path.write_bytes(data))
                return _tag_of(data)

        return await self._run(write)

    async def replace(self, name: str, data: bytes, tag: str) -> str | None:
        """See `Objects`."""

        def write() -> str | None:
            path = self._path(name)
            with self._locked():
                if not path.exists() or _tag_of(path.read_bytes()) != tag:
                    return None
                self._write(name, lambda path: path.write_bytes(data))
                return _tag_of(data)

        return await self._run(write)

    async def delete(self, names: Sequence[str]) -> None:
        """See `Objects`."""

        def remove() -> None:
            for name in names:
                self._path(name).unlink(missing_ok=True)

        await self._run(remove)

    async def download(self, name: str, path: Path, most_bytes: int) -> bool:
        """See `Objects`."""

        def copy() -> bool:
            try:
                source = self._path(name).open("rb")
            except FileNotFoundError:
                return False
            with source:
                if os.fstat(source.fileno()).st_size > most_bytes:
                    raise too_large(self.uri, name, most_bytes)
                with _new_file(path) as write:
                    while piece := source.read(_PIECE_BYTES):
                        write(piece)
            return True

        return await self._run(copy, is_reading=True)

    async def upload(self, path: Path, name: str) -> None:
        """See `Objects`."""
        await self._run(lambda: self._write(name, lambda target: shutil.copyfile(path, target)))

    def _path(self, name: str) -> Path:
        if not is_sound(name):
            raise StorageError(f"{name!a} is no name of an object")
        return self._folder / name

    def _write(self, name: str, fill: Callable[[Path], object]) -> None:
        """Make a file whole before it has its name; nobody reads half of one."""
        path = self._path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_name(f"{_HIDDEN}{secrets.token_hex(8)}")
        try:
            fill(unfinished)
            unfinished.replace(path)
        finally:
            unfinished.unlink(missing_ok=True)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        self._folder.mkdir(parents=True, exist_ok=True)
        with filelock.FileLock(self._folder / _LOCK, timeout=_LOCK_SECONDS):
            yield

    async def _run(self, work: Callable[[], T], *, is_reading: bool = False) -> T:
        """Do `work` in a thread; reading that is cancelled leaves a drive that hangs alone."""
        if self._limit is None:
            self._limit = anyio.CapacityLimiter(_AT_ONCE)
        try:
            return await anyio.to_thread.run_sync(
                work, abandon_on_cancel=is_reading, limiter=self._limit
            )
        except filelock.Timeout:
            raise StorageError(f"the store {self.uri} is locked by another machine") from None
        except OSError as error:
            raise StorageError(f"the store {self.uri}: {sentence(error)}") from error


def _raise(error: OSError) -> None:
    """Of a folder that cannot be listed, nobody must think that it is empty."""
    if not isinstance(error, FileNotFoundError):
        raise error


@contextmanager
def _new_file(path: Path) -> Iterator[Callable[[bytes], None]]:
    """What writes into a new file, which is written whole or not at all.

    Raises:
        StorageError: If there is one, or it cannot be written.
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


@contextmanager
def whole_or_nothing(path: Path) -> Iterator[None]:
    """While a file is written: it is removed again if that fails."""
    is_whole = False
    try:
        yield
        is_whole = True
    finally:
        if not is_whole:
            with contextlib.suppress(OSError):  # why it failed matters more
                path.unlink()


def too_large(uri: str, name: str, most_bytes: int) -> StorageError:
    """What to say about an object that is larger than anything of ours."""
    return StorageError(f"{name!a} in {uri} has more than {most_bytes} bytes, and is not read")


def _tag_of(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
