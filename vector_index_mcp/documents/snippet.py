"""Finds the best lines of a text for a query, with their line numbers. Pure.

The best line is the one with the most distinct words of the query; of equals, the one whose words
fewest lines have, then the one whose neighbours have most. One line before it and two lines after
it are shown too. Long lines are cut around the words, the best line last. Front matter, the
settings at the top of a document, is never shown.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence, Set
from dataclasses import dataclass

from vector_index_mcp.documents.lines import lines_of

Words = Callable[[str], Set[str]]
"""Returns the words of a text, in the form in which they are compared."""

_BEFORE, _AFTER = 1, 2  # lines
_ELLIPSIS = "..."
_LEAST_CHARS = 20  # a line is not cut to fewer characters: they would say nothing
_PIECES = 3  # this many pieces of a line fit into a snippet; a line is cut only between pieces
_OVERLAP = 32  # characters; a piece may end within a word, if the line has no spaces
_FENCES = {"---": ("---", "..."), "+++": ("+++",)}


@dataclass(frozen=True, slots=True)
class Snippet:
    """Some lines of a document."""

    line: int
    """The number of the best line in the file, from 1."""
    start: int
    """The number of the first line that is shown."""
    lines: tuple[str, ...]
    """The lines that are shown."""
    lines_after: int
    """How many lines of the file come after them."""

    @property
    def lines_before(self) -> int:
        """How many lines of the file come before them."""
        return self.start - 1

    @property
    def text(self) -> str:
        """The lines as one text."""
        return "\n".join(self.lines)

    @property
    def numbered(self) -> str:
        """The lines with their numbers."""
        return "\n".join(f"{at}: {line}" for at, line in enumerate(self.lines, self.start))

    @property
    def with_header(self) -> str:
        """The lines after a header with their position, as in a diff."""
        place = f"@@ -{self.start},{len(self.lines)} @@"
        return f"{place} ({self.lines_before} before, {self.lines_after} after)\n{self.text}"


def snippet_of(
    text: str,
    wanted: Set[str],
    words: Words,
    *,
    start_line: int = 1,
    file_lines: int | None = None,
    most_chars: int = 300,
) -> Snippet:
    """Return the best lines of `text`.

    Args:
        text: A document, or a part of one.
        wanted: The words of the query, in the form that `words` returns.
        words: Splits a line into its words.
        start_line: The number of the line in the file that `text` begins with, from 1.
        file_lines: How many lines the file has; None if it ends with `text`.
        most_chars: The most characters to show, line feeds between the lines included.
    """
    lines = lines_of(text)
    # What follows the last line feed is the next part's, or nothing.
    if not text or text.endswith("\n"):
        lines.pop()
    first = _front_matter(lines) if start_line == 1 else 0
    best = _best(lines, first, wanted, words)
    shown = _shown(lines, first, best, _Cutter(wanted, words), most_chars)
    start, end = start_line + shown.start, start_line + shown.start + len(shown.lines)
    total = start_line - 1 + len(lines) if file_lines is None else file_lines
    line = start_line + min(best, max(len(lines) - 1, 0))
    return Snippet(line, start, shown.lines, max(total - end + 1, 0))


def _front_matter(lines: Sequence[str]) -> int:
    """Return how many lines at the top are front matter."""
    closing = _FENCES.get(lines[0].rstrip()) if lines else None
    if closing is None:
        return 0
    return next((n + 1 for n, line in enumerate(lines) if n and line.rstrip() in closing), 0)


def _best(lines: Sequence[str], first: int, wanted: Set[str], words: Words) -> int:
    """Return the position of the line with the most of the wanted words.

    Of equals, return the first of those whose words are rarest. If no line has any, return the
    position of the first line that has words at all.
    """
    held: list[Set[str]] = []
    speaking = None
    for at in range(first, len(lines)):
        found = words(lines[at])
        if speaking is None and found:
            speaking = at
        held.append(wanted & found)
    counts = Counter(word for found in held for word in found)
    if not counts:
        return first if speaking is None else speaking

    def worth(at: int) -> tuple[int, float, int]:
        found = held[at]
        shown = held[max(0, at - _BEFORE) : at + 1 + _AFTER]
        rarity = sum(1 / counts[word] for word in found)
        return len(found), rarity, len(set().union(*shown))

    return first + max(range(len(held)), key=worth)


@dataclass(frozen=True, slots=True)
class _Shown:
    start: int
    """The position of the first line in the text, from 0."""
    lines: tuple[str, ...]


def _shown(
    lines: Sequence[str], first: int, best: int, cutter: "_Cutter", most_chars: int
) -> _Shown:
    """Return the best line with as many of its neighbours as fit."""
    if best >= len(lines):
        return _Shown(best, ())
    # Leave room for the line feeds of the neighbours, so that empty neighbours always fit.
    shown = {best: cutter.cut(lines[best], most_chars - _BEFORE - _AFTER)}
    left = most_chars - len(shown[best])
    for side in (range(best + 1, best + 1 + _AFTER), range(best - 1, best - 1 - _BEFORE, -1)):
        for at in side:
            if not first <= at < len(lines) or left < 1:
                break
            room = left - 1  # one character is for the line feed
            if len(lines[at]) > room and room < _LEAST_CHARS:
                break
            shown[at] = cutter.cut(lines[at], room)
            left = room - len(shown[at])
    return _Shown(min(shown), tuple(shown[at] for at in sorted(shown)))


@dataclass(frozen=True, slots=True)
class _Cutter:
    """Cuts lines around the wanted words."""

    wanted: Set[str]
    words: Words

    def cut(self, line: str, most_chars: int) -> str:
        """Return `line`, or its part with the most wanted words, with `...` for omitted text."""
        if len(line) <= most_chars:
            return line
        room = max(most_chars - 2 * len(_ELLIPSIS), 1)
        start = self._start(line, room)
        if start == 0:
            return f"{line[: max(most_chars - len(_ELLIPSIS), 0)].rstrip()}{_ELLIPSIS}"[:most_chars]
        if start + room + len(_ELLIPSIS) >= len(line):
            return f"{_ELLIPSIS}{line[-(room + len(_ELLIPSIS)) :].lstrip()}"[:most_chars]
        return f"{_ELLIPSIS}{line[start : start + room].strip()}{_ELLIPSIS}"[:most_chars]

    def _start(self, line: str, room: int) -> int:
        """Return where the part of `line` with the most wanted words begins; 0 if it has none."""
        places = [*_pieces(line, max(room // _PIECES, 1))]
        found = [self.wanted & self.words(line[start : end + _OVERLAP]) for start, end in places]
        best, most = 0, 0
        for at in range(len(places)):
            count = len(set().union(*found[at : at + _PIECES - 1]))
            if count > most and found[at]:
                best, most = at, count
        # Show half a piece of the text before; two and a half pieces are left for the words.
        return max(places[best][0] - room // (2 * _PIECES), 0)


def _pieces(line: str, size: int) -> Iterator[tuple[int, int]]:
    """Yield start and end of pieces of a line of about `size` characters, cut at spaces if any."""
    start = 0
    while start < len(line):
        end = min(start + size, len(line))
        if end < len(line) and (space := line.rfind(" ", start + 1, end + 1)) > start:
            end = space
        yield start, end
        start = end
