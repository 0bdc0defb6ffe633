"""Splits a Markdown text into its head and the parts under its headings of level two. Pure.

A document's chapters and the sections of a project's main text are such parts. Splitting loses
nothing: the pieces, joined, are exactly the text. A change keeps every character of the other
parts. A line inside a fenced code block is never taken for a heading.
"""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile

from vector_index_mcp.engine.text.fences import lines_of_code, open_fence

_HEADING = re.compile(r"##[ \t]+(\S.*)")
_MARK = "## "
_BETWEEN = "\n\n"  # a blank line
_BOM = "\ufeff"  # some editors begin a file with it


@dataclass(frozen=True, slots=True)
class Part:
    """A heading and the text below it, up to the next heading of level two."""

    title: str
    """The heading's text, without `##` and surrounding blanks."""
    line: str
    """The heading's line, with its line end."""
    body: str
    """The exact text below the heading."""

    @property
    def text(self) -> str:
        """The exact text, with the heading."""
        return self.line + self.body

    @property
    def content(self) -> str:
        """The text below the heading, without surrounding blank lines."""
        return self.body.strip()

    @property
    def paragraph(self) -> str:
        """The first paragraph, on one line."""
        lines = takewhile(str.strip, self.content.split("\n"))
        return " ".join(" ".join(lines).split())


@dataclass(frozen=True, slots=True)
class Parts:
    """A text that was split."""

    head: str
    """The text before the first heading."""
    parts: tuple[Part, ...]

    @property
    def text(self) -> str:
        """The exact text."""
        return self.head + "".join(part.text for part in self.parts)

    @property
    def titles(self) -> list[str]:
        """The titles of the parts, in order."""
        return [part.title for part in self.parts]

    def find(self, title: str) -> int | None:
        """Return the index, from 0, of the first part with that title; None if there is none."""
        title = title.strip()
        return next((n for n, part in enumerate(self.parts) if part.title == title), None)


def split(text: str) -> Parts:
    """Split `text`."""
    mark = _mark_of(text)
    lines = text.removeprefix(mark).split("\n")
    code = lines_of_code(lines)
    starts: list[tuple[int, str]] = []
    position = len(mark)
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
    """Return the titles of the headings of level two in `content`, which become parts as well."""
    return split(content).titles


def behind_open_fence(part: Part) -> list[str]:
    """Return the titles of headings in `part` that count as code, as a fence is never closed."""
    lines = part.text.split("\n")
    fence = open_fence(lines)
    return titles_of(lines[fence.line :]) if fence else []


def titles_of(lines: Sequence[str]) -> list[str]:
    """Return the titles of all lines that have the form of a heading, in code as well."""
    return [found[1].strip() for line in lines if (found := _HEADING.match(line))]


def made(title: str, content: str) -> Part:
    """Return a new part, which ends exactly where `content` ends."""
    return Part(title.strip(), f"{_MARK}{title.strip()}\n", f"\n{content}")


def without_heading(title: str, content: str) -> str:
    """Return `content` without the heading `title` at its top, if it begins with that heading.

    An agent that has read a part with its heading may write the heading back. Any other heading
    stays, and begins a part of its own.
    """
    first, _, rest = content.lstrip("\r\n").partition("\n")
    found = _HEADING.fullmatch(first.rstrip())
    return rest.lstrip("\r\n") if found and found[1].strip() == title.strip() else content


def title_of(heading: str) -> str:
    """Return the title in a heading's line."""
    return heading.strip().removeprefix("##").strip()


def replaced(parts: Parts, number: int, content: str) -> Parts:
    """Return `parts` with new content in the part `number`, whose heading stays as it is."""
    old, after = parts.parts[number], parts.parts[number + 1 :]
    line = old.line if old.line.endswith("\n") else f"{old.line}\n"
    return _composed(_before(parts, number), Part(old.title, line, f"\n{content}"), after)


def inserted(parts: Parts, number: int, part: Part) -> Parts:
    """Return `parts` with a new part before the part `number`, or at the end."""
    before, after = _before(parts, number), parts.parts[number:]
    # An empty text gets blank lines at its top, as in the original program.
    is_closed = before != _mark_of(before) or not after
    return _composed(_closed(before) if is_closed else before, part, after)


def removed(parts: Parts, number: int) -> Parts:
    """Return `parts` without the part `number`; one blank line stays in its place."""
    before, after = _before(parts, number), parts.parts[number + 1 :]
    mark = _mark_of(before)
    if before.removeprefix(mark).strip():
        mark = _closed(before) if after else f"{_without_end(before)}\n"
    return split(mark + _text_of(after))


def swallowed(titles: Sequence[str], parts: Parts) -> str:
    """Return the first of `titles` that `parts` lacks; empty if it has them all.

    A heading is lost if it comes after a fenced code block that is never closed.
    """
    found = Counter(parts.titles)
    found.subtract(titles)
    return next((title for title in titles if found[title] < 0), "")


def _composed(before: str, part: Part, after: Sequence[Part]) -> Parts:
    text = f"{_without_end(part.text)}{_BETWEEN}" if after else part.text
    return split(before + text + _text_of(after))


def _mark_of(text: str) -> str:
    return _BOM if text.startswith(_BOM) else ""


def _before(parts: Parts, number: int) -> str:
    return parts.head + _text_of(parts.parts[:number])


def _text_of(parts: Sequence[Part]) -> str:
    return "".join(part.text for part in parts)


def _closed(text: str) -> str:
    """Return `text` with exactly one blank line at its end, so that a heading may follow."""
    return f"{_without_end(text)}{_BETWEEN}"


def _without_end(text: str) -> str:
    return text.rstrip("\r\n")
