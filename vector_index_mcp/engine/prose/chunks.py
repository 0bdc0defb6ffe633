"""Cuts a document into chunks along its headings; keeps code, tables and lists whole. Pure."""

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from dataclasses import replace

from vector_index_mcp.engine.chunk.cut import cut_along
from vector_index_mcp.engine.chunk.headings import MAX_TITLE_CHARS, sections
from vector_index_mcp.engine.chunk.parts import Part, flat
from vector_index_mcp.engine.prose.paragraphs import cut_paragraphs
from vector_index_mcp.engine.text.fences import Lines, fences, outside
from vector_index_mcp.engine.types import SCOPE_SEPARATOR, Chunk

_ITEM = re.compile(r"\s{0,12}(?:[-*+]|\d{1,9}[.)])\s")


def chunks_of(text: str, language: str, title: str, first_line: int, max_chars: int) -> list[Chunk]:
    """Return the chunks of a text without its front matter; if nothing is left, one empty chunk.

    Args:
        text: The whole text.
        language: Its language, by the name in `files.language`.
        title: Its title, which is the outermost name of each chunk's scope.
        first_line: The first line after the front matter, 0-based.
        max_chars: The greatest length of a chunk.

    Returns:
        The chunks in order; their joined texts are the text after the front matter. A scope is the
        title and the headings above a chunk, outermost first.
    """
    lines = text.split("\n")[first_line:]
    body = "\n".join(lines)
    if not body.strip():  # it is still found by its name, title and tags
        return [Chunk("", 1, 1, title)]
    is_markdown = language == "markdown"
    parts = sections("\n".join(outside(lines)) if is_markdown else body, language)
    found = [*flat(parts)]
    for section in found:
        section.kind = ""  # the scope needs no kinds: in prose, all parts are sections
    if is_markdown:
        _insert(parts, [*_blocks(lines, {section.start for section in found})], found)
    return [
        replace(
            chunk,
            start_line=chunk.start_line + first_line,
            end_line=chunk.end_line + first_line,
            scope=_scope(title, chunk.scope),
        )
        for chunk in cut_along(body, parts, max_chars, cut_paragraphs)
    ]


def _scope(title: str, headings: str) -> str:
    """Return the title and the headings; a first heading that is the title is left out."""
    names = (" ".join(name.split()) for name in headings.split(SCOPE_SEPARATOR))
    inner = SCOPE_SEPARATOR.join(filter(None, names))
    shown = title[:MAX_TITLE_CHARS].rstrip()
    if f"{inner}{SCOPE_SEPARATOR}".startswith(f"{shown}{SCOPE_SEPARATOR}"):
        inner = inner[len(shown) + len(SCOPE_SEPARATOR) :]
    return SCOPE_SEPARATOR.join(filter(None, (title, inner)))


def _blocks(lines: Sequence[str], headings: Set[int]) -> Iterator[Lines]:
    """Yield the blocks that should not be cut: fenced code, tables and lists.

    No block extends over a heading.
    """
    ends = dict(fences(lines))
    number = 0
    while number < len(lines):
        line = lines[number]
        if number in ends:
            end = ends[number]
        elif _is_row(line):
            end = _while(lines, number, _is_row)
        elif _ITEM.match(line):
            end = _end_of_list(lines, number, headings)
        else:
            number += 1
            continue
        yield number, end
        number = end + 1


def _while(lines: Sequence[str], start: int, belongs: Callable[[str], bool]) -> int:
    number = start
    while number + 1 < len(lines) and belongs(lines[number + 1]):
        number += 1
    return number


def _is_row(line: str) -> bool:
    return line.lstrip().startswith("|")


def _end_of_list(lines: Sequence[str], start: int, headings: Set[int]) -> int:
    """Return the last line of the list that begins at `start`; blank lines do not end a list."""
    end = start
    for number in range(start + 1, len(lines)):
        line = lines[number]
        if not line.strip():
            continue
        if number in headings or not (_ITEM.match(line) or line.startswith(("  ", "\t"))):
            break
        end = number
    return end


def _insert(parts: list[Part], blocks: Iterable[Lines], sections: Sequence[Part]) -> None:
    """Put each block into its innermost section, which is the last one that begins before it.

    Args:
        parts: The outermost sections.
        blocks: The blocks, in order.
        sections: All sections, in order.
    """
    starts = [section.start for section in sections]
    for start, end in blocks:
        index = bisect_right(starts, start) - 1
        home = sections[index].parts if index >= 0 else parts
        home.append(Part("", "", start, end, start, is_symbol=False))
    for inner in (parts, *(section.parts for section in sections)):
        inner.sort(key=lambda part: part.start)
