"""Finds the lines of a chunk that matter most to a query. Pure."""

from collections import Counter
from collections.abc import Collection, Sequence
from typing import NamedTuple

from vector_index_mcp.engine.ranking.query import Query
from vector_index_mcp.engine.ranking.signals import prefix_of
from vector_index_mcp.engine.text.words import places, words

_AROUND = 2  # lines of context before and after the best one
_EXACT = 0.01  # what a word in the query's form adds; it decides between lines that are alike
_BEFORE_WORD = 100  # characters of a long line that are shown before the first of these words
_MOST_CHARS = 600  # of a snippet, since minified lines are long


def best_line(lines: Sequence[str], query: Query, symbols: Collection[str]) -> int:
    """The index of the first line with most of the query's words, in any of their forms.

    A word counts the less, the more lines have it, and a little more in the query's own form.
    If no line has any, since the chunk was found by meaning: the first line that names one of
    `symbols`, which the chunk defines; else the first that is not blank.

    If the query is a regular expression, it is the first line that matches.
    """
    return _best(lines, _weighed(lines, query), query, symbols)


class _Weighed(NamedTuple):
    """What a line has of the query."""

    prefixes: dict[str, float]
    """The prefixes of the query's words, with their weights."""
    exact: int
    """How many words in the query's own form."""


def _best(
    lines: Sequence[str], weighed: Sequence[_Weighed], query: Query, symbols: Collection[str]
) -> int:
    """See `best_line`."""
    if query.pattern and (matching := query.pattern.matching(lines)):
        return matching[0]
    scores = [sum(line.prefixes.values()) + _EXACT * line.exact for line in weighed]
    if not any(scores):
        names = {word for symbol in symbols for word in words(symbol)}
        scores = [float(not names.isdisjoint(words(line))) for line in lines]
    if not any(scores):
        scores = [float(bool(line.strip())) for line in lines]
    return scores.index(max(scores))


def _weighed(lines: Sequence[str], query: Query) -> list[_Weighed]:
    """Return what each line has of the query."""
    asked = set(query.words)
    prefixes = set(map(prefix_of, asked))
    own = [words(line) for line in lines]
    found = [prefixes.intersection(map(prefix_of, each)) for each in own]
    count = Counter(each for line in found for each in line)
    return [
        _Weighed({prefix: count[prefix] ** -0.5 for prefix in line}, len(asked.intersection(each)))
        for line, each in zip(found, own, strict=True)
    ]


def best_lines(
    text: str, query: Query, symbols: Collection[str], at: int | None = None
) -> tuple[int, str]:
    """How many lines precede the snippet, and the snippet: the best line of `text` in context.

    Args:
        text: The lines to choose from.
        query: What makes a line the best; see `best_line`.
        symbols: What the lines define.
        at: The index of the best line, if it is known.
    """
    lines = [f"{line}\n" for line in text.split("\n")]
    if not lines[-1].strip() and len(lines) > 1:
        lines.pop()
    weighed = _weighed(lines, query)
    best = _best(lines, weighed, query, symbols) if at is None else min(at, len(lines) - 1)
    first = _first_shown(weighed, best)
    shown = lines[first : first + 2 * _AROUND + 1]
    while len(shown) > 1 and sum(map(len, shown)) > _MOST_CHARS:
        if first < best:
            shown, first = shown[1:], first + 1
        else:
            shown = shown[:-1]
    text = "".join(shown)
    return first, text if len(text) <= _MOST_CHARS else _part_of_line(text, query)


def _part_of_line(line: str, query: Query) -> str:
    """Return what stands around the name with most of the query's words in a line too long."""
    asked = frozenset(query.words)

    def held(place: tuple[int, int]) -> int:
        return len(asked.intersection(words(line[slice(*place)])))

    best, _ = max(places(line, asked), key=held, default=(0, 0))
    start = max(0, min(best - _BEFORE_WORD, len(line) - _MOST_CHARS))
    return line[start : start + _MOST_CHARS]


def _first_shown(weighed: Sequence[_Weighed], best: int) -> int:
    """Return where the lines to show begin: the best one is among them, and most words are."""
    last = max(0, len(weighed) - 2 * _AROUND - 1)

    def worth(first: int) -> tuple[float, int]:
        around: dict[str, float] = {}
        for line in weighed[first : first + 2 * _AROUND + 1]:
            around |= line.prefixes
        return sum(around.values()), -abs(first + _AROUND - best)

    firsts = range(max(0, best - 2 * _AROUND), min(best, last) + 1)
    return max(firsts, key=worth)
