"""An outline and a text to chunks. Pure, but for the parser.

The chunks of a text, joined, are the text: no character is lost and none stands twice. Definitions
stay whole where they fit; small neighbours share a chunk; what is too large is cut at the
definitions inside it, and in the end by its lines.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import accumulate, takewhile

from vector_index_mcp.engine.chunk.lines import cut_lines
from vector_index_mcp.engine.chunk.outline import outline
from vector_index_mcp.engine.chunk.parts import Part, flat
from vector_index_mcp.engine.types import Chunk

_COMMENT_STARTS = ("#", "//", "/*", "*", "--", "@", ";", "%", "[", "<!--", "(*", "{-")
"""How lines begin that belong to the definition below them: comments, decorators, attributes."""
_CLOSERS = frozenset("}])>;, \t\r\n")
_FULL_SHARE = 0.6  # of the longest chunk: one filled this far is not filled up with neighbours
_TINY_CHARS = 120  # too little to be found or to be understood alone
_MAX_NESTING = 12
SCOPE_SEPARATOR = " › "


@dataclass(frozen=True, slots=True)
class _Span:
    """Lines `start` up to but not including `end`, inside the definitions `scope`."""

    start: int
    end: int
    scope: tuple[str, ...]


def chunk_text(text: str, language: str, max_chars: int) -> list[Chunk]:
    """Cut `text` into chunks of at most `max_chars` characters.

    Returns:
        The chunks in order; their texts joined are `text`. Nothing for a text of white space.
    """
    return cut_text(text, language, max_chars)[0]


def cut_text(text: str, language: str, max_chars: int) -> tuple[list[Chunk], str]:
    """Like `chunk_text`, and why only lines were looked at; that is empty if all went well."""
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
    """Like `chunk_text`, along parts that are known already.

    Args:
        text: All of it.
        parts: Its outline.
        max_chars: The longest chunk.
        cut_rest: Cuts what is too large and has no parts.
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
    """One text on its way to chunks."""

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
        """The chunks in order, each with the definitions it lies in."""
        for span in self._spans(_Span(0, len(self._lines), ()), parts):
            text = "".join(self._lines[span.start : span.end])
            if len(text) <= self._max_chars:
                yield Chunk(text, span.start + 1, span.end), span.scope
                continue
            for chunk in self._cut_rest(text, self._max_chars):
                first, last = chunk.start_line + span.start, chunk.end_line + span.start
                yield Chunk(chunk.text, first, last), span.scope

    def _spans(self, whole: _Span, parts: list[Part]) -> list[_Span]:
        """`whole`, cut at `parts` where it is too large; small neighbours together."""
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
        """`whole` as alternating gaps and parts, without the parts that one line holds."""
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
                position += 1  # blank lines end what stands before them
            yield _Span(start, position, whole.scope), part
        if position < whole.end:
            yield _Span(position, whole.end, whole.scope), None

    def _with_comments(self, line: int, lowest: int) -> int:
        """The first line of the comments and decorators that stand right above `line`."""
        while line > lowest and self._lines[line - 1].lstrip().startswith(_COMMENT_STARTS):
            line -= 1
        return line

    def _size(self, span: _Span) -> int:
        return self._offsets[span.end] - self._offsets[span.start]

    def _may_join(self, before: _Span, span: _Span) -> bool:
        size_before, size = self._size(before), self._size(span)
        if size_before > self._max_chars:  # will be cut by its lines
            return self._is_remainder(span)
        if size_before + size > self._max_chars:
            return False
        if before.scope != span.scope:
            return size_before < _TINY_CHARS or size < _TINY_CHARS
        return size_before < _FULL_SHARE * self._max_chars or self._is_remainder(span)

    def _joined(self, before: _Span, span: _Span) -> _Span:
        tells_nothing = self._is_remainder(span)
        scope = before.scope if tells_nothing else _common(before.scope, span.scope)
        return _Span(before.start, span.end, scope)

    def _is_remainder(self, span: _Span) -> bool:
        """Whether nothing is left but what closes the definitions above."""
        return all(_CLOSERS.issuperset(line) for line in self._lines[span.start : span.end])


def _common(one: tuple[str, ...], other: tuple[str, ...]) -> tuple[str, ...]:
    """The definitions that hold both."""
    same = takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False))
    return tuple(label for label, _ in same)
