"""Splits a line into pieces and marks those that match the query. Pure."""

import re
from collections.abc import Sequence, Set
from itertools import groupby

from vector_index_mcp.engine.prose.stems import stems_of

Piece = tuple[str, int]
"""A text, and 1 if it matches the query, else 0; the texts of a line, joined, are the line."""

_WORD = re.compile(r"(\w+)")


def by_stems(line: str, wanted: Set[str]) -> list[Piece]:
    """Return the pieces of `line`; words with a stem in `wanted` are marked."""
    pieces = [piece for piece in _WORD.split(line) if piece]
    return [(piece, int(not wanted.isdisjoint(stems_of(piece)))) for piece in pieces]


def by_letters(line: str, words: Sequence[str]) -> list[Piece]:
    """Return the pieces of `line`; all of `words` are marked, also within longer words.

    Args:
        line: The line.
        words: The words, in lower case.
    """
    lowered = line.lower()
    if len(lowered) != len(line):  # then offsets in one do not fit the other
        lowered = line
    marked = bytearray(len(line))
    for word in filter(None, words):
        at = lowered.find(word)
        while at >= 0:
            marked[at : at + len(word)] = b"\1" * len(word)
            at = lowered.find(word, at + len(word))
    runs = [list(run) for _, run in groupby(range(len(line)), marked.__getitem__)]
    return [(line[run[0] : run[-1] + 1], marked[run[0]]) for run in runs]
