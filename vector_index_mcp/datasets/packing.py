"""A dataset as one file that can be sent, and such a file as a dataset.

A file from somebody else is foreign input: nothing in it leads out of its folder, nothing but plain
files comes out of it, and no size that it names is believed. The same dataset makes the same bytes.
"""

import os
import re
import shutil
import tarfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, Self

import pyarrow as pa

from vector_index_mcp.datasets import manifest
from vector_index_mcp.datasets.refusal import BadDatasetError
from vector_index_mcp.datasets.table import PART

ENDING = ".tar.zst"
# Vectors hardly become smaller, texts by four: what becomes so much larger is made to fill a disk.
_USUAL_BYTES, _MOST_TIMES = 1_000_000_000, 50
_MOST_FILES = 100_000
_AT_ONCE_BYTES = 1_000_000
_LARGEST_HEADER_BYTES = 100_000  # which tarfile holds in memory
_HEADERS = frozenset(
    {tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK}
    | {tarfile.SOLARIS_XHDTYPE}
)
_SAFE_PATH = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.\- ]*(?:/[A-Za-z0-9_][A-Za-z0-9_.\- ]*){0,8}")
_LONGEST_PATH = 400
_PART_SECONDS = 3_600  # after which nobody unpacks there any more
_CODEC = "zstd"


def pack(folder: Path, target: Path) -> int:
    """Write the dataset in `folder` into a new file; how many files it holds.

    Raises:
        BadDatasetError: If a name in it could not be unpacked again.
        OSError: If it cannot be read or written.
    """
    paths = sorted(_files(folder, ""))
    for path in paths:
        if not _is_safe(path):
            raise BadDatasetError(f"{path!r} is no name that a dataset can have; rename it")
    part = target.with_name(f"{target.name}.{os.getpid()}{PART}")
    try:
        with (
            pa.CompressedOutputStream(str(part), _CODEC) as stream,
            tarfile.open(fileobj=stream, mode="w|", format=tarfile.PAX_FORMAT) as archive,
        ):
            for path in paths:
                with (folder / path).open("rb") as file:
                    archive.addfile(_member(path, os.fstat(file.fileno()).st_size), file)
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)
    return len(paths)


def _member(path: str, size: int) -> tarfile.TarInfo:
    """A file in an archive, without when and by whom it was made."""
    member = tarfile.TarInfo(path)
    member.size, member.mode = size, 0o644
    return member


def _files(folder: Path, above: str) -> Iterator[str]:
    """The plain files in a folder and below; what is hidden is not part of a dataset."""
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.startswith("."):
                continue
            if entry.is_dir(follow_symlinks=False):
                yield from _files(folder / entry.name, f"{above}{entry.name}/")
            elif entry.is_file(follow_symlinks=False):
                yield f"{above}{entry.name}"


def add(file: Path, root: Path) -> Path:
    """Unpack a dataset beside others; the folder that is its own.

    Args:
        file: As `pack` writes it.
        root: The folder of all datasets; made if it is not there.

    Raises:
        BadDatasetError: If it is no dataset, is made to do harm, or one of its id is there.
        OSError: If it cannot be read or written.
    """
    root.mkdir(parents=True, exist_ok=True)
    part = root / f".{os.getpid()}{PART}"
    for left in root.glob(f".*{PART}"):
        if left == part or time.time() - left.lstat().st_mtime > _PART_SECONDS:
            shutil.rmtree(left, ignore_errors=True)
    try:
        part.mkdir()
        _unpack(file, part)
        found = manifest.read(part / manifest.NAME, part, part)
        folder = root / found.id
        if folder.is_dir() and not (folder / manifest.NAME).exists():
            raise BadDatasetError(f"{folder} holds other files; move them away")
        try:
            part.rename(folder)
        except OSError as error:
            raise BadDatasetError(f"Dataset '{found.id}' already exists") from error
    finally:
        shutil.rmtree(part, ignore_errors=True)
    return folder


def _unpack(file: Path, folder: Path) -> None:
    try:
        most = max(_USUAL_BYTES, _MOST_TIMES * file.stat().st_size)
        with pa.CompressedInputStream(str(file), _CODEC) as stream:
            bounded: Any = _Bounded(stream, most)
            with tarfile.open(fileobj=bounded, mode="r|", tarinfo=_Member) as archive:
                for count, member in enumerate(archive):
                    if count >= _MOST_FILES:
                        raise BadDatasetError(f"it holds more than {_MOST_FILES:,} files")
                    _take(archive, member, folder)
    except (tarfile.TarError, pa.ArrowException, ValueError, EOFError, RecursionError) as error:
        raise BadDatasetError(f"{file.name} is no packed dataset, or damaged ({error})") from error


def _take(archive: tarfile.TarFile, member: tarfile.TarInfo, folder: Path) -> None:
    if member.isdir():
        return
    # A sparse file would be as large as its header says, and not as what was sent.
    is_plain = member.type in (tarfile.REGTYPE, tarfile.AREGTYPE) and not member.issparse()
    if not is_plain or not _is_safe(member.name):
        raise BadDatasetError(f"{member.name[:200]!r} is nothing that a dataset holds")
    place = folder / member.name
    source = archive.extractfile(member)
    if source is None:
        raise BadDatasetError(f"{member.name!r} cannot be read")
    place.parent.mkdir(parents=True, exist_ok=True)
    with place.open("xb") as target:
        shutil.copyfileobj(source, target, _AT_ONCE_BYTES)


def _is_safe(path: str) -> bool:
    is_plain = len(path) <= _LONGEST_PATH and _SAFE_PATH.fullmatch(path) is not None
    return is_plain and not any(part.endswith((".", " ")) for part in path.split("/"))


class _Member(tarfile.TarInfo):
    """A member of an archive; headers that are made to fill memory are refused unread."""

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> Self:
        """See `tarfile`."""
        found = super().frombuf(buf, encoding, errors)
        if found.type in _HEADERS and found.size > _LARGEST_HEADER_BYTES:
            raise ValueError("one of its headers names a size that cannot be meant")
        return found


class _Bounded:
    """A stream that gives no more than can be meant."""

    def __init__(self, stream: IO[bytes], most: int) -> None:
        self._stream = stream
        self._most = self._left = most

    def read(self, size: int = -1) -> bytes:
        """At most `size` bytes."""
        data = self._stream.read(size)
        self._left -= len(data)
        if self._left < 0:
            raise ValueError(f"it holds more than {self._most:,} bytes")
        return data
