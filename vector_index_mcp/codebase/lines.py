"""Finds the lines of a chunk that matter most to a query. Pure."""

from collections.abc import Collection, Sequence

from vector_index_mcp.engine.query import Query
from vector_index_mcp.engine.words import words

_AROUND = 2  # lines of context before and after the best one
_MOST_CHARS = 600  # of a snippet, since minified lines are long


def best_line(lines: Sequence[str], query: Query, symbols: Collection[str]) -> int:
    """The index of the first line with most of the query's words.

    If no line has any, since the chunk was found by meaning: the first line that names one of
    `symbols`, which the chunk defines; else the first that is not blank.
    """
    asked = set(query.words)
    scores = [len(asked.intersection(words(line))) for line in lines]
    if not any(scores):
        names = {word for symbol in symbols for word in words(symbol)}
        scores = [int(not names.isdisjoint(words(line))) for line in lines]
    if not any(scores):
        scores = [int(bool(line.strip())) for line in lines]
    return scores.index(max(scores))


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
    best = best_line(lines, query, symbols) if at is None else min(at, len(lines) - 1)
    first = max(0, min(best - _AROUND, len(lines) - 2 * _AROUND - 1))
    shown = lines[first : first + 2 * _AROUND + 1]
    while len(shown) > 1 and sum(map(len, shown)) > _MOST_CHARS:
        if first < best:
            shown, first = shown[1:], first + 1
        else:
            shown = shown[:-1]
    return first, "".join(shown)[:_MOST_CHARS]
