"""Which lines of a Markdown text are code between fences. Pure."""

import re
from collections.abc import Iterator, Sequence

Lines = tuple[int, int]
"""(first, last), 0-based."""

# Indented as in lists. Behind backticks stands no other one: that is code in a line of text.
_FENCE = re.compile(r"[ \t]{0,12}(`{3,}+(?=[^`]*$)|~{3,}+)")
_FENCE_TO_OTHERS = re.compile(r" {0,3}(?:```|~~~)")
_MOST_INDENTED = 3  # of a fence that nothing closes: it goes on to the end of the text
_LONGEST = 9  # marks; a longer fence counts as one of this length


def fences(lines: Sequence[str]) -> Iterator[Lines]:
    """The blocks of code between fences, with those, in order."""
    unclosed: set[str] = set()  # what nothing closes from here on
    number = 0
    while number < len(lines):
        end = None
        if match := _FENCE.match(lines[number]):
            mark = match[1][:_LONGEST]
            end = None if mark in unclosed else _end(lines, number, mark)
            if end is None:
                unclosed.add(mark)
                is_code = match.start(1) <= _MOST_INDENTED
                end = len(lines) - 1 if is_code else None
        if end is not None:
            yield number, end
            number = end
        number += 1


def _end(lines: Sequence[str], start: int, mark: str) -> int | None:
    """The line of the fence that closes the one with this mark; None if there is none."""
    for number in range(start + 1, len(lines)):
        line = lines[number].strip()
        if line.startswith(mark) and not line.strip(mark[0]):
            return number
    return None


def outside(lines: Sequence[str]) -> list[str]:
    """`lines` with nothing in those that are code, so that all others keep their numbers.

    What `headings` would take for a fence, or a rule on the first line for that of front matter, is
    made such that it does not.
    """
    found = [f"    {line}" if _FENCE_TO_OTHERS.match(line) else line for line in lines] or [""]
    for start, end in fences(lines):
        found[start : end + 1] = [""] * (end + 1 - start)
    if found[0].rstrip() == "---":
        found[0] = ""
    return found
