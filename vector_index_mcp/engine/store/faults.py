"""Translates LanceDB's errors into ours.

LanceDB raises ValueError for arguments and schemas, and a bare RuntimeError for everything that
happens on disk, so only the text of an error shows its kind. Errors of the operating system are
certain, because the text has their number. Some words prove damage, but without them there may be
damage all the same. An error of neither kind may pass; if a second one follows, `indexing.live`
takes the index for damaged. For an index on another machine, no error proves damage: a missing file
may have been tidied up by another machine a moment ago.
"""

import errno
import re
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

import anyio

from vector_index_mcp.errors import (
    DamagedIndexError,
    LostIndexError,
    Problem,
    StorageError,
    StoreError,
)
from vector_index_mcp.objects.faults import plain, quotable, reason_in

_SYSTEM_ERROR = re.compile(r"\(os error (\d{1,5})\)|Os \{ code: (\d{1,5}),")  # told, and in panics
# Errors that may pass, or that a person can mend; the index is not at fault.
_REASONS = {
    # The system does not tell whether it is bytes or inodes.
    errno.ENOSPC: "the disk is full; free some space, or delete files if it takes no more "
    "of them (`df -i`), and indexing goes on by itself",
    errno.EROFS: "the folder is read-only",
    errno.EACCES: "no permission",
    errno.EPERM: "no permission",
    errno.EMFILE: "too many open files; raise the limit (ulimit -n) and restart",
    errno.ENFILE: "too many open files in the whole system; close some programs",
    errno.EFBIG: "a file would be too large; raise the limit (ulimit -f) and restart",
    errno.EDQUOT: "the disk quota is used up; free some space",
    errno.ENOMEM: "there is no memory left; close some programs",
    errno.EAGAIN: "the system lacks memory or processes for now; close some programs",
    errno.ESTALE: "the network drive it lies on is out of reach; connect it again",
    errno.ENOTCONN: "the drive it lies on is out of reach; connect it again",
    errno.ETIMEDOUT: "the network drive it lies on does not answer; connect it again",
    errno.EHOSTDOWN: "the network drive it lies on does not answer; connect it again",
    errno.ENODEV: "the drive it lies on is gone; connect it again",
    errno.ENXIO: "the drive it lies on is gone; connect it again",
}
_UNWRITABLE = {errno.EROFS, errno.EACCES, errno.EPERM}
_WORDS_OF_ERRORS = {
    "No space left": errno.ENOSPC,
    "Read-only file system": errno.EROFS,
    "Permission denied": errno.EACCES,
    "Too many open files": errno.EMFILE,
    "Disk quota exceeded": errno.EDQUOT,
    "Cannot allocate memory": errno.ENOMEM,
}
# LanceDB sorts rows in a folder below TMPDIR, which may go while the process lives.
_NO_TEMPORARY_FOLDER = "Failed to create temp dir"
_TEMPORARY = (
    "the folder for temporary files is gone or cannot be written; make TMPDIR name one that you "
    "may write, and restart"
)
_UNREACHED = ("error sending request", "Retry", "timed out", "connect")
_TOO_MANY, _ITS_OWN_FAULT = 429, 500  # of HTTP
# Lance refuses a commit that was begun before another writer's turn with these words.
_OUTRUN = ("Incompatible transaction", "incompatible with concurrent transaction")
_DAMAGE = (
    "Invalid range",
    "file size is too small",
    "failed to decode",
    "failed to fill whole buffer",
    "Not found",
    "was not found",
    "Invalid user input",
    "corrupt",
    "magic",
    "buffer overflow",
    "out of range",
    "is outside",
    "overflowing position",
    "Parser error",
    "Invalid UTF8 sequence",
    "panicked with message",
    "Is a directory",
)


@contextmanager
def translated(
    action: str, uri: str = "", seconds: float | None = None, known_as: str = ""
) -> Iterator[None]:
    """Turn LanceDB's errors in this context into StoreError.

    Args:
        action: What is being done, as in "writing", for the message.
        uri: Where the index lies.
        seconds: The time limit; None for an index on this machine, which always answers.
        known_as: LanceDB's name of the place, if that is not `uri`.
    """
    try:
        with nullcontext() if seconds is None else anyio.fail_after(seconds):
            yield
    except (RuntimeError, ValueError, OSError) as error:
        if seconds is not None:
            raise _of_remote(action, uri, error) from error
        text = str(error)
        number = _system_error(error, text)
        if _NO_TEMPORARY_FOLDER in text and number != errno.ENOSPC:
            raise StorageError(f"{action} the index failed: {_TEMPORARY}") from error
        if number is not None:
            raise _of_system(action, number) from error
        kind = DamagedIndexError if any(part in text for part in _DAMAGE) else StoreError
        if known_as:
            text = text.replace(known_as.strip("/"), uri.strip("/"))
        summary = plain(text)[:300]
        raise kind(f"{action} the index failed: {summary}", Problem.INDEX_DAMAGED) from error
    except BaseException as error:
        # A panic inside lance is raised in Python as a BaseException that is not an Exception.
        if type(error).__name__ in {"RustPanic", "PanicException"}:
            if (number := _system_error(error, str(error))) is not None:
                raise _of_system(action, number) from error
            words = f"{action} the index failed inside LanceDB: {error}"
            raise DamagedIndexError(words, Problem.INDEX_DAMAGED) from error
        raise


def _of_system(action: str, number: int) -> StorageError:
    problem = Problem.INDEX_UNWRITABLE if number in _UNWRITABLE else None
    return StorageError(f"{action} the index failed: {_REASONS[number]}", problem)


def _of_remote(action: str, uri: str, error: Exception) -> StoreError:
    """Return our error for an `error` of an index that is not on this machine."""
    text, failed = str(error), f"{action} the index at {uri} failed"
    if uri.startswith("db://"):
        return _of_server(failed, error)
    if isinstance(error, TimeoutError):
        return StorageError(f"{failed}: it does not answer", Problem.STORE_SILENT)
    if (reason := reason_in(text)) is not None:
        return StorageError(f"{failed}: {reason.words}", reason.problem)
    if any(sign in text for sign in _OUTRUN):
        return LostIndexError(f"{failed}: another process has become its writer meanwhile")
    return StoreError(f"{failed}: {quotable(text)}", Problem.INDEX_UNREADABLE)


def _of_server(failed: str, error: Exception) -> StoreError:
    """Return our error for an `error` of LanceDB's own server; its answers are never quoted."""
    status, text = getattr(error, "status_code", None), str(error)
    if status in {401, 403} or "api_key" in text:
        words = "it wants a key" if status is None else f"it refuses the key (HTTP {status})"
        return StorageError(f"{failed}: {words}", Problem.LANCEDB_REFUSES)
    if isinstance(error, NotImplementedError):
        return StoreError(f"{failed}: LanceDB's client does not offer that for a server")
    is_silent = isinstance(error, TimeoutError) or any(sign in text for sign in _UNREACHED)
    if is_silent or (status is not None and (status == _TOO_MANY or status >= _ITS_OWN_FAULT)):
        return StorageError(f"{failed}: it does not answer", Problem.LANCEDB_SILENT)
    reason = quotable(text) if status is None else f"HTTP {status}"
    return StoreError(f"{failed}: {reason}", Problem.INDEX_UNREADABLE)


def _system_error(error: BaseException, text: str) -> int | None:
    """Return the number of the system error behind `error`, if it is one of _REASONS."""
    numbers = [int(told or panicked) for told, panicked in _SYSTEM_ERROR.findall(text)]
    if isinstance(error, OSError) and error.errno is not None:
        numbers.append(error.errno)
    numbers += [number for words, number in _WORDS_OF_ERRORS.items() if words in text]
    return next((number for number in numbers if number in _REASONS), None)
