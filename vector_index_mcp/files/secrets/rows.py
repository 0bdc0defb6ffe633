"""Finds secret values in rows of SQL, as seeds and dumps have them.

INSERT INTO users (name, password) VALUES (…), (…); or COPY users (name, password) FROM stdin; with
a row in each line below. The column says what a value is.
"""

import re
from bisect import bisect_left
from collections.abc import Generator, Iterator, Sequence

from vector_index_mcp.files.secrets.values import Name, Value, is_secret, name_at

_Span = tuple[int, int]

_LONGEST_HEAD, _LONGEST_BEFORE_COLUMNS = 4_000, 400
_MOST_COLUMNS = 400
_CLOSING_QUOTES = '"`]'
_NAME = r"(?:[\w$.]{1,80}|[\"`\[][^\"`\[\]\n]{1,80}[\"`\]])"
_SPACE = r"\s{0,80}(?:--[^\n]{0,200}\n\s{0,80}){0,9}"
_BEFORE_COLUMNS = re.compile(
    rf"(?i)\b(?:(?:insert|replace|upsert)\b[\w\s]{{0,60}}?\binto|copy)\s{{1,20}}"
    rf"{_NAME}(?:\.{_NAME}){{0,3}}\s{{0,80}}\Z"
)
_COLUMN = re.compile(rf"{_SPACE}({_NAME}){_SPACE}([,)])")
_VALUES = re.compile(rf"(?i){_SPACE}(?:overriding \w{{4,6}} value\s{{1,80}})?values?(?={_SPACE}\()")
_FROM_LINES = re.compile(r"(?i)\s{0,80}from stdin\b[^;\n]{0,200};[ \t\r]{0,20}\n")
_ROW = re.compile(rf"{_SPACE},?{_SPACE}\(")
_TEXT = r"'((?:[^'\\]|''|\\.){0,2000}+)'"
_CELL = re.compile(  # a text, a call with one, or anything without
    rf"{_SPACE}(?:\w{{0,9}}{_TEXT}(?:::\w{{1,40}})?"
    rf"|\w{{1,40}}\(\s{{0,9}}{_TEXT}(?:[^()']|'[^']{{0,200}}'|\([^()]{{0,200}}\)){{0,40}}+\)"
    rf"|\"((?:[^\"\\]|\\.){{0,2000}}+)\""
    rf"|(?:[^,()'\"]|\([^()]{{0,200}}\)){{0,400}}+){_SPACE}(?P<behind>[,)])",
    re.DOTALL,
)
_TEXTS_OF_CELL = (1, 2, 3)
_LINE = re.compile(r"(?!\\\.)([^\r\n]{1,100000})\r?\n")
_SEPARATOR = "\t"


def find(text: str, names: Sequence[_Span]) -> Iterator[_Span]:
    """Yield the spans of the secret values in rows of SQL, where such names are columns."""
    read_until = 0
    for start, _ in names:
        begin = _begin_of_columns(text, start) if start >= read_until else None
        if begin is None:
            continue
        columns, read_until = _columns(text, begin)
        among = names[bisect_left(names, (begin,)) : bisect_left(names, (read_until,))]
        wanted = dict(_wanted(text, columns, among))
        for column, value in _values(text, read_until):
            read_until = value.end
            if (name := wanted.get(column)) and is_secret(text, value, name):
                yield value.start, value.end


def _begin_of_columns(text: str, position: int) -> int | None:
    """Return where the names of the columns begin, if `position` is among them."""
    opening = text.rfind("(", max(0, position - _LONGEST_HEAD), position)
    if opening < 0 or text.find(")", opening, position) >= 0:
        return None
    first = max(0, opening - _LONGEST_BEFORE_COLUMNS)
    return opening + 1 if _BEFORE_COLUMNS.search(text, first, opening) else None


def _columns(text: str, position: int) -> tuple[list[_Span], int]:
    """Return where the names of the columns stand, and where they have ended."""
    columns: list[_Span] = []
    while len(columns) < _MOST_COLUMNS and (column := _COLUMN.match(text, position)):
        columns.append(column.span(1))
        position = column.end()
        if column[2] == ")":
            break
    return columns, position


def _wanted(text: str, columns: list[_Span], names: Sequence[_Span]) -> Iterator[tuple[int, Name]]:
    """Yield the columns whose names end like those of secrets."""
    begins = {end: start for start, end in names}
    for column, (_, end) in enumerate(columns):
        behind = end - (text[end - 1] in _CLOSING_QUOTES)
        if behind in begins and (name := name_at(text, begins[behind], behind)):
            yield column, name


def _values(text: str, position: int) -> Iterator[tuple[int, Value]]:
    """Yield the values of all rows, each with the number of its column."""
    if behind := _VALUES.match(text, position):
        row = _ROW.match(text, behind.end())
        while row is not None:
            position = yield from _in_brackets(text, row.end())
            row = _ROW.match(text, position)
    elif behind := _FROM_LINES.match(text, position):
        line = _LINE.match(text, behind.end())
        while line is not None:
            yield from _in_line(line)
            line = _LINE.match(text, line.end())


def _in_brackets(text: str, position: int) -> Generator[tuple[int, Value], None, int]:
    """Yield the texts of a row up to its end, or to what cannot be read; return where that is."""
    column = 0
    while cell := _CELL.match(text, position):
        for group in _TEXTS_OF_CELL:
            if cell[group] is not None:
                yield column, Value(*cell.span(group), is_literal=True)
        position, column = cell.end(), column + 1
        if cell["behind"] == ")":
            break
    return position


def _in_line(line: re.Match[str]) -> Iterator[tuple[int, Value]]:
    start = line.start()
    for column, cell in enumerate(line[1].split(_SEPARATOR)):
        yield column, Value(start, start + len(cell), is_literal=True)
        start += len(cell) + 1
