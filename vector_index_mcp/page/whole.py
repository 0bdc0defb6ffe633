"""A whole file, for somebody who looks at the lines around a hit: what the index may read of it."""

from dataclasses import dataclass
from typing import Any

from vector_index_mcp.engine.types import FileRecord
from vector_index_mcp.errors import UnknownError
from vector_index_mcp.files import read
from vector_index_mcp.files.folder import Folder
from vector_index_mcp.files.language import language_of
from vector_index_mcp.foreign import visible
from vector_index_mcp.indexing.ledger import INDEXED, Ledger
from vector_index_mcp.page import highlight

MOST_LINES = 5_000
MOST_CHARS = 300_000
"""Of a file; of a longer one what is nearest to the line that somebody wants to see."""


@dataclass(frozen=True, slots=True)
class Part:
    """Some lines of a text in a row."""

    lines: list[str]
    first: int
    """The number of the first; 1 for that of the text."""


def record_of(ledger: Ledger, key: str) -> FileRecord:
    """The record of an indexed file.

    Raises:
        UnknownError: If it has no text of such a file, which is ignored, skipped or not there.
    """
    record = ledger.get(key)
    if record is None or record.state != INDEXED:
        raise UnknownError(f"The index holds no file {visible(key)}.")
    return record


def shown(folder: Folder, record: FileRecord, line: int) -> dict[str, Any]:
    """The file as it is now, in coloured pieces; takes as long as reading and masking it.

    Args:
        folder: Where it lies.
        record: What the index knows of it.
        line: Around which line, if it is too long to be shown as a whole.

    Raises:
        UnknownError: If there is no such file any more, or none that may be shown.
    """
    found = read.read(folder, record.key)
    if isinstance(found, read.Vanished):
        raise UnknownError(f"There is no file {visible(record.key)} any more.")
    if isinstance(found, read.Skipped):
        raise UnknownError(f"{visible(record.key)} is not shown: {found.reason}.")
    language = language_of(record.key)
    lines = found.text.removesuffix("\n").split("\n")
    part = around(lines, line)
    text = visible("\n".join(part.lines), keep="\n\t")
    return {
        "path": record.key,
        "language": language,
        "lines": len(lines),
        "first_line": part.first,
        "last_line": part.first + len(part.lines) - 1,
        "is_cut": len(part.lines) < len(lines) or len(part.lines[0]) < len(lines[part.first - 1]),
        "is_stale": record.content_hash != found.content_hash,
        "masked": found.masked,
        "spans": highlight.spans(text, language, frozenset(), longest=2 * MOST_CHARS),
    }


def around(lines: list[str], line: int) -> Part:
    """As many lines as may be shown, those first that are nearest to the line with a number."""
    start = min(max(line, 1), len(lines)) - 1
    end, room = start + 1, MOST_CHARS - len(lines[start])
    if room < 0:
        return Part([lines[start][:MOST_CHARS]], start + 1)
    while end - start < MOST_LINES:
        has_above = start > 0 and len(lines[start - 1]) < room
        has_below = end < len(lines) and len(lines[end]) < room
        if has_above:
            start -= 1
            room -= len(lines[start]) + 1
        if has_below and end - start < MOST_LINES and len(lines[end]) < room:
            room -= len(lines[end]) + 1
            end += 1
        if not has_above and not has_below:
            break
    return Part(lines[start:end], start + 1)
