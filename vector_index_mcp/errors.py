"""The errors this package raises on purpose.

Every message may be shown to a person or an agent, and ends with what to do about it. Only errors
with a `Problem` leave that out: the `Remedies` of a tool set add it.

    VectorIndexError
    |- SettingsError         a setting or an argument is wrong; the message names it
    |  `- UnknownError       nothing has the name that was given
    |- ProjectError          this folder cannot be indexed
    |- QueryError            a query or one of its filters means nothing
    |  `- NoVectorsError     no chunk can be found by meaning yet
    |- ConfigFileError       an MCP client's configuration file cannot be read or changed
    |- BusyError             another process is this index's writer
    |- BackgroundError       the background service cannot be reached
    |  |- NoServiceError     it cannot be started, or does not answer
    |  `- ServiceEndedError  it ended before it answered
    |- StoreError            LanceDB failed; the cause is kept
    |  |- StorageError       the disk or the network fails; a later try may succeed
    |  |- DamagedIndexError  the files of the index cannot be read; a rebuild repairs it
    |  |- OtherVersionError  another version of this program wrote the index
    |  |- LostIndexError     the index's folder is gone, or was replaced by another one
    |  `- ForeignIndexError  the folder holds files that this user's program did not write
    |- ServerError           a server with a model does not answer, or answers wrongly
    `- EmbeddingError        texts cannot be embedded now
       |- WorkerDiedError    the embedding worker ended before it answered
       `- ModelNotFoundError there is no embedding model on this machine

A file that cannot be indexed raises no error: it is recorded as `files.read.Skipped`.

This module imports next to nothing, so that `sentence` works even when no file can be opened and
no memory is left.
"""

import contextlib
import errno
import os
from collections.abc import Sequence
from enum import StrEnum, auto

_MEMORY = "end other programs, or raise the limit of memory (`ulimit -v`) where it is started"
_SPACE = "free some space"
_RIGHTS = "give yourself permission, or choose another folder in the settings"
_DESCRIPTORS = "raise the limit of open files (`ulimit -n 4096`) where it is started"
_REMEDIES = {
    errno.EMFILE: _DESCRIPTORS,
    errno.ENFILE: "end other programs, or raise the system's limit of open files",
    errno.ENOSPC: _SPACE,
    errno.EDQUOT: _SPACE,
    errno.EFBIG: "raise the limit of a file's size (`ulimit -f`) where it is started",
    errno.EROFS: _RIGHTS,
    errno.EACCES: _RIGHTS,
    errno.EPERM: _RIGHTS,
    errno.ENOMEM: _MEMORY,
    errno.EAGAIN: "raise the limit of processes (`ulimit -u`) where it is started",
}
_MOST_QUOTED = 300  # characters
_OTHERWISE = "`vector-index-mcp doctor` examines the machine"
_NOWHERE = "the folder that this program was started in is gone; `cd` to another one"
# From the dynamic loader, if a library does not fit into memory; the last one is Python's own, if
# it has no room for the error either (seen with 80 MB).
_SIGNS_OF_MEMORY = (
    "cannot allocate memory",
    "failed to map",
    "error return without exception set",
)
_SIGN_OF_DESCRIPTORS = "too many open files"  # likewise, if there is no descriptor for a library
_SIGN_OF_THREADS = "can't start new thread"  # from Python, which does not say what is missing
_THREADS = (
    f"there is not enough memory, or there are too many processes ({_SIGN_OF_THREADS}); end other "
    "programs, or raise the limits of both (`ulimit -v`, `ulimit -u`) where it is started"
)
SYSTEM_ERRORS = (OSError, MemoryError, ImportError, RuntimeError)
"""What any call may raise if memory, file descriptors, threads or a library are missing."""


class Problem(StrEnum):
    """A cause whose remedy depends on the tool set: a setting, a tool or a command of it."""

    INDEX_DAMAGED = auto()
    """The index cannot be read, or fails in a way that the program does not know."""
    INDEX_UNWRITABLE = auto()
    """The index's folder cannot be created or written."""
    INDEX_UNREADABLE = auto()
    """An index that is not in a local folder cannot be read."""
    INDEX_FOREIGN = auto()
    """The index's folder holds something that this user's program did not write."""
    INDEX_OF_ANOTHER = auto()
    """The index was made of other folders."""
    INDEX_KEPT = auto()
    """Another process is the index's writer."""
    INDEX_MISSING = auto()
    """There is no index yet."""
    FAULT = auto()
    """A bug: an exception that this program does not expect."""
    STORE_SILENT = auto()
    """The object store cannot be reached, or does not answer."""
    STORE_FOLDER = auto()
    """The folder of a store does not answer, or the system refuses access to it."""
    STORE_REFUSES = auto()
    """The object store requires a key, or another key."""
    STORE_FORBIDS = auto()
    """The key for the object store does not permit the request."""
    STORE_FULL = auto()
    """There is no space left in the object store."""
    STORE_MISSING = auto()
    """There is no such bucket."""
    STORE_REGION = auto()
    """The bucket lies in another region."""
    STORE_INSECURE = auto()
    """The connection to the object store would not be encrypted."""
    STORE_UNCONDITIONAL = auto()
    """The object store ignores conditions: it overwrites an object although it must not."""
    LANCEDB_SILENT = auto()
    """LanceDB's own server cannot be reached, or does not answer."""
    LANCEDB_REFUSES = auto()
    """LanceDB's own server requires a key, or another key."""
    STORE_READER_MISSING = auto()
    """The library that reads object stores is not installed."""
    MODEL_NOWHERE = auto()
    """The embedding model is not on this machine and cannot be downloaded."""
    USUAL_MODEL_NOWHERE = auto()
    """The same of the default model, whose weights can be installed."""
    MODEL_FOLDER_MISSING = auto()
    MODEL_UNSAFE = auto()
    """The model's folder holds no safetensors weights."""
    MODEL_INVALID = auto()
    """The folder holds no sentence-transformers model."""
    MODEL_TOO_SHORT = auto()
    """The model's vectors are shorter than the setting wants."""
    MODEL_WITH_CODE = auto()
    """The model needs Python code of its own, which this program never runs."""
    MODEL_UNLOADABLE = auto()
    WORKER_NOT_STARTED = auto()
    """The system cannot start the embedding worker."""
    WORKER_DIES = auto()
    """The embedding worker dies whenever it is started."""
    SERVER_SILENT = auto()
    """The embedding server cannot be reached, or is overloaded."""
    SERVER_REFUSES = auto()
    """The embedding server requires another key."""
    SERVER_INVALID = auto()
    """The server that answers is no embedding server, or lacks the model."""


class VectorIndexError(Exception):
    """The root of the tree, raised itself where no caller needs to tell the error from others."""

    def __init__(self, message: str = "", problem: Problem | None = None) -> None:
        super().__init__(message)
        self.problem = problem
        """The cause, by which `Remedies` finds what to do; None if the message says it itself."""


class SettingsError(VectorIndexError):
    """Raised when a setting or a command-line argument is not usable."""


class UnknownError(SettingsError):
    """Raised when nothing has the given name."""


class ProjectError(VectorIndexError):
    """Raised when the given path is not a folder that may be indexed."""


class QueryError(VectorIndexError):
    """Raised when a query is empty or too long, or a filter is invalid."""


class NoVectorsError(QueryError):
    """Raised when a search by meaning is wanted, and no chunk has a vector yet."""


class ConfigFileError(VectorIndexError):
    """Raised when a client's configuration file cannot be read or safely changed."""


class BusyError(VectorIndexError):
    """Raised when only the index's writer can do this, and another process is the writer."""


class BackgroundError(VectorIndexError):
    """Raised when the project's background service cannot be started or reached."""


class NoServiceError(BackgroundError):
    """Raised when no background service can be started, or one hangs."""


class ServiceEndedError(BackgroundError):
    """Raised when the background service ends before it has answered."""


class StoreError(VectorIndexError):
    """Raised when the index cannot be read or written."""


class StorageError(StoreError):
    """Raised when the disk, the network or a permission keeps the index from being used."""


class DamagedIndexError(StoreError):
    """Raised when the index on disk is unreadable although the disk answers."""


class OtherVersionError(StoreError):
    """Raised when the index was written by a version of this program with another format."""


class LostIndexError(StoreError):
    """Raised when the index's folder was removed, moved or replaced while it was in use."""


class ForeignIndexError(StoreError):
    """Raised when the index's folder holds something that is not ours to read or change."""


class ServerError(VectorIndexError):
    """Raised when a server with a model answers wrongly or not at all; the caller names it."""

    def __init__(
        self,
        message: str,
        problem: Problem | None = None,
        *,
        status: int = 0,
        is_passing: bool = False,
        is_unreachable: bool = False,
        retry_after: float = 0.0,
    ) -> None:
        super().__init__(message, problem)
        self.status = status
        """The HTTP status; 0 if there is no answer, or one that makes no sense."""
        self.is_passing = is_passing
        """Whether the same request may succeed a little later."""
        self.is_unreachable = is_unreachable
        """Whether no connection to the server could be made."""
        self.retry_after = retry_after
        """After how many seconds the server wants the next try; 0.0 if it named no time."""


class EmbeddingError(VectorIndexError):
    """Raised when texts cannot be embedded."""


class WorkerDiedError(EmbeddingError):
    """Raised when the embedding worker ends before it answers; the texts may be innocent."""


class ModelNotFoundError(EmbeddingError):
    """Raised when the embedding model is not on this machine and cannot be downloaded."""


def first_of(error: BaseException) -> BaseException:
    """Return the first error of an exception group, however deep; any other error as it is."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def is_wrong_use(error: BaseException) -> bool:
    """Whether an argument or a setting is to blame: a command then ends with status 2, not 1."""
    if isinstance(error, NoVectorsError):  # the same query finds something later
        return False
    return isinstance(error, (SettingsError, ProjectError, QueryError))


def is_of_machine(error: BaseException) -> bool:
    """Whether the machine or one of its limits is to blame, and no bug of this program."""
    error = first_of(error)
    if isinstance(error, OSError):
        return error.errno in _REMEDIES
    words = str(error).lower()
    signs = (*_SIGNS_OF_MEMORY, _SIGN_OF_DESCRIPTORS, _SIGN_OF_THREADS)
    has_sign = any(sign in words for sign in signs)
    is_told = has_sign and isinstance(error, (*SYSTEM_ERRORS, SystemError))
    return is_told or isinstance(error, MemoryError)


def split_remedy(message: str) -> tuple[str, str]:
    """Split a message into what is wrong, and the remedy behind its last semicolon, if any.

    An earlier semicolon may be one of a file's name.
    """
    words, separator, remedy = message.rpartition("; ")
    return (words, remedy) if separator else (message, "")


def counted(number: int, noun: str) -> str:
    """Return a number with its noun: "1 file", "2 files"; not for sentences of a contract."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def listed(names: Sequence[str], most: int) -> str:
    """Return the first names as a list for a message: "a, b and more"."""
    return ", ".join(names[:most]) + (" and more" if len(names) > most else "")


def encodable(text: str) -> str:
    """Return `text` with a question mark for each character that UTF-8 cannot encode."""
    return text.encode("utf-8", "replace").decode()


def quoted(text: str) -> str:
    """Return a foreign text in quotes for a message; only its beginning if it is long."""
    return repr(text if len(text) <= _MOST_QUOTED else f"{text[:_MOST_QUOTED]}…")


def _has_working_folder() -> bool:
    with contextlib.suppress(OSError):
        return bool(os.getcwd())  # noqa: PTH109 - one call of the system
    return False


def sentence(error: BaseException) -> str:
    """What happened and what to do about it; of an exception group, its first error counts."""
    error = first_of(error)
    words = str(error) or type(error).__name__
    if _SIGN_OF_THREADS in words:
        return _THREADS
    if isinstance(error, MemoryError) or any(s in words.lower() for s in _SIGNS_OF_MEMORY):
        return f"there is not enough memory ({words}); {_MEMORY}"
    if isinstance(error, FileNotFoundError) and not (error.filename or _has_working_folder()):
        return _NOWHERE
    if isinstance(error, OSError) and error.strerror:
        what = f"{error.filename}: " if error.filename else ""
        remedy = _REMEDIES.get(error.errno or 0, _OTHERWISE)
        where = " there" if what and remedy is _SPACE else ""
        return f"{what}{error.strerror}; {remedy}{where}"
    if isinstance(error, SYSTEM_ERRORS):
        remedy = _DESCRIPTORS if _SIGN_OF_DESCRIPTORS in words.lower() else _OTHERWISE
        return f"{type(error).__name__}: {words}; {remedy}"
    return words
