"""Why a file is not indexed, or not as it should be: the reasons on which a decision depends.

A record keeps its reason as words for people, so what the words mean is decided here alone.
"""

from vector_index_mcp.engine.types import FileRecord
from vector_index_mcp.files import read
from vector_index_mcp.files.conversion import NEEDS_EXTRA
from vector_index_mcp.files.language import OTHER, language_of

INDEXED, SKIPPED, FAILED = "indexed", "skipped", "failed"
"""The states of a record."""
NO_PROCESS = "no process could be started to parse it"
_GIVEN_UP = "given up"
_WITHOUT_TEXT = frozenset({read.BINARY, read.NOT_A_FILE})


def of_giving_up(why: str) -> str:
    """Return the reason of a file that fails at every try: only a change leads to another one."""
    return f"{_GIVEN_UP}: {why}"


def is_given_up(record: FileRecord) -> bool:
    """Return whether only a change of the file leads to another try."""
    return record.reason.startswith(_GIVEN_UP)


def is_unreadable(reason: str) -> bool:
    """Return whether the system did not let a file be read, which may work at the next try."""
    return reason.startswith(read.UNREADABLE)


def lacks_extra(record: FileRecord) -> bool:
    """Return whether a document was skipped because the extra `formats` was not installed."""
    return record.state == SKIPPED and record.reason == NEEDS_EXTRA


def is_cut_by_lines(record: FileRecord) -> bool:
    """Return whether a file was cut by its lines since it could not be parsed."""
    return record.state == INDEXED and bool(record.reason)


def was_slow(record: FileRecord) -> bool:
    """Return whether the parser took long on a file, or ended its process, at the last try."""
    if record.reason == NO_PROCESS:
        return False
    return is_cut_by_lines(record) or is_given_up(record)


def is_passed_over(record: FileRecord) -> bool:
    """Return whether a file is skipped although somebody might look for what it says."""
    if record.state != SKIPPED or record.reason not in _WITHOUT_TEXT:
        return record.state == SKIPPED
    # Code may have a NUL in it.
    return record.reason == read.BINARY and language_of(record.key) != OTHER
