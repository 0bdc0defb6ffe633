"""Finds the fenced code blocks of a Markdown text. Pure.

As in CommonMark 0.31 (4.5), a fence may stand in an item of a list or in a quote, and its block
ends with that at the latest: a heading after the list is one, whether the fence is closed or not.
What people and models write carelessly is understood, too: a block whose code stands further left
than its item, and a fence that is indented too far.
"""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from vector_index_mcp.engine.text.front_matter import MARKS

Lines = tuple[int, int]
"""(first, last), 0-based."""

_MARK = r"(`{3,}+(?=[^`]*$)|~{3,}+)"  # more backticks after it: inline code
_FENCE = re.compile(rf" {{0,12}}{_MARK}")
_LEFT = re.compile(rf"[ \t>*+.)\d-]{{0,40}}{_MARK}")
"""A fence, perhaps in an item or a quote."""
_QUOTE = re.compile(r" {0,3}> ?")
_ITEM = re.compile(r" {0,12}(?:[-*+]|\d{1,9}[.)])(?: {1,4}(?=[^ ])| |$)")
_HEADING = re.compile(r"#{1,6}[ \t]")
_COMMENT, _END_OF_COMMENT = re.compile(r" {0,3}<!--"), "-->"
_BEGINNINGS = (_HEADING, _FENCE, _QUOTE, _ITEM, _COMMENT)
_TAB = 4  # columns
_MOST_INDENTED = 3  # a fence indented further begins a block only if another one closes it
_MOST_NESTED = 12


class Open(NamedTuple):
    """A fence that nothing closes."""

    line: int
    mark: str
    """What would close it: backticks or tildes."""


class _Block(NamedTuple):
    """What begins at a fence."""

    last: int
    """Its last line."""
    is_open: bool
    """Whether it lasts to the end of the text, since nothing closes it."""


class _Fence(NamedTuple):
    """A line that may begin a block."""

    line: int
    mark: str
    column: int
    is_deep: bool
    """Whether it is indented further than CommonMark allows."""


def fences(lines: Sequence[str]) -> Iterator[Lines]:
    """Yield the fenced code blocks in order, including the lines of their fences."""
    return ((first, block.last) for first, block in _blocks(lines))


def lines_of_code(lines: Sequence[str]) -> set[int]:
    """Return the numbers of all lines of such blocks, 0-based."""
    return {number for first, last in fences(lines) for number in range(first, last + 1)}


def open_fence(lines: Sequence[str]) -> Open | None:
    """Return the fence whose block lasts to the end of the text, as nothing closes it, if any."""
    for first, block in _blocks(lines):
        if block.is_open and (fence := _FENCE.match(lines[first].expandtabs(_TAB))):
            return Open(first, fence[1])
    return None


def outside(lines: Sequence[str]) -> list[str]:
    """Return `lines` with every line of code blank, so that the others keep their numbers.

    Fences that begin no block are made blank, too, so that `headings` finds none. So is a first
    line of `---` or `+++`, which it would take for front matter.
    """
    found = ["" if _LEFT.match(line) else line for line in lines] or [""]
    for first, last in fences(lines):
        found[first : last + 1] = [""] * (last + 1 - first)
    if found[0].rstrip() in MARKS:
        found[0] = ""
    return found


def _blocks(lines: Sequence[str]) -> Iterator[tuple[int, _Block]]:
    if not any("```" in line or "~~~" in line for line in lines):
        return  # as in most texts
    around: list[int] = []  # items of lists and quotes that are open, outermost first
    number, has_comments, in_paragraph = 0, True, False
    while number < len(lines):
        following = number + 1
        held, rest = _within(lines[number], around)
        if in_paragraph and held < len(around) and _is_text(rest):
            number = following  # a lazy continuation, which ends no item
            continue
        del around[held:]
        rest = _enter(rest, around)
        in_paragraph = _is_text(rest)
        if has_comments and not around and _COMMENT.match(rest) and _END_OF_COMMENT not in rest:
            end = _line_with(_END_OF_COMMENT, lines, following)
            has_comments = end is not None  # one that never ends is none
            following = following if end is None else end + 1
        elif found := _FENCE.match(rest):
            column = len(lines[number].expandtabs(_TAB).rstrip()) - len(rest) + found.start(1)
            fence = _Fence(number, found[1], column, found.start(1) > _MOST_INDENTED)
            if block := _block(lines, fence, around):
                yield number, block
                following = block.last + 1
        number = following


def _within(line: str, around: Sequence[int]) -> tuple[int, str]:
    """Return how many of the items and quotes `around` a line continues, and the rest of the line.

    An item is given by the columns that its text is indented, a quote by 0.
    """
    rest = line.expandtabs(_TAB).rstrip()
    for held, columns in enumerate(around):
        if columns:
            if rest[:columns].strip():
                return held, rest
            rest = rest[columns:]
        elif quote := _QUOTE.match(rest):
            rest = rest[quote.end() :]
        else:
            return held, rest
    return len(around), rest


def _enter(rest: str, around: list[int]) -> str:
    """Add the items and quotes that begin on a line to `around`; return the rest of the line."""
    while len(around) < _MOST_NESTED:
        quote = _QUOTE.match(rest)
        begun = quote or _ITEM.match(rest)
        if begun is None:
            break
        around.append(0 if quote else begun.end())
        rest = rest[begun.end() :]
    return rest


def _block(lines: Sequence[str], fence: _Fence, around: Sequence[int]) -> _Block | None:
    """Return the block that a fence begins; None if it begins none."""
    number = fence.line + 1
    while number < len(lines):
        held, rest = _within(lines[number], around)
        if held < len(around):
            break
        if not fence.is_deep and _closes(rest, fence.mark) and _column(rest) <= _MOST_INDENTED:
            return _Block(number, is_open=False)
        if fence.is_deep and (_FENCE.match(rest) or rest and _column(lines[number]) < fence.column):
            break
        number += 1
    in_quote = around and not around[-1]
    closing = None if in_quote else _below(lines, fence, number)
    if closing is not None:
        return _Block(closing, is_open=False)
    return None if fence.is_deep else _Block(number - 1, is_open=not around)


def _below(lines: Sequence[str], fence: _Fence, start: int) -> int | None:
    """Return the line that closes a block whose code stands further left than its fence.

    It is the next fence, exactly below the first one, if no item, quote or chapter begins before.
    """
    for number in range(start, len(lines)):
        line = lines[number].expandtabs(_TAB).rstrip()
        if _FENCE.match(line):
            is_below = _column(line) == fence.column and _closes(line, fence.mark)
            return number if is_below else None
        if _QUOTE.match(line) or _ITEM.match(line):
            return None
        if line.startswith("##") and _HEADING.match(line) and not lines[number - 1].strip():
            return None
    return None


def _is_text(rest: str) -> bool:
    """Whether a line goes on with a paragraph, or begins one."""
    return bool(rest) and not any(each.match(rest) for each in _BEGINNINGS) and not _is_rule(rest)


def _is_rule(rest: str) -> bool:
    """Whether a line is a thematic break, such as `* * *`."""
    marks = "".join(rest.split())
    return len(marks) > 2 and marks[0] in "-*_" and not marks.strip(marks[0])


def _column(line: str) -> int:
    line = line.expandtabs(_TAB)
    return len(line) - len(line.lstrip())


def _closes(line: str, mark: str) -> bool:
    line = line.strip()
    return line.startswith(mark) and not line.strip(mark[0])


def _line_with(text: str, lines: Sequence[str], start: int) -> int | None:
    return next((number for number in range(start, len(lines)) if text in lines[number]), None)
