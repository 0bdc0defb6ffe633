"""A line in pieces, each with 1 if the query asked for it. Pure."""

import re
from collections.abc import Sequence, Set
from itertools import groupby

from vector_index_mcp.engine.prose.stems import stems_of

Piece = tuple[str, int]
"""A text, and 1 if the query asked for it; the texts of a line, joined, are the line."""

_WORD = re.compile(r"(\w+)")


def by_stems(line: str, wanted: Set[str]) -> list[Piece]:
    """`line` with the words marked that have a stem in `wanted`."""
    pieces = [piece for piece in _WORD.split(line) if piece]
    return [(piece, int(not wanted.isdisjoint(stems_of(piece)))) for piece in pieces]


def by_letters(line: str, words: Sequence[str]) -> list[Piece]:
    """`line` with all of `words` marked, which are in lower case, also within others."""
    lowered = line.lower()
    if len(lowered) != len(line):  # then places in one are none in the other
        lowered = line
    marked = bytearray(len(line))
    for word in filter(None, words):
        at = lowered.find(word)
        while at >= 0:
            marked[at : at + len(word)] = b"\1" * len(word)
            at = lowered.find(word, at + len(word))
    runs = [list(run) for _, run in groupby(range(len(line)), marked.__getitem__)]
    return [(line[run[0] : run[-1] + 1], marked[run[0]]) for run in runs]
