"""Finds the headings and sections of Markdown, reStructuredText and AsciiDoc. Pure."""

import re
from collections.abc import Callable, Iterator

from vector_index_mcp.engine.chunk.parts import Part
from vector_index_mcp.engine.text.fences import lines_of_code
from vector_index_mcp.engine.text.front_matter import first_line_behind

_Heading = tuple[int, int, str]
"""(0-based line, level, title)."""

_ATX = re.compile(r" {0,3}(#{1,6})\s+(\S.*)$")
_SETEXT = re.compile(r" {0,3}(=+|-+)\s*$")
_ADORNMENT = re.compile(r"""([=\-`:'"~^_*+#<>.])\1{2,}\s*$""")
_ASCIIDOC = re.compile(r"(={1,6})\s+(\S.*)$")
MAX_TITLE_CHARS = 120


def sections(text: str, language: str) -> list[Part]:
    """Return the sections of `text`, nested by the level of their headings."""
    lines = text.split("\n")
    last = len(lines) - 1
    roots: list[Part] = []
    open_parts: list[tuple[int, Part]] = []
    for line, level, title in headings(lines, language):
        while open_parts and open_parts[-1][0] >= level:
            open_parts.pop()[1].end = line - 1
        part = Part(title[:MAX_TITLE_CHARS], "section", line, last, line, is_symbol=False)
        (open_parts[-1][1].parts if open_parts else roots).append(part)
        open_parts.append((level, part))
    return roots


def headings(lines: list[str], language: str) -> Iterator[_Heading]:
    """Return the headings of a text, in order; none for a language that has no headings."""
    return STYLES[language](lines) if language in STYLES else iter(())


def _markdown(lines: list[str]) -> Iterator[_Heading]:
    first = first_line_behind(lines)
    body = lines[first:]
    code = lines_of_code(body)
    for number, line in enumerate(body, first):
        if number - first in code:
            continue
        if heading := _ATX.match(line):
            yield number, len(heading[1]), _without_closing(heading[2])
        elif (
            number > first
            and number - 1 - first not in code
            and (under := _SETEXT.match(line))
            and _is_title(lines[number - 1])
        ):
            yield number - 1, 1 if under[1][0] == "=" else 2, lines[number - 1].strip()


def _without_closing(title: str) -> str:
    """Return `Title` for `Title ##`, but `C#` for `C#`."""
    title = title.rstrip()
    bare = title.rstrip("#")
    return bare.rstrip() if bare != bare.rstrip() else title


def _is_title(line: str) -> bool:
    return line[:1].isalnum() and "|" not in line


def _restructured_text(lines: list[str]) -> Iterator[_Heading]:
    levels: list[str] = []  # adornments, in the order in which the text first uses them
    for number in range(1, len(lines)):
        under, title = _ADORNMENT.match(lines[number]), lines[number - 1]
        if not under or not title.strip() or _ADORNMENT.match(title):
            continue
        over = number >= 2 and lines[number - 2].rstrip() == lines[number].rstrip()
        if len(lines[number].rstrip()) < len(title.rstrip()) or (title[0].isspace() and not over):
            continue
        style = under[1] * (2 if over else 1)
        if style not in levels:
            levels.append(style)
        yield number - (2 if over else 1), levels.index(style) + 1, title.strip()


def _asciidoc(lines: list[str]) -> Iterator[_Heading]:
    block = ""
    for number, line in enumerate(lines):
        mark = line.rstrip()
        if len(mark) >= 4 and mark in {c * len(mark) for c in "-.=+/"}:
            block = "" if block == mark else block or mark
        elif not block and (heading := _ASCIIDOC.match(line)):
            yield number, len(heading[1]), heading[2].strip()


STYLES: dict[str, Callable[[list[str]], Iterator[_Heading]]] = {
    "markdown": _markdown,
    "rst": _restructured_text,
    "asciidoc": _asciidoc,
}
"""The functions that find headings, by language."""
