"""Patterns over whole texts, in time that grows with the text alone. Only here is RE2 known.

`re` tries anew at every place and every length, and holds the interpreter's lock meanwhile: 200 KB
made for one of its patterns keep it busy for minutes. RE2 reads every character once, and without
the lock. It knows no lookahead and no lookbehind: what stands around a match is looked at here.
"""

from collections.abc import Iterator
from functools import cached_property

import re2

_Span = tuple[int, int]

_MAX_MEMORY_BYTES = 1 << 25  # of one pattern's automaton; where it is short of it, RE2 gets slow


class Pattern:
    """A pattern in the syntax of RE2, compiled when it is first needed."""

    def __init__(self, source: str) -> None:
        self._source = source.encode("latin-1")

    @cached_property
    def _compiled(self) -> re2._Regexp:
        # Without groups: with them, RE2 goes through a match once more, a thousand times slower.
        return re2.compile(self._source, _options(never_capture=True))

    @cached_property
    def _grouping(self) -> re2._Regexp:
        return re2.compile(self._source, _options(never_capture=False))

    def spans(self, data: bytes) -> Iterator[_Span]:
        """The span of each match."""
        for match in self._compiled.finditer(data):
            yield match.span()

    def group_within(self, data: bytes, start: int, end: int) -> _Span | None:
        """The span of group 1 if `data` from `start` on matches up to `end`."""
        match = self._grouping.match(data, start, end)
        return match.span(1) if match else None


def scannable(text: str) -> bytes:
    """`text` with one byte for each of its characters, so that offsets are the same.

    What Latin-1 lacks becomes a question mark: no format of a credential has such characters.
    """
    return text.encode("latin-1", "replace")


def _options(*, never_capture: bool) -> re2.Options:
    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1
    options.max_mem = _MAX_MEMORY_BYTES
    options.log_errors = False
    options.never_capture = never_capture
    return options
