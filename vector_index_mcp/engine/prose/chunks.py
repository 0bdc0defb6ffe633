"""A text for people to chunks: along its headings, with code, tables and lists whole. Pure."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from vector_index_mcp.engine.chunk.cut import SCOPE_SEPARATOR, cut_along
from vector_index_mcp.engine.chunk.headings import sections
from vector_index_mcp.engine.chunk.parts import Part
from vector_index_mcp.engine.types import Chunk

_FENCE = re.compile(r" {0,3}(```+|~~~+)")
_ITEM = re.compile(r"\s{0,12}(?:[-*+]|\d{1,9}[.)])\s")
_Lines = tuple[int, int]
"""(first, last), 0-based."""


def chunks_of(text: str, language: str, title: str, first_line: int, max_chars: int) -> list[Chunk]:
    """The chunks of a text without its front matter; one without text if it has nothing else.

    Args:
        text: All of it.
        language: As `files.language` calls it.
        title: What it is called; the outermost name of each chunk's scope.
        first_line: Where the text begins behind its front matter, 0-based.
        max_chars: The longest chunk.

    Returns:
        In order; their texts joined are the text behind the front matter. A scope is the title
        and the headings above a chunk, outermost first.
    """
    lines = text.split("\n")[first_line:]
    body = "\n".join(lines)
    if not body.strip():  # still found by its name, its title and its tags
        return [Chunk("", 1, 1, title)]
    parts = sections(body, language)
    _drop_kinds(parts)
    if language == "markdown":
        _insert(parts, [*_blocks(lines)])
    return [
        replace(
            chunk,
            start_line=chunk.start_line + first_line,
            end_line=chunk.end_line + first_line,
            scope=_scope(title, chunk.scope),
        )
        for chunk in cut_along(body, parts, max_chars)
    ]


def _scope(title: str, headings: str) -> str:
    names = [name for name in headings.split(SCOPE_SEPARATOR) if name]
    return SCOPE_SEPARATOR.join(names if names[:1] == [title] else [title, *names])


def _drop_kinds(parts: list[Part]) -> None:
    """Leave of the sections' labels their headings alone: in prose, all parts are sections."""
    for part in parts:
        part.kind = ""
        _drop_kinds(part.parts)


def _blocks(lines: Sequence[str]) -> Iterator[_Lines]:
    """Code between fences, tables and lists: what says less in halves."""
    number = 0
    while number < len(lines):
        line = lines[number]
        if mark := _FENCE.match(line):
            end = _end_of_fence(lines, number, mark[1])
        elif _is_row(line):
            end = _while(lines, number, _is_row)
        elif _ITEM.match(line):
            end = _while(lines, number, _is_of_list)
        else:
            number += 1
            continue
        yield number, end
        number = end + 1


def _end_of_fence(lines: Sequence[str], start: int, mark: str) -> int:
    for number in range(start + 1, len(lines)):
        if lines[number].strip().startswith(mark) and not lines[number].strip(f"{mark[0]} \t\r"):
            return number
    return len(lines) - 1


def _while(lines: Sequence[str], start: int, belongs: Callable[[str], bool]) -> int:
    number = start
    while number + 1 < len(lines) and belongs(lines[number + 1]):
        number += 1
    return number


def _is_row(line: str) -> bool:
    return line.lstrip().startswith("|")


def _is_of_list(line: str) -> bool:
    return bool(_ITEM.match(line)) or line.startswith(("  ", "\t"))


def _insert(parts: list[Part], blocks: Sequence[_Lines]) -> None:
    """Put each block into the innermost section that holds it."""
    for start, end in blocks:
        home = parts
        while (inner := _holder(home, start, end)) is not None:
            home = inner.parts
        home.append(Part("", "", start, end, start, is_symbol=False))
    _sort(parts)


def _holder(parts: Sequence[Part], start: int, end: int) -> Part | None:
    return next((p for p in reversed(parts) if p.name and p.start <= start and end <= p.end), None)


def _sort(parts: list[Part]) -> None:
    parts.sort(key=lambda part: part.start)
    for part in parts:
        _sort(part.parts)
