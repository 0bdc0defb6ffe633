"""A path to its text, or to the reason why it has none that is worth indexing."""

import hashlib
import os
import stat
from dataclasses import dataclass

from vector_index_mcp.files import beneath, conversion, secrets
from vector_index_mcp.files.folder import Folder
from vector_index_mcp.files.language import is_prose, language_of
from vector_index_mcp.files.scan import UNKNOWN, Stamp, stamp_of

# Skip reasons, as they are counted in `get_status`.
BINARY = "binary"
TOO_LARGE = "too large"
MINIFIED = "minified"
SECRET = "may hold secrets"
UNREADABLE = "unreadable"
NOT_A_FILE = "not a regular file"

_SNIFFED_BYTES = 8_192
_MOST_CONTROL_SHARE = 0.02  # of a Latin-1 text's characters
_LONG_LINE_CHARS = 1_000
_MINIFIED_FROM_CHARS = 5_000  # a short file costs nothing, whatever it looks like


@dataclass(frozen=True, slots=True)
class Text:
    """A decoded file."""

    text: str
    """With asterisks in place of credentials."""
    content_hash: str
    """SHA-256 of the file's bytes, in hex."""
    stamp: Stamp
    """As it was while the bytes were read."""
    masked: int = 0
    """How many credentials there were."""


@dataclass(frozen=True, slots=True)
class Skipped:
    """A file that is not indexed on purpose, or cannot be."""

    reason: str
    stamp: Stamp
    content_hash: str = ""


@dataclass(frozen=True, slots=True)
class Vanished:
    """There is no file any more."""


def read(folder: Folder, key: str) -> Text | Skipped | Vanished:
    """Read the file `key` in `folder`. Never raises for what a file may be."""
    if folder.reading.masks_credentials and secrets.is_secret(folder.path_of(key)):
        return _skip_unread(folder, key, SECRET)
    try:
        return _read_open_file(folder, key)
    except (FileNotFoundError, NotADirectoryError):
        return Vanished()
    except OSError as error:
        return _skip_unread(folder, key, f"{UNREADABLE} ({error.strerror})")


def is_converted(folder: Folder, key: str) -> bool:
    """Whether the text of the file `key` is another one than its bytes make."""
    return folder.reading.converts and language_of(key) in conversion.CONVERTED


def text_of(folder: Folder, key: str, *, is_masked: bool) -> str | None:
    """The text of the file `key`, to be compared with what was read before; None if it has none.

    Args:
        folder: Where it lies.
        key: The file.
        is_masked: Whether credentials are replaced by asterisks, if they are at all.
    """
    if is_masked:
        result = read(folder, key)
        return result.text if isinstance(result, Text) else None
    try:
        _, data = _bytes_of(folder, key)
    except OSError:
        return None
    return None if data is None else decode(data)


def whole_text(folder: Folder, key: str) -> str | None:
    """The text of the file `key` as it stands there; None if it has none, or holds keys.

    For whoever names a file: what is masked before it is indexed is not masked here.
    """
    is_guarded = folder.reading.masks_credentials
    if is_guarded and secrets.is_secret(folder.path_of(key)):
        return None
    text = text_of(folder, key, is_masked=False)
    return None if text is None or (is_guarded and secrets.is_key(text)) else text


def stamp_now(folder: Folder, key: str) -> Stamp:
    """The stamp of a file that could not be read; one that no file has if it is out of reach."""
    try:
        return stamp_of(beneath.status(folder.path, folder.path_of(key)))
    except (OSError, ValueError):
        return UNKNOWN


def decode(data: bytes) -> str | None:
    """The text in `data`, or None if it is none.

    UTF-8 first (strict: nothing else passes for it by chance), UTF-16 and UTF-32 by their marks,
    then Latin-1 when it has no more control characters than a text would.
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
    """Whether most of `text` stands in lines nobody wrote or reads."""
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
    """What a file is, and its bytes unless it is no regular file, or too large.

    Raises:
        OSError: If it cannot be opened or read.
    """
    # Not waited for if it has become a pipe.
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
    """UTF-16 without a mark, as some Windows tools write it: every other byte is mostly NUL."""
    even, odd = data[:_SNIFFED_BYTES:2], data[1:_SNIFFED_BYTES:2]
    for encoding, zeros, others in (("utf-16-le", odd, even), ("utf-16-be", even, odd)):
        if zeros.count(0) > 0.7 * len(zeros) and others.count(0) < 0.05 * len(others) + 1:
            try:
                text = data.decode(encoding)
            except UnicodeDecodeError:
                return None
            return None if "\0" in text else text
    return None
