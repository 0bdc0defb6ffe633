"""The best lines of a text in their place. Pure.

The best line is the one with the most distinct words of a query; one line before it and two after
it are shown with it. What is too long is cut around the words, the best line last of all. Settings
at the top of a document (front matter) are not what it says, and are never shown.
"""

from collections.abc import Callable, Iterator, Sequence, Set
from dataclasses import dataclass

from vector_index_mcp.documents.lines import lines_of

Words = Callable[[str], Set[str]]
"""The words of a text, in the form in which they are compared."""

_BEFORE, _AFTER = 1, 2  # lines
_ELLIPSIS = "..."
_LEAST_CHARS = 20  # of a line that is cut: less says nothing
_PIECES = 3  # of a line that fit into a snippet: so exact is the place where it is cut
_OVERLAP = 32  # characters: what has no spaces is cut within words
_FENCES = {"---": ("---", "..."), "+++": ("+++",)}


@dataclass(frozen=True, slots=True)
class Snippet:
    """Some lines of a document."""

    line: int
    """The number of the best line; 1-based, in the file."""
    start: int
    """The number of the first line that is shown."""
    lines: tuple[str, ...]
    lines_after: int
    """How many lines of the file follow."""

    @property
    def lines_before(self) -> int:
        """How many lines of the file stand before."""
        return self.start - 1

    @property
    def text(self) -> str:
        """The lines."""
        return "\n".join(self.lines)

    @property
    def numbered(self) -> str:
        """The lines with their numbers."""
        return "\n".join(f"{at}: {line}" for at, line in enumerate(self.lines, self.start))

    @property
    def with_header(self) -> str:
        """The lines behind one that says where they stand, as in a diff."""
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
    """The best lines of `text`.

    Args:
        text: A document, or a part of one.
        wanted: The words of the query, as `words` gives them.
        words: Splits a line into its words; asked once for each line.
        start_line: Where in the file `text` begins; 1-based.
        file_lines: How many lines the file has; None if it ends with `text`.
        most_chars: Of the lines that are shown, with what is between them.
    """
    lines = lines_of(text)
    first = _front_matter(lines) if start_line == 1 else 0
    best = _best(lines, first, wanted, words)
    shown = _shown(lines, first, best, _Cutter(wanted, words), most_chars)
    start, end = start_line + shown.start, start_line + shown.start + len(shown.lines)
    total = start_line - 1 + len(lines) if file_lines is None else file_lines
    line = start_line + min(best, max(len(lines) - 1, 0))
    return Snippet(line, start, shown.lines, max(total - end + 1, 0))


def _front_matter(lines: Sequence[str]) -> int:
    """How many lines at the top hold settings."""
    closing = _FENCES.get(lines[0].rstrip()) if lines else None
    if closing is None:
        return 0
    return next((n + 1 for n, line in enumerate(lines) if n and line.rstrip() in closing), 0)


def _best(lines: Sequence[str], first: int, wanted: Set[str], words: Words) -> int:
    """The line with the most of the words; the first that says something if none has any."""
    best, most, speaking = first, 0, None
    for at in range(first, len(lines)):
        found = words(lines[at])
        if speaking is None and found:
            speaking = at
        if (count := len(wanted & found)) > most:
            best, most = at, count
            if count == len(wanted):
                break
    return best if most or speaking is None else speaking


@dataclass(frozen=True, slots=True)
class _Shown:
    start: int
    """0-based, in the text."""
    lines: tuple[str, ...]


def _shown(
    lines: Sequence[str], first: int, best: int, cutter: "_Cutter", most_chars: int
) -> _Shown:
    """The best line with its neighbours, as far as they fit."""
    if best >= len(lines):
        return _Shown(best, ())
    # An empty line takes no more than its end: there is always room for that.
    shown = {best: cutter.cut(lines[best], most_chars - _BEFORE - _AFTER)}
    left = most_chars - len(shown[best])
    for side in (range(best + 1, best + 1 + _AFTER), range(best - 1, best - 1 - _BEFORE, -1)):
        for at in side:
            if not first <= at < len(lines) or left < 1:
                break
            room = left - 1  # for the end of the line
            if len(lines[at]) > room and room < _LEAST_CHARS:
                break
            shown[at] = cutter.cut(lines[at], room)
            left = room - len(shown[at])
    return _Shown(min(shown), tuple(shown[at] for at in sorted(shown)))


@dataclass(frozen=True, slots=True)
class _Cutter:
    """Cuts lines around the words that are wanted."""

    wanted: Set[str]
    words: Words

    def cut(self, line: str, most_chars: int) -> str:
        """`line`, or the part of it that has most of the words, with `...` for what is left out."""
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
        """Where the part of `line` begins that has most of the words; 0 if none has any."""
        places = [*_pieces(line, max(room // _PIECES, 1))]
        found = [self.wanted & self.words(line[start : end + _OVERLAP]) for start, end in places]
        best, most = 0, 0
        for at in range(len(places)):
            count = len(set().union(*found[at : at + _PIECES - 1]))
            if count > most and found[at]:
                best, most = at, count
        # Half a piece of what stands before is shown: there are two and a half for the words.
        return max(places[best][0] - room // (2 * _PIECES), 0)


def _pieces(line: str, size: int) -> Iterator[tuple[int, int]]:
    """Parts of a line of about `size` characters, cut at spaces where there are any."""
    start = 0
    while start < len(line):
        end = min(start + size, len(line))
        if end < len(line) and (space := line.rfind(" ", start + 1, end + 1)) > start:
            end = space
        yield start, end
        start = end
