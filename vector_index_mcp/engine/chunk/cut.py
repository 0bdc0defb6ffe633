"""Cuts a text into chunks along its outline. Pure, except for the parser.

The joined chunks are the text: no character is lost, and none stands twice. Definitions stay whole
where they fit, and small neighbours share a chunk. A definition that is too large is cut at the
definitions inside it; if it has none, by its lines.
"""

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import accumulate, takewhile

from vector_index_mcp.engine.chunk.lines import cut_lines
from vector_index_mcp.engine.chunk.outline import outline
from vector_index_mcp.engine.chunk.parts import Part, flat
from vector_index_mcp.engine.types import SCOPE_SEPARATOR, Chunk

_COMMENT_STARTS = ("#", "//", "/*", "*", "--", "@", ";", "%", "[", "<!--", "(*", "{-")
"""Lines above a definition that begin so belong to it: comments, decorators, attributes."""
_CLOSERS = "}])>;, \t\r\n"
_CLOSING_WORDS = frozenset({"", "end", "fi", "done", "esac", "#endif", "@end"})
_COMMENT_AT_END = re.compile(r"(?<![^\s}\])>;])(?://|/\*|#(?!endif)|--).*")
"""Such as what is closed: `} // namespace x`, `#endif /* X_H */`, `end -- x`."""
_FULL_SHARE = 0.6  # of the longest chunk: a chunk filled this far takes in no more neighbours
_TINY_CHARS = 120  # a shorter chunk is too short to be found or understood alone
_MAX_NESTING = 12


@dataclass(frozen=True, slots=True)
class _Span:
    """Lines `start` up to but not including `end`, inside the definitions `scope`."""

    start: int
    end: int
    scope: tuple[str, ...]


def chunk_text(text: str, language: str, max_chars: int) -> list[Chunk]:
    """Cut `text` into chunks of at most `max_chars` characters.

    Returns:
        The chunks in order; their joined texts are `text`. None for a text of white space.
    """
    return cut_text(text, language, max_chars)[0]


def cut_text(text: str, language: str, max_chars: int) -> tuple[list[Chunk], str]:
    """Cut `text` as `chunk_text` does.

    Returns:
        The chunks, and why the text was cut without its syntax; an empty reason if it was not.
    """
    if not text.strip():
        return [], ""
    parts, problem = outline(text, language)
    return cut_along(text, parts, max_chars), problem


def cut_along(
    text: str,
    parts: list[Part],
    max_chars: int,
    cut_rest: Callable[[str, int], list[Chunk]] = cut_lines,
) -> list[Chunk]:
    """Cut `text` as `chunk_text` does, along an outline that is known already.

    Args:
        text: The whole text.
        parts: Its outline.
        max_chars: The greatest length of a chunk.
        cut_rest: Cuts a piece that is too large and has no parts.
    """
    symbols = sorted({(p.named_at, p.name) for p in flat(parts) if p.is_symbol})
    lines = [line for line, _ in symbols]
    chunks = []
    for chunk, scope in _Cutter(text, max_chars, cut_rest).cut(parts):
        first, behind = (bisect_left(lines, n) for n in (chunk.start_line - 1, chunk.end_line))
        names = tuple(dict.fromkeys(name for _, name in symbols[first:behind]))
        chunks.append(replace(chunk, scope=SCOPE_SEPARATOR.join(scope), symbols=names))
    return chunks


class _Cutter:
    """Cuts one text."""

    def __init__(
        self, text: str, max_chars: int, cut_rest: Callable[[str, int], list[Chunk]]
    ) -> None:
        self._lines = [line + "\n" for line in text.split("\n")]
        self._lines[-1] = self._lines[-1][:-1]
        if not self._lines[-1]:
            self._lines.pop()
        self._offsets = [0, *accumulate(map(len, self._lines))]
        self._max_chars = max_chars
        self._cut_rest = cut_rest

    def cut(self, parts: list[Part]) -> Iterator[tuple[Chunk, tuple[str, ...]]]:
        """Yield the chunks in order, each with the labels of the definitions it lies in."""
        for span in self._spans(_Span(0, len(self._lines), ()), parts):
            text = "".join(self._lines[span.start : span.end])
            if len(text) <= self._max_chars:
                yield Chunk(text, span.start + 1, span.end), span.scope
                continue
            for chunk in self._cut_rest(text, self._max_chars):
                first, last = chunk.start_line + span.start, chunk.end_line + span.start
                yield Chunk(chunk.text, first, last), span.scope

    def _spans(self, whole: _Span, parts: list[Part]) -> list[_Span]:
        """Cut `whole` at `parts` if it is too large, and join small neighbours."""
        if self._size(whole) <= self._max_chars or len(whole.scope) >= _MAX_NESTING:
            return [whole]
        done: list[_Span] = []
        for segment, part in self._segments(whole, parts):
            spans = [segment]
            if self._size(segment) > self._max_chars and part is not None:
                inner = _Span(segment.start, segment.end, (*whole.scope, part.label))
                spans = self._spans(inner, part.parts)
            for span in spans:
                if done and self._may_join(done[-1], span):
                    done[-1] = self._joined(done[-1], span)
                else:
                    done.append(span)
        return done

    def _segments(self, whole: _Span, parts: list[Part]) -> Iterator[tuple[_Span, Part | None]]:
        """Yield `whole` as gaps and parts in turn; parts that share a line are not separated."""
        position = whole.start
        for part in parts:
            end = min(part.end, whole.end - 1)
            if end <= part.start or part.start < position:
                continue
            start = self._with_comments(part.start, position)
            if start > position:
                yield _Span(position, start, whole.scope), None
            position = end + 1
            while position < whole.end and not self._lines[position].strip():
                position += 1  # blank lines belong to the part above them
            yield _Span(start, position, whole.scope), part
        if position < whole.end:
            yield _Span(position, whole.end, whole.scope), None

    def _with_comments(self, line: int, lowest: int) -> int:
        """Return the first line of the comments and decorators directly above `line`."""
        while line > lowest and self._lines[line - 1].lstrip().startswith(_COMMENT_STARTS):
            line -= 1
        return line

    def _size(self, span: _Span) -> int:
        return self._offsets[span.end] - self._offsets[span.start]

    def _may_join(self, before: _Span, span: _Span) -> bool:
        size_before, size = self._size(before), self._size(span)
        if size_before > self._max_chars:  # it will be cut by its lines
            return self._is_remainder(span)
        if size_before + size > self._max_chars:
            return False
        if before.scope != span.scope:
            return size_before < _TINY_CHARS or size < _TINY_CHARS
        return size_before < _FULL_SHARE * self._max_chars or self._is_remainder(span)

    def _joined(self, before: _Span, span: _Span) -> _Span:
        is_remainder = self._is_remainder(span)
        scope = before.scope if is_remainder else _common(before.scope, span.scope)
        return _Span(before.start, span.end, scope)

    def _is_remainder(self, span: _Span) -> bool:
        """Return whether a span only closes the definitions above it: brackets, `end`, blanks.

        A comment behind them counts as blank, one on a line of its own does not.
        """
        return all(map(_closes, self._lines[span.start : span.end]))


def _closes(line: str) -> bool:
    if line.strip(_CLOSERS) in _CLOSING_WORDS:
        return True
    closed = _COMMENT_AT_END.sub("", line).strip()
    return bool(closed) and closed.strip(_CLOSERS) in _CLOSING_WORDS


def _common(one: tuple[str, ...], other: tuple[str, ...]) -> tuple[str, ...]:
    """Return the outermost definitions that two scopes have in common."""
    same = takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False))
    return tuple(label for label, _ in same)
