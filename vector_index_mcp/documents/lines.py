"""Formats the lines of a document for answers: numbers, cuts, contexts and links. Pure."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

_CLOSES_COMMENT = re.compile(r"--(!?)>")
_DEFUSED = r"--\1&gt;"
_KILOBYTE = 1024
_MOST_LINKS = 20  # a comment names at most this many links


@dataclass(frozen=True, slots=True)
class Cut:
    """Some of the lines of a text."""

    text: str
    start: int
    """The number of the first line, from 1."""
    left: int
    """How many lines after it are left out."""


def lines_of(text: str) -> list[str]:
    """Return the lines of `text` as the contract counts them.

    A line feed at the end begins another line, which is empty.
    """
    return [line.removesuffix("\r") for line in text.split("\n")]


def numbered(text: str, start: int = 1) -> str:
    """Return `text` with a number before each line; the first number is `start`."""
    return "\n".join(f"{number}: {line}" for number, line in enumerate(lines_of(text), start))


def cut(text: str, from_line: int | None = None, max_lines: int | None = None) -> Cut:
    """Return the lines of `text` from `from_line` on, at most `max_lines` of them.

    Args:
        text: The whole document; it is returned unchanged if nothing is left out.
        from_line: The number of the first line, from 1; None or less than 1 means the first line.
        max_lines: None returns all lines, less than 1 returns none.
    """
    start = max(from_line or 1, 1)
    if start == 1 and max_lines is None:
        return Cut(text, 1, 0)
    following = lines_of(text)[start - 1 :]
    shown = following if max_lines is None else following[: max(max_lines, 0)]
    return Cut("\n".join(shown), start, len(following) - len(shown))


def ending(left: int, *, is_rest: bool = False) -> str:
    """Return the note after a text of which `left` lines are left out; empty if none are."""
    if not left:
        return ""
    return f"\n\n[...{'' if is_rest else ' '}truncated {left} more lines]"


def with_context(text: str, context: str) -> str:
    """Return `text` after a comment with its context; the context cannot close the comment."""
    if not context:
        return text
    harmless = _CLOSES_COMMENT.sub(_DEFUSED, context)
    return f"<!-- Context: {harmless} -->\n\n{text}"


def with_links(text: str, to: Sequence[str], back: Sequence[str]) -> str:
    """Return `text` after comments with the documents that it links to and that link to it."""
    comments = [
        f"<!-- {label}: {_CLOSES_COMMENT.sub(_DEFUSED, _listed(keys))} -->\n"
        for label, keys in (("Links to", to), ("Linked from", back))
        if keys
    ]
    return "".join(comments) + ("\n" if comments else "") + text


def _listed(keys: Sequence[str]) -> str:
    left = len(keys) - _MOST_LINKS
    return ", ".join(keys[:_MOST_LINKS]) + (f", and {left} more" if left > 0 else "")


def skipped(name: str, size: int, *, is_rest: bool = False) -> str:
    """Return the message in place of a document that is too large; `size` is in bytes."""
    tool = "qmd get" if is_rest else "qmd_get"
    return (
        f"[SKIPPED: {name} - File too large ({_kilobytes(size)}). "
        f"Use '{tool}' with file=\"{name}\" to retrieve.]"
    )


def skipped_on_terminal(name: str, size: int, most: int) -> str:
    """Return the same message for a terminal; `most` is the allowed number of bytes."""
    return (
        f"[SKIPPED: File too large ({_kilobytes(size)} > {_kilobytes(most)}). "
        f"Use 'qmd get {name}' to retrieve.]"
    )


def _kilobytes(size: int) -> str:
    """Return a size as the contract writes it: rounded, unless that would make nothing of it."""
    kilobytes = size / _KILOBYTE
    return f"{rounded}KB" if (rounded := int(kilobytes + 0.5)) else f"{kilobytes:.2g}KB"
