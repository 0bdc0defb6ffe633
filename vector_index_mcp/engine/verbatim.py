"""Measures how much of a query a text repeats, word for word. Pure.

Somebody who has met an error asks with its message, which has the words of many places, and stands
in one. What separates the words does not count, since a message may be broken into several lines of
code. A part that the program fills in ends a run of words.
"""

import re

from vector_index_mcp.engine.spelling import folded

_WORD = re.compile(r"[^\W_]+")
_FEWEST = 4  # of three words in a row, many are grammar
_MOST = 60  # a longer query is a log, or a sample of code


class Repeats:
    """The words of one query, to be looked for in texts."""

    def __init__(self, query: str) -> None:
        self._words = _WORD.findall(folded(query))

    @property
    def is_possible(self) -> bool:
        """Whether the query has as many words as count."""
        return _FEWEST <= len(self._words) <= _MOST

    def share_in(self, text: str) -> float:
        """Return which share of the query's words a text has in a row, 0 to 1.

        A run of fewer than four words counts 0.
        """
        if not self.is_possible:
            return 0.0
        spaced = f" {' '.join(_WORD.findall(folded(text)))} "
        longest = 0
        for start in range(len(self._words)):
            end = start + max(longest + 1, _FEWEST)
            while end <= len(self._words) and self._run(start, end) in spaced:
                longest, end = end - start, end + 1
        return longest / len(self._words)

    def _run(self, start: int, end: int) -> str:
        return f" {' '.join(self._words[start:end])} "
