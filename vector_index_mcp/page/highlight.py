"""Splits code into coloured spans, each with its class and whether it matches the query. Pure.

The result is data, not HTML; its pieces joined are the text.
"""

from collections.abc import Iterator, Set
from itertools import groupby

from vector_index_mcp.codebase.colours import pieces
from vector_index_mcp.engine.text.words import places

Span = tuple[str, str, int]
"""(class, text, 1 if it matches the query); the class is a letter of the style sheet, or empty."""

_LONGEST_CHARS = 20_000  # as long as a chunk may be


def spans(
    text: str, language: str, wanted: Set[str], *, longest: int = _LONGEST_CHARS
) -> list[Span]:
    """Return `text` in coloured pieces.

    Args:
        text: Part of a file.
        language: The file's language, as `files.language` names it.
        wanted: The words of the query, as `engine.text.words` makes them.
        longest: A text with more characters stays plain.
    """
    marked = _characters_in(places(text, wanted)) if wanted else frozenset()
    position = 0
    found: list[Span] = []
    plain = [("", text)]
    for name, piece in plain if len(text) > longest else pieces(text, language):
        inside = range(position, position + len(piece))
        for is_marked, run in groupby(inside, marked.__contains__):
            indices = list(run)
            found.append((name, text[indices[0] : indices[-1] + 1], int(is_marked)))
        position += len(piece)
    return _merged(found)


def _characters_in(ranges: Iterator[tuple[int, int]]) -> frozenset[int]:
    return frozenset(index for start, end in ranges for index in range(start, end))


def _merged(found: list[Span]) -> list[Span]:
    """Merge neighbours with the same class and mark."""
    runs = groupby(found, key=lambda piece: (piece[0], piece[2]))
    return [(name, "".join(p[1] for p in run), mark) for (name, mark), run in runs]
