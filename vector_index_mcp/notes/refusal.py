"""The exception for a call that cannot be answered, with the contract's error codes."""

import logging
from enum import StrEnum, auto
from typing import Any

from vector_index_mcp.errors import VectorIndexError, sentence

_log = logging.getLogger(__name__)


class Code(StrEnum):
    """The contract's error codes."""

    @staticmethod
    def _generate_next_value_(name: str, *_: Any) -> str:
        return name

    UNKNOWN_ERROR = auto()
    """An unexpected error."""
    INTERNAL_ERROR = auto()
    """The operating system reports an error: no memory, no process, no thread."""
    INVALID_INPUT = auto()
    """The arguments contradict each other, or the given revision is not the current one."""
    INVALID_PROJECT_ID = auto()
    """The project's entry in `index.json` names no usable folder of the store."""
    INVALID_FILENAME = auto()
    """No file can have this name."""
    INVALID_PATH = auto()
    """The path contains a link, or a file where a folder is needed."""
    INVALID_CONTENT = auto()
    """The text cannot be stored, or the stored file cannot be read as text."""
    NOT_FOUND = auto()
    """No text of the notes ever had the given revision."""
    PROJECT_NOT_FOUND = auto()
    DOCUMENT_NOT_FOUND = auto()
    CHAPTER_NOT_FOUND = auto()
    SECTION_NOT_FOUND = auto()
    FILE_SYSTEM_ERROR = auto()
    ACCESS_DENIED = auto()
    FILE_ALREADY_EXISTS = auto()
    """A file, a section or a chapter with this name exists."""
    PROJECT_DELETE_FAILED = auto()
    GIT_ERROR = auto()
    """The history cannot be written: git is missing, or the repository is in no state for it."""
    GIT_COMMAND_FAILED = auto()
    """A git command failed."""
    SEARCH_ERROR = auto()
    """The index cannot be searched."""
    INVALID_SEARCH_QUERY = auto()
    """The query contains no word."""
    TODO_NOT_FOUND = auto()
    TODO_TASK_NOT_FOUND = auto()


class Refusal(VectorIndexError):
    """Raised when a call cannot be answered. The store is then unchanged."""

    def __init__(self, code: Code, message: str, **context: Any) -> None:
        super().__init__(message)
        self.code = code
        self.context = context
        """Further fields for the answer, beside the message."""


def as_refusal(error: BaseException, failed: str) -> Refusal:
    """Return any error as a Refusal; log the traceback of one that is none.

    Args:
        error: The error.
        failed: What failed, for the log.
    """
    if isinstance(error, Refusal):
        return error
    _log.error("%s failed", failed, exc_info=error)
    is_systems = isinstance(error, OSError | MemoryError)
    return Refusal(Code.INTERNAL_ERROR if is_systems else Code.UNKNOWN_ERROR, sentence(error))
