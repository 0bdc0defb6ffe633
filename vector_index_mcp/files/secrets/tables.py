"""Finds secret values in tables: Markdown's, and rows separated by commas, semicolons or tabs.

A table says what a value is in the head of its column, or in the cell before it.
"""

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from itertools import groupby

from vector_index_mcp.files.secrets.values import Name, Value, is_secret, name_at

_Span = tuple[int, int]

_LONGEST_LINE = 2_000
_BAR = "|"
_SEPARATORS = (_BAR, "\t", ";", ",")
_CELLS = {
    sign: re.compile(rf' *+(?:"(?:[^"\n]|"")*+"[ \r]*+|[^{re.escape(sign)}\n]*+)')
    for sign in _SEPARATORS
}
# A head holds short names; a line of code or a sentence has other signs or more words.
_HEAD = re.compile(r"(?=\w)(?:[\w./()#-]{1,40} ?){1,4}")
_STATEMENT = re.compile(r"(?:import|from|using|use|export|return|global|nonlocal|local|del)\s")
_RULE = re.compile(r"[|:+ \t\r-]{3,}")  # between the heads and the values
_OF_PERSON = re.compile(r"(?i)user|login|mail|name|account|host|server|service|site|url")
_MOST_UNFIT = 2  # rows in a row with more or fewer cells, or none
# Before the first line of a text, of a paragraph or of a block between fences.
_BEGINNING = re.compile(r"(?:\A|\n)[ \t\r]*+(?:(?:```|~~~)[\w -]*+\r?)?\n\Z|\A\Z")
_LONGEST_FENCE = 40
_MARKS = " \t\r\"'`*_"  # around a name or value


def find(text: str, names: Iterable[_Span]) -> Iterator[_Span]:
    """Yield the spans of the secret values in the tables of `text`, where such names stand."""
    rows_until = 0
    for line, in_line in groupby(names, lambda name: _line_at(text, name[0])):
        sign = _separator_in(text, line)
        if sign is None:
            continue
        cells = _cells(text, line, sign)
        named = _columns(text, cells, in_line)
        if any(name.is_short for _, name in named) and not _OF_PERSON.search(text, *line):
            named = [(column, name) for column, name in named if not name.is_short]
        if sign == _BAR and not _written(text, cells[0]):
            beside = ((column + 1, name) for column, name in named if column + 1 < len(cells))
            for column, name in beside:
                yield from _secret(text, cells[column], name, is_head=False)
        if named and line[0] >= rows_until and _are_heads(text, line, cells, sign):
            for below in _rows_below(text, line[1] + 1, len(cells), sign):
                rows_until = below[-1][1]
                for column, name in named:
                    yield from _secret(text, below[column], name, is_head=True)


def _line_at(text: str, position: int) -> _Span:
    """Return the span of the line, or an empty one if it is too long for a table's."""
    start = text.rfind("\n", max(0, position - _LONGEST_LINE), position) + 1
    end = text.find("\n", position, position + _LONGEST_LINE)
    if end < 0:
        end = len(text)
    return (start, end) if end - start <= _LONGEST_LINE else (position, position)


def _separator_in(text: str, line: _Span) -> str | None:
    return next((sign for sign in _SEPARATORS if text.find(sign, *line) >= 0), None)


def _cells(text: str, line: _Span, sign: str) -> list[_Span]:
    """Return the spans of the line's cells; before a bar at its beginning lies an empty one."""
    cells, position = [], line[0]
    while position <= line[1]:
        end = _CELLS[sign].match(text, position, line[1]).end()  # type: ignore[union-attr]
        cells.append((position, end))
        position = end + 1
    return cells


def _columns(text: str, cells: list[_Span], names: Iterable[_Span]) -> list[tuple[int, Name]]:
    """Return the columns of the cells that end with the name of a secret."""
    ends = [end for _, end in cells]
    columns = []
    for start, end in names:
        column = bisect_left(ends, end)
        name = name_at(text, start, end)
        is_end = column < len(cells) and not _written(text, (end, ends[column])).strip("?:")
        if name is not None and is_end:
            columns.append((column, name))
    return columns


def _are_heads(text: str, line: _Span, cells: list[_Span], sign: str) -> bool:
    """Return whether the line names columns: between bars, or where a paragraph begins."""
    heads = list(filter(None, (_written(text, cell) for cell in cells)))
    if sign == _BAR:
        below = _line_at(text, line[1] + 1)
        if "-" in text[slice(*below)] and _RULE.fullmatch(text, *below):
            return True
        if _written(text, cells[0]):
            return False
    elif not _BEGINNING.search(text, max(0, line[0] - _LONGEST_FENCE), line[0]):
        return False
    return all(map(_HEAD.fullmatch, heads)) and not _STATEMENT.match(heads[0])


def _rows_below(text: str, start: int, columns: int, sign: str) -> Iterator[list[_Span]]:
    """Yield the cells of each of the next lines that has as many, up to where the table ends."""
    unfit = 0
    while start < len(text):
        end = text.find("\n", start, start + _LONGEST_LINE + 1)
        line = start, end if end >= 0 else min(len(text), start + _LONGEST_LINE)
        if not _RULE.fullmatch(text, *line):
            cells = _cells(text, line, sign)
            if len(cells) == columns:
                unfit = 0
                yield cells
            elif unfit == _MOST_UNFIT:
                return
            else:
                unfit += 1
        start = line[1] + 1


def _secret(text: str, cell: _Span, name: Name, *, is_head: bool) -> Iterator[_Span]:
    """Yield the span of what the cell holds, if it is a credential."""
    written = text[slice(*cell)]
    start = cell[0] + len(written) - len(written.lstrip(_MARKS))
    end = start + len(written.strip(_MARKS))
    value = Value(start, end, is_literal=is_head, is_likely=is_head)
    is_number = text[start:end].isdecimal()  # how many there are, for example
    if (is_head or " " not in text[start:end]) and not is_number and is_secret(text, value, name):
        yield start, end


def _written(text: str, cell: _Span) -> str:
    return text[slice(*cell)].strip(_MARKS)
