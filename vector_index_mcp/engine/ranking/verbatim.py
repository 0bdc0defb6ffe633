"""Measures how much of a query a text repeats, word for word. Pure.

Somebody who has met an error asks with its message, which has the words of many places, and stands
in one. What separates the words does not count, since a message may be broken into several lines of
code. A part that the program fills in ends a run of words, and the words around it still stand in
the same order: `all handlers for %s on %s are down`.
"""

import re
from collections.abc import Callable
from typing import NamedTuple

from vector_index_mcp.engine.text.spelling import folded

_WORD = re.compile(r"[^\W_]+")
_FEWEST = 4  # of three words in a row, many are grammar
_LONG = 6
_MOST = 60  # a longer query is a log, or a sample of code
# Of a number, a path, an address: `10.0.0.7:80`, `/var/a.db`, `a@b.org`.
_IN_VALUE = re.compile(r"\d|[^\W_][/\\:.@][^\W_]|/[^\W_]")
# How far apart two words may be and still belong together: `{self.name!r}` is two words beside
# the letter that formats it, and a path or an address that is filled in may have six.
_STEP_IN_TEXT, _STEP_IN_QUERY = 4, 7
_MOST_PLACES = 4  # of one word in a query; else a text of that word alone would take long


class Repeated(NamedTuple):
    """How much of a query a text repeats, 0 to 1; less than four words count 0."""

    in_a_row: float
    """The share of the query's words that stand in the text without a gap."""
    in_order: float
    """The share of those that are not filled in, with gaps of a few words between them."""


class Repeats:
    """The words of one query, to be looked for in texts.

    Args:
        query: The query.
        is_filled_in: Whether a word, folded, is surely not the program's, since no text has it.
            Those of numbers, paths and addresses are not counted either.
    """

    def __init__(
        self, query: str, is_filled_in: Callable[[str], bool] = lambda word: False
    ) -> None:
        self._words = _WORD.findall(folded(query))
        typed = " ".join(part for part in query.split() if not _IN_VALUE.search(part))
        self._constant = sum(not is_filled_in(word) for word in _WORD.findall(folded(typed)))
        self._places: dict[str, list[int]] = {}
        for place, word in enumerate(self._words):
            places = self._places.setdefault(word, [])
            if len(places) < _MOST_PLACES:
                places.append(place)

    @property
    def is_possible(self) -> bool:
        """Whether the query has as many words as count."""
        return _FEWEST <= len(self._words) <= _MOST

    @property
    def is_long(self) -> bool:
        """Whether the query has so many words that no text repeats all of them by chance."""
        return len(self._words) >= _LONG

    def found_in(self, text: str, *, with_gaps: bool = True) -> Repeated:
        """Return which shares of the query's words a text has in a row, and in order.

        Args:
            text: The text.
            with_gaps: Whether to look for words in order with gaps; if not, that share is 0.
        """
        if not self.is_possible:
            return Repeated(0.0, 0.0)
        words = _WORD.findall(folded(text))
        row = self._most_in_a_row(f" {' '.join(words)} ")
        if not with_gaps:
            return Repeated(row / len(self._words), 0.0)
        # What is in a row is in order, too: only more of it counts.
        order = max(row, self._most_in_order(words)) if row < len(self._words) else row
        return Repeated(row / len(self._words), min(1.0, order / max(_FEWEST, self._constant)))

    def _most_in_a_row(self, spaced: str) -> int:
        longest = 0
        for start in range(len(self._words)):
            end = start + max(longest + 1, _FEWEST)
            while end <= len(self._words) and self._run(start, end) in spaced:
                longest, end = end - start, end + 1
        return longest

    def _run(self, start: int, end: int) -> str:
        return f" {' '.join(self._words[start:end])} "

    def _most_in_order(self, words: list[str]) -> int:
        if len(self._places.keys() & words) < _FEWEST:
            return 0
        longest = 0
        # By the word of the query: where the text had it last, and how many were in order up to it.
        ends = [(-_STEP_IN_TEXT - 1, 0)] * len(self._words)
        for at, word in enumerate(words):
            for place in reversed(self._places.get(word, ())):
                before = ends[max(0, place - _STEP_IN_QUERY) : place]
                near = [count for seen, count in before if at - seen <= _STEP_IN_TEXT]
                count = 1 + max(near, default=0)
                ends[place] = at, count
                longest = max(longest, count)
        return longest if longest >= _FEWEST else 0
