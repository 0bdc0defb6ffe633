"""What cannot be done, with the code that the contract has for it."""

from enum import StrEnum, auto
from typing import Any

from vector_index_mcp.errors import VectorIndexError


class Code(StrEnum):
    """The codes of the contract."""

    @staticmethod
    def _generate_next_value_(name: str, *_: Any) -> str:
        return name

    UNKNOWN_ERROR = auto()
    """Nobody foresaw it."""
    INTERNAL_ERROR = auto()
    """The machine refuses: no memory, no process, no thread."""
    INVALID_INPUT = auto()
    """The arguments do not go together, or the revision they name is not the current one."""
    INVALID_PROJECT_ID = auto()
    """The project's entry in `index.json` leads to no folder of the store."""
    INVALID_FILENAME = auto()
    """No file of the store has such a name."""
    INVALID_PATH = auto()
    """A link stands on the way, or something that is no folder."""
    INVALID_CONTENT = auto()
    """The text cannot be stored, or what is stored cannot be read as a text."""
    NOT_FOUND = auto()
    """The store is not there."""
    PROJECT_NOT_FOUND = auto()
    DOCUMENT_NOT_FOUND = auto()
    CHAPTER_NOT_FOUND = auto()
    SECTION_NOT_FOUND = auto()
    FILE_SYSTEM_ERROR = auto()
    ACCESS_DENIED = auto()
    FILE_ALREADY_EXISTS = auto()
    """Or a section, or a chapter."""
    PROJECT_DELETE_FAILED = auto()
    GIT_ERROR = auto()
    """The history cannot be written: no git, or a store that is in no state for it."""
    GIT_COMMAND_FAILED = auto()
    """git says no."""
    SEARCH_ERROR = auto()
    """The index cannot be asked."""
    INVALID_SEARCH_QUERY = auto()
    """The query says nothing that could be found."""
    TODO_NOT_FOUND = auto()
    TODO_TASK_NOT_FOUND = auto()


class Refusal(VectorIndexError):
    """Raised when a call cannot be answered; then nothing has changed."""

    def __init__(self, code: Code, message: str, **context: Any) -> None:
        super().__init__(message)
        self.code = code
        self.context = context
        """What the answer says beside the message, by name."""
