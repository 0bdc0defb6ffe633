"""The lines of a document as answers have them: numbered, cut, with what is said of it. Pure."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

_CLOSES_COMMENT = re.compile(r"--(!?)>")
_DEFUSED = r"--\1&gt;"
_KILOBYTE = 1024
_MOST_LINKS = 20  # that are named


@dataclass(frozen=True, slots=True)
class Cut:
    """Some of the lines of a text."""

    text: str
    start: int
    """The number of the first line; 1-based."""
    left: int
    """How many lines follow that are left out."""


def lines_of(text: str) -> list[str]:
    """The lines of `text` as editors count them: what ends the last one begins no other."""
    lines = text.split("\n")
    if not lines[-1]:
        lines.pop()
    return [line.removesuffix("\r") for line in lines]


def numbered(text: str, start: int = 1) -> str:
    """`text` with the number of each line before it; the first is number `start`."""
    return "\n".join(f"{number}: {line}" for number, line in enumerate(lines_of(text), start))


def cut(text: str, from_line: int | None = None, max_lines: int | None = None) -> Cut:
    """The lines of `text` from `from_line` on, at most `max_lines` of them.

    Args:
        text: Of the whole document. All of it stays to the letter if nothing is left out.
        from_line: 1-based; what is less is the first line.
        max_lines: All that follow if None; what is less than one is none.
    """
    start = max(from_line or 1, 1)
    if start == 1 and max_lines is None:
        return Cut(text, 1, 0)
    following = lines_of(text)[start - 1 :]
    shown = following if max_lines is None else following[: max(max_lines, 0)]
    return Cut("\n".join(shown), start, len(following) - len(shown))


def ending(left: int, *, is_rest: bool = False) -> str:
    """What stands behind a text of which `left` lines are left out; nothing if none are."""
    if not left:
        return ""
    return f"\n\n[...{'' if is_rest else ' '}truncated {left} more lines]"


def with_context(text: str, context: str) -> str:
    """`text` behind a comment with what is said of it, which it cannot close itself."""
    if not context:
        return text
    harmless = _CLOSES_COMMENT.sub(r"--\1&gt;", context)
    return f"<!-- Context: {harmless} -->\n\n{text}"


def with_links(text: str, to: Sequence[str], back: Sequence[str]) -> str:
    """`text` behind comments with the documents it links to and those that link to it."""
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
    """What an answer has in the place of a document of `size` bytes that is too large for it."""
    tool = "qmd get" if is_rest else "qmd_get"
    return (
        f"[SKIPPED: {name} - File too large ({_kilobytes(size)}). "
        f"Use '{tool}' with file=\"{name}\" to retrieve.]"
    )


def skipped_on_terminal(name: str, size: int, most: int) -> str:
    """The same for a terminal, under the name of the document; `most` bytes are allowed."""
    return (
        f"[SKIPPED: File too large ({_kilobytes(size)} > {_kilobytes(most)}). "
        f"Use 'qmd get {name}' to retrieve.]"
    )


def _kilobytes(size: int) -> str:
    return f"{int(size / _KILOBYTE + 0.5)}KB"
