"""Finds the fenced code blocks of a Markdown text. Pure."""

import re
from collections.abc import Iterator, Sequence

Lines = tuple[int, int]
"""(first, last), 0-based."""

# A fence may be indented as in lists. A line with more backticks after the fence is inline code.
_FENCE = re.compile(r"[ \t]{0,12}(`{3,}+(?=[^`]*$)|~{3,}+)")
_FENCE_TO_OTHERS = re.compile(r" {0,3}(?:```|~~~)")
_MOST_INDENTED = 3  # an unclosed fence indented no more than this lasts to the end of the text
_LONGEST = 9  # characters; a longer fence counts as one of this length


def fences(lines: Sequence[str]) -> Iterator[Lines]:
    """Yield the fenced code blocks in order, including the lines of their fences."""
    unclosed: set[str] = set()  # fences that no later line closes
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
    """Return the line that closes the fence with this mark; None if no line does."""
    for number in range(start + 1, len(lines)):
        line = lines[number].strip()
        if line.startswith(mark) and not line.strip(mark[0]):
            return number
    return None


def outside(lines: Sequence[str]) -> list[str]:
    """Return `lines` with every line of code blank, so that the others keep their numbers.

    Lines that `headings` would take for a fence are indented. A first line of `---`, which it
    would take for front matter, is made blank.
    """
    found = [f"    {line}" if _FENCE_TO_OTHERS.match(line) else line for line in lines] or [""]
    for start, end in fences(lines):
        found[start : end + 1] = [""] * (end + 1 - start)
    if found[0].rstrip() == "---":
        found[0] = ""
    return found
