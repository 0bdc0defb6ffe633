"""A Markdown text as its head and the parts under its headings of level two. Pure.

A document's chapters and the sections of a project's main text are such parts. Splitting loses
nothing: the pieces, joined, are the text to the letter. What a change leaves alone keeps every
character, and what looks like a heading between the fences of a block of code is none.
"""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile

from vector_index_mcp.engine.prose.fences import fences

_HEADING = re.compile(r"##[ \t]+(\S.*)")
_MARK = "## "
_BETWEEN = "\n\n"  # a blank line


@dataclass(frozen=True, slots=True)
class Part:
    """A heading and what stands below it, up to the next one."""

    title: str
    """Without its mark and blanks around it."""
    line: str
    """The heading's line, with its end."""
    body: str
    """Below the heading, to the letter."""

    @property
    def text(self) -> str:
        """All of it, to the letter."""
        return self.line + self.body

    @property
    def content(self) -> str:
        """What it says, without blank lines around it."""
        return self.body.strip()

    @property
    def paragraph(self) -> str:
        """Its first paragraph, on one line."""
        lines = takewhile(str.strip, self.content.split("\n"))
        return " ".join(" ".join(lines).split())


@dataclass(frozen=True, slots=True)
class Parts:
    """A text in pieces."""

    head: str
    """Before the first heading."""
    parts: tuple[Part, ...]

    @property
    def text(self) -> str:
        """The text, to the letter."""
        return self.head + "".join(part.text for part in self.parts)

    @property
    def titles(self) -> list[str]:
        """Of the parts, in order."""
        return [part.title for part in self.parts]

    def find(self, title: str) -> int | None:
        """The number of the first part of that title, 0-based; None if there is none."""
        title = title.strip()
        return next((n for n, part in enumerate(self.parts) if part.title == title), None)


def split(text: str) -> Parts:
    """The pieces of `text`."""
    lines = text.split("\n")
    code: set[int] = set()
    if "```" in text or "~~~" in text:
        for first, last in fences(lines):
            code.update(range(first, last + 1))
    starts: list[tuple[int, str]] = []
    position = 0
    for number, line in enumerate(lines):
        if line.startswith("##") and number not in code and (found := _HEADING.match(line)):
            starts.append((position, found[1].strip()))
        position += len(line) + 1
    if not starts:
        return Parts(text, ())
    ends = [*(start for start, _ in starts[1:]), len(text)]
    parts = tuple(
        _part(title, text[start:end]) for (start, title), end in zip(starts, ends, strict=True)
    )
    return Parts(text[: starts[0][0]], parts)


def _part(title: str, text: str) -> Part:
    line, end, body = text.partition("\n")
    return Part(title, line + end, body)


def titles_in(content: str) -> list[str]:
    """The titles that `content` brings along: headings of level two become parts of their own."""
    return split(content).titles


def made(title: str, content: str) -> Part:
    """A new part; it ends where its content does."""
    return Part(title.strip(), f"{_MARK}{title.strip()}\n", f"\n{content}")


def without_heading(title: str, content: str) -> str:
    """`content` without the heading that it is to stand under, which who has read it may give back.

    Only that heading at the top is taken off: another one begins a part of its own.
    """
    first, _, rest = content.lstrip("\r\n").partition("\n")
    found = _HEADING.fullmatch(first.rstrip())
    return rest.lstrip("\r\n") if found and found[1].strip() == title.strip() else content


def title_of(heading: str) -> str:
    """The title in a heading's line."""
    return heading.strip().removeprefix("##").strip()


def replaced(parts: Parts, number: int, content: str) -> Parts:
    """`parts` with other content below the heading of one of them, whose line stays as it is."""
    old, after = parts.parts[number], parts.parts[number + 1 :]
    line = old.line if old.line.endswith("\n") else f"{old.line}\n"
    return _composed(_before(parts, number), Part(old.title, line, f"\n{content}"), after)


def inserted(parts: Parts, number: int, part: Part) -> Parts:
    """`parts` with one more before the one with that number, or at the end."""
    before, after = _before(parts, number), parts.parts[number:]
    # A text that was empty begins with blank lines: so does the original program's.
    return _composed(_closed(before) if before or not after else "", part, after)


def removed(parts: Parts, number: int) -> Parts:
    """`parts` without one of them; one blank line stays where it stood."""
    before, after = _before(parts, number), parts.parts[number + 1 :]
    if before.strip():
        before = _closed(before) if after else f"{_without_end(before)}\n"
    return split((before if before.strip() else "") + _text_of(after))


def swallowed(titles: Sequence[str], parts: Parts) -> str:
    """The first of `titles` that is no part of a text any more; empty if all of them are.

    That happens to what stands behind a block of code that is never closed.
    """
    found = Counter(parts.titles)
    found.subtract(titles)
    return next((title for title in titles if found[title] < 0), "")


def _composed(before: str, part: Part, after: Sequence[Part]) -> Parts:
    text = f"{_without_end(part.text)}{_BETWEEN}" if after else part.text
    return split(before + text + _text_of(after))


def _before(parts: Parts, number: int) -> str:
    return parts.head + _text_of(parts.parts[:number])


def _text_of(parts: Sequence[Part]) -> str:
    return "".join(part.text for part in parts)


def _closed(text: str) -> str:
    """`text` such that a heading may follow after one blank line."""
    return f"{_without_end(text)}{_BETWEEN}"


def _without_end(text: str) -> str:
    return text.rstrip("\r\n")
