"""Shows a whole file, for somebody who looks at the lines around a hit."""

from dataclasses import dataclass
from typing import Any

from vector_index_mcp.engine.types import FileRecord
from vector_index_mcp.errors import UnknownError
from vector_index_mcp.files import read
from vector_index_mcp.files.folder import Folder
from vector_index_mcp.files.language import language_of
from vector_index_mcp.foreign import visible
from vector_index_mcp.indexing.ledger import Ledger
from vector_index_mcp.indexing.reasons import INDEXED
from vector_index_mcp.page import highlight

MOST_LINES = 5_000
MOST_CHARS = 300_000
"""The most that is shown of a file; of a longer one, what is nearest to the wanted line."""


@dataclass(frozen=True, slots=True)
class Part:
    """Consecutive lines of a text."""

    lines: list[str]
    first: int
    """The number of the first of them, from 1."""


def record_of(ledger: Ledger, key: str) -> FileRecord:
    """Return the record of an indexed file.

    Raises:
        UnknownError: If the file is not indexed: it is ignored or skipped, or does not exist.
    """
    record = ledger.get(key)
    if record is None or record.state != INDEXED:
        raise UnknownError(f"The index holds no file {visible(key)}.")
    return record


def shown(folder: Folder, record: FileRecord, line: int) -> dict[str, Any]:
    """Read the file as it is now and return it in coloured pieces, with credentials masked.

    Args:
        folder: The project's folder.
        record: The record of the file.
        line: If the file is too long to be shown as a whole, the lines around this one are shown.

    Raises:
        UnknownError: If the file is gone, or may not be shown.
    """
    found = read.read(folder, record.key)
    if isinstance(found, read.Vanished):
        raise UnknownError(f"The file {visible(record.key)} no longer exists.")
    if isinstance(found, read.Skipped):
        raise UnknownError(f"{visible(record.key)} is not shown: {found.reason}.")
    language = language_of(record.key, found.text)
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
    """Return as many lines as may be shown, those nearest to the line with number `line`."""
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
