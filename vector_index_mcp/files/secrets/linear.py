"""Searches whole texts for patterns in linear time. The only importer of RE2.

`re` backtracks and holds the interpreter's lock: a malicious text of 200 KB can keep it busy for
minutes. RE2 reads every character once, without the lock. It has no lookahead or lookbehind, so our
own code checks the text around a match.
"""

from collections.abc import Iterator
from functools import cached_property

import re2

_Span = tuple[int, int]

_MAX_MEMORY_BYTES = 1 << 25  # for one pattern's automaton; RE2 gets slow if it needs more


class Pattern:
    """A pattern in the syntax of RE2, compiled when it is first needed."""

    def __init__(self, source: str) -> None:
        self._source = source.encode("latin-1")

    @cached_property
    def _compiled(self) -> re2._Regexp:
        # Without groups: with them, RE2 reads each match again, a thousand times slower.
        return re2.compile(self._source, _options(never_capture=True))

    @cached_property
    def _grouping(self) -> re2._Regexp:
        return re2.compile(self._source, _options(never_capture=False))

    def spans(self, data: bytes) -> Iterator[_Span]:
        """Yield the span of each match."""
        for match in self._compiled.finditer(data):
            yield match.span()

    def group_within(self, data: bytes, start: int, end: int) -> _Span | None:
        """Return the span of group 1 if the pattern matches `data` at `start`; look up to `end`."""
        match = self._grouping.match(data, start, end)
        return match.span(1) if match else None


def scannable(text: str) -> bytes:
    """Return `text` with one byte for each of its characters, so that offsets are the same.

    Characters beyond Latin-1 become question marks: no format of a credential has them.
    """
    return text.encode("latin-1", "replace")


def _options(*, never_capture: bool) -> re2.Options:
    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1
    options.max_mem = _MAX_MEMORY_BYTES
    options.log_errors = False
    options.never_capture = never_capture
    return options
