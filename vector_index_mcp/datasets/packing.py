"""Packs a dataset into one file that can be sent, and unpacks such a file.

A file from somebody else is foreign input: only plain files inside the new folder are unpacked, and
no size in a header is trusted. Each file has its checksum in its header, where other programs pass
over it. Packing the same dataset again gives the same bytes.
"""

import hashlib
import os
import re
import shlex
import shutil
import tarfile
from collections.abc import Iterator
from contextlib import suppress
from io import BufferedReader
from pathlib import Path
from typing import IO, Any, Self

import pyarrow as pa

from vector_index_mcp.datasets import manifest
from vector_index_mcp.datasets.refusal import BadDatasetError
from vector_index_mcp.datasets.table import PART, is_left
from vector_index_mcp.files.plain import opened

ENDING = ".tar.zst"
_SUM = "VECTOR_INDEX.sha256"  # in the header of a file; POSIX wants the vendor's name first
# Vectors hardly compress, and texts about four times: a file that grows more when it is unpacked
# was made to fill the disk.
_USUAL_BYTES, _MOST_TIMES = 1_000_000_000, 50
_MOST_FILES = 100_000
_AT_ONCE_BYTES = 1_000_000
_LARGEST_HEADER_BYTES = 100_000  # of a tar header, which tarfile reads into memory
_HEADERS = frozenset(
    {tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK}
    | {tarfile.SOLARIS_XHDTYPE}
)
_SAFE_PATH = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.\- ]*(?:/[A-Za-z0-9_][A-Za-z0-9_.\- ]*){0,8}")
_LONGEST_PATH = 400
_OURS = re.compile(rf"\.[0-9]+{re.escape(PART)}")  # temporary folders of `add`, not of `make`
_CODEC = "zstd"
_DAMAGE = (tarfile.TarError, pa.ArrowException, ValueError, EOFError, RecursionError)


def pack(folder: Path, target: Path) -> int:
    """Write the dataset in `folder` to the file `target`; return the number of files packed.

    Raises:
        BadDatasetError: If a file's name could not be unpacked again, or a file is being changed.
        OSError: If a file cannot be read or written.
    """
    paths = sorted(_files(folder, ""))
    for path in paths:
        if not _is_safe(path):
            raise BadDatasetError(
                f"{path!r} is not a valid file name in a dataset; rename the file"
            )
    part = target.with_name(f"{target.name}.{os.getpid()}{PART}")
    try:
        with (
            pa.CompressedOutputStream(str(part), _CODEC) as stream,
            tarfile.open(fileobj=stream, mode="w|", format=tarfile.PAX_FORMAT) as archive,
        ):
            for path in paths:
                with opened(folder / path) as file:
                    _add(archive, path, file)
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)
    return len(paths)


def _add(archive: tarfile.TarFile, path: str, file: BufferedReader) -> None:
    """Add a file, without its time and owner.

    Raises:
        BadDatasetError: If somebody changes it meanwhile.
    """
    member = tarfile.TarInfo(path)
    member.mode = 0o644
    sum_ = hashlib.file_digest(file, "sha256").hexdigest()
    member.size = file.tell()
    member.pax_headers = {_SUM: sum_}
    file.seek(0)
    read = _Summed(file)
    archive.addfile(member, read)
    if read.sum != sum_ or file.read(1):
        raise BadDatasetError(f"{path} is being changed; pack the dataset when nobody writes it")


def _files(folder: Path, above: str) -> Iterator[str]:
    """Yield the paths of the plain files below a folder, without hidden files and folders."""
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.startswith("."):
                continue
            if entry.is_dir(follow_symlinks=False):
                yield from _files(folder / entry.name, f"{above}{entry.name}/")
            elif entry.is_file(follow_symlinks=False):
                yield f"{above}{entry.name}"


def add(file: Path, root: Path) -> Path:
    """Unpack a dataset beside others; return its folder.

    Args:
        file: A file that `pack` has written.
        root: The folder of all datasets; created if it is missing.

    Raises:
        BadDatasetError: If the file is no dataset, is harmful, or has the id of another dataset.
        OSError: If a file cannot be read or written.
    """
    root.mkdir(parents=True, exist_ok=True)
    part = root / f".{os.getpid()}{PART}"
    for left in root.glob(f".*{PART}"):
        if not _OURS.fullmatch(left.name):
            continue
        with suppress(FileNotFoundError):  # another process may remove it, too
            if left == part or is_left(left):
                shutil.rmtree(left, ignore_errors=True)
    try:
        part.mkdir()
        _unpack(file, part)
        found = manifest.read(part / manifest.NAME, part, part)
        folder = root / found.id
        is_taken = (folder / manifest.NAME).exists()
        if folder.is_dir() and not is_taken and any(folder.iterdir()):
            raise BadDatasetError(f"{folder} holds other files; move them away")
        try:
            part.rename(folder)
        except OSError as error:
            if not is_taken and not (folder / manifest.NAME).exists():
                raise
            raise BadDatasetError(
                f"Dataset '{found.id}' already exists; to replace it, delete it first: "
                f"vector-index-mcp datasets delete {found.id} --output {shlex.quote(str(root))}"
            ) from error
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
    except (*_DAMAGE, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise  # of the system; a damaged stream has no number
        raise BadDatasetError(
            f"{file.name} is not a packed dataset, or is damaged ({error})"
        ) from error


def _take(archive: tarfile.TarFile, member: tarfile.TarInfo, folder: Path) -> None:
    if member.isdir():
        return
    # A sparse file is refused: its header may name any size, however little was sent.
    is_plain = member.type in (tarfile.REGTYPE, tarfile.AREGTYPE) and not member.issparse()
    if not is_plain or not _is_safe(member.name):
        raise BadDatasetError(f"{member.name[:200]!r} is nothing that a dataset may contain")
    place = folder / member.name
    source = archive.extractfile(member)
    if source is None:
        raise BadDatasetError(f"{member.name!r} cannot be read")
    place.parent.mkdir(parents=True, exist_ok=True)
    read = _Summed(source)
    with place.open("xb") as target:
        shutil.copyfileobj(read, target, _AT_ONCE_BYTES)
    # A file that an older version has packed, or somebody by hand, has none.
    if member.pax_headers.get(_SUM, read.sum) != read.sum:
        raise ValueError(f"{member.name} does not have the checksum that was packed with it")


def _is_safe(path: str) -> bool:
    is_plain = len(path) <= _LONGEST_PATH and _SAFE_PATH.fullmatch(path) is not None
    return is_plain and not any(part.endswith((".", " ")) for part in path.split("/"))


class _Member(tarfile.TarInfo):
    """A member of an archive; a header that is too large for memory is refused before reading."""

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> Self:
        """See `tarfile`."""
        found = super().frombuf(buf, encoding, errors)
        if found.type in _HEADERS and found.size > _LARGEST_HEADER_BYTES:
            raise ValueError("one of its headers is too large")
        return found


class _Summed:
    """A file whose checksum is computed while it is read."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._sum = hashlib.sha256()

    def read(self, size: int = -1) -> bytes:
        """Read at most `size` bytes."""
        data = self._file.read(size)
        self._sum.update(data)
        return data

    @property
    def sum(self) -> str:
        """The SHA-256 of what was read so far, in hexadecimal digits."""
        return self._sum.hexdigest()


class _Bounded:
    """A stream that raises ValueError after `most` bytes."""

    def __init__(self, stream: IO[bytes], most: int) -> None:
        self._stream = stream
        self._most = self._left = most

    def read(self, size: int = -1) -> bytes:
        """Read at most `size` bytes."""
        data = self._stream.read(size)
        self._left -= len(data)
        if self._left < 0:
            raise ValueError(f"it holds more than {self._most:,} bytes")
        return data
