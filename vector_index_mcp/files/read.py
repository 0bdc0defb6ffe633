"""Reads the text of a file, or finds the reason why the file is not indexed."""

import errno
import hashlib
import os
import stat
from dataclasses import dataclass, replace

from vector_index_mcp.files import beneath, conversion, secrets
from vector_index_mcp.files.folder import Folder
from vector_index_mcp.files.language import is_prose, language_of
from vector_index_mcp.files.scan import UNKNOWN, Stamp, stamp_of

# Skip reasons; `get_status` counts the files of each.
BINARY = "binary"
TOO_LARGE = "too large"
MINIFIED = "minified"
SECRET = "may hold secrets"
UNREADABLE = "unreadable"
NOT_A_FILE = "not a regular file"

# After these errors, only a change of the file makes another try worthwhile. After others, such as
# those of a drive, the next look tries again; on Windows also if a program has locked the file.
_FORBIDDEN = frozenset({errno.EACCES, errno.EPERM} if os.name == "posix" else ())
_LASTING = _FORBIDDEN | {errno.ELOOP, errno.ENAMETOOLONG, errno.ENXIO}
_SNIFFED_BYTES = 8_192
_MOST_CONTROL_SHARE = 0.02  # of a Latin-1 text's characters
_LONG_LINE_CHARS = 1_000
_MINIFIED_FROM_CHARS = 5_000  # a shorter file costs little, even if it is minified


@dataclass(frozen=True, slots=True)
class Text:
    """A decoded file."""

    text: str
    """The text, with asterisks in place of credentials."""
    content_hash: str
    """SHA-256 of the file's bytes, in hex."""
    stamp: Stamp
    """The file's stamp while the bytes were read."""
    masked: int = 0
    """How many credentials were masked."""


@dataclass(frozen=True, slots=True)
class Skipped:
    """A file that is not indexed on purpose, or cannot be."""

    reason: str
    stamp: Stamp
    content_hash: str = ""


@dataclass(frozen=True, slots=True)
class Vanished:
    """The file no longer exists."""


def read(folder: Folder, key: str) -> Text | Skipped | Vanished:
    """Read the file `key` in `folder`. Never raises, whatever the file is."""
    if folder.reading.masks_credentials and secrets.is_secret(folder.path_of(key)):
        return _skip_unread(folder, key, SECRET)
    try:
        return _read_open_file(folder, key)
    except (FileNotFoundError, NotADirectoryError):
        return Vanished()
    except OSError as error:
        reason = f"{UNREADABLE} ({error.strerror})"
        if error.errno in _LASTING:
            return _skip_unread(folder, key, reason)
        return Skipped(reason, UNKNOWN)


def is_converted(folder: Folder, key: str) -> bool:
    """Return whether the text of the file `key` is converted from another format."""
    return folder.reading.converts and language_of(key) in conversion.CONVERTED


def text_of(folder: Folder, key: str, *, is_masked: bool) -> str | None:
    """Return the text of the file `key` as it is now, to compare it with the index; None if none.

    Args:
        folder: The folder of the file.
        key: The file.
        is_masked: Whether to mask credentials, if the folder's settings mask them.
    """
    if is_masked:
        result = read(folder, key)
        return result.text if isinstance(result, Text) else None
    try:
        _, data = _bytes_of(folder, key)
    except OSError:
        return None
    return None if data is None else decode(data)


def raw_bytes(folder: Folder, key: str, most_bytes: int) -> bytes:
    """Return the bytes of the file `key` as it is now; none if it is larger, or cannot be read."""
    how = replace(folder.reading, max_file_bytes=most_bytes)
    try:
        return _bytes_of(replace(folder, reading=how), key)[1] or b""
    except OSError:
        return b""


def whole_text(folder: Folder, key: str) -> str | None:
    """Return the unmasked text of the file `key`; None if it has no text, or holds keys.

    For a user who has named the file. The index has masked its credentials, this text has not.
    """
    is_guarded = folder.reading.masks_credentials
    if is_guarded and secrets.is_secret(folder.path_of(key)):
        return None
    text = text_of(folder, key, is_masked=False)
    return None if text is None or (is_guarded and secrets.is_key(text)) else text


def stamp_now(folder: Folder, key: str) -> Stamp:
    """Return the stamp of a file as it is now; UNKNOWN if it is gone or out of reach."""
    try:
        return stamp_of(beneath.status(folder.path, folder.path_of(key)))
    except (OSError, ValueError):
        return UNKNOWN


def decode(data: bytes) -> str | None:
    """Return the text in `data`; None if it is binary.

    UTF-16 and UTF-32 are recognised by their byte order marks. Everything else is tried as strict
    UTF-8, which no other encoding fits by chance; then as Latin-1, if it has no more control
    characters than a text would.
    """
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            try:
                return data[len(mark) :].decode(encoding)
            except UnicodeDecodeError:
                return None
    if b"\0" in data[:_SNIFFED_BYTES]:
        return _unmarked_utf16(data)
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        pass
    sample = data[:_SNIFFED_BYTES]
    control = sum(byte < 32 and byte not in b"\t\n\r\f\x1b" or 127 <= byte < 160 for byte in sample)
    return data.decode("latin-1") if control <= _MOST_CONTROL_SHARE * len(sample) else None


_MARKS = (
    (b"\xef\xbb\xbf", "utf-8"),
    (b"\xff\xfe\0\0", "utf-32-le"),
    (b"\0\0\xfe\xff", "utf-32-be"),
    (b"\xff\xfe", "utf-16-le"),
    (b"\xfe\xff", "utf-16-be"),
)


def is_minified(text: str, language: str) -> bool:
    """Return whether most of `text` is in lines of more than 1,000 characters."""
    if len(text) < _MINIFIED_FROM_CHARS or is_prose(language) or language == "notebook":
        return False
    long_lines = sum(len(line) for line in text.split("\n") if len(line) > _LONG_LINE_CHARS)
    return 2 * long_lines > len(text)


def _read_open_file(folder: Folder, key: str) -> Text | Skipped:
    status, data = _bytes_of(folder, key)
    stamp = stamp_of(status)
    if data is None:
        return Skipped(TOO_LARGE if stat.S_ISREG(status.st_mode) else NOT_A_FILE, stamp)
    content_hash = hashlib.sha256(data).hexdigest()
    how = folder.reading
    if is_converted(folder, key):
        try:
            text: str | None = conversion.converted(data, language_of(key))
        except conversion.ConversionError as error:
            return Skipped(str(error), stamp, content_hash)
    else:
        text = decode(data)
    if text is None:
        return Skipped(BINARY, stamp, content_hash)
    if how.masks_credentials and secrets.is_key(text):
        return Skipped(SECRET, stamp, content_hash)
    if how.skips_minified and is_minified(text, language_of(key)):
        return Skipped(MINIFIED, stamp, content_hash)
    count = 0
    if how.masks_credentials:
        text, count = secrets.masked(text)
    return Text(text, content_hash, stamp, count)


def _bytes_of(folder: Folder, key: str) -> tuple[os.stat_result, bytes | None]:
    """Return the status of a file and its bytes; no bytes if it is not a regular file or too large.

    Raises:
        OSError: If it cannot be opened or read.
    """
    # O_NONBLOCK: opening must not wait if the file has become a pipe.
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    most = folder.reading.max_file_bytes
    descriptor = beneath.open_file(folder.path, folder.path_of(key), flags)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_size > most:
            return status, None
        with open(descriptor, "rb", closefd=False) as file:
            data = file.read(most + 1)
    finally:
        os.close(descriptor)
    return status, data if len(data) <= most else None  # it may have grown meanwhile


def _skip_unread(folder: Folder, key: str, reason: str) -> Skipped | Vanished:
    try:
        return Skipped(reason, stamp_of(beneath.status(folder.path, folder.path_of(key))))
    except (FileNotFoundError, NotADirectoryError):
        return Vanished()
    except OSError:
        return Skipped(reason, UNKNOWN)


def _unmarked_utf16(data: bytes) -> str | None:
    """Decode UTF-16 without a mark, as some Windows tools write it; None if it is something else.

    In such a text, most of every other byte is NUL.
    """
    even, odd = data[:_SNIFFED_BYTES:2], data[1:_SNIFFED_BYTES:2]
    for encoding, zeros, others in (("utf-16-le", odd, even), ("utf-16-be", even, odd)):
        if zeros.count(0) > 0.7 * len(zeros) and others.count(0) < 0.05 * len(others) + 1:
            try:
                text = data.decode(encoding)
            except UnicodeDecodeError:
                return None
            return None if "\0" in text else text
    return None
