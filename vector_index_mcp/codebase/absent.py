"""Finds the words of a query that no file contains.

An answer has to name them, since a reader would take the nearest hit for a match otherwise.
"""

from collections.abc import Iterable, Sequence

from vector_index_mcp.engine.query import Query
from vector_index_mcp.engine.spelling import folded
from vector_index_mcp.engine.store import Store
from vector_index_mcp.engine.types import Filters
from vector_index_mcp.engine.words import joined, last_name, words

_MOST_ASKED = 6  # words to look up in the index, 2 ms each
_MOST_REPORTED = 3  # words; for each of them, all texts are scanned
_LONGEST_ASKED = 12  # words of a query; a longer one is a pasted text, such as a log


async def absent(
    store: Store, query: Query, texts: Sequence[str], filters: Filters
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The identifiers of `query` that no chunk contains, and the other words that none contains.

    Args:
        store: Where to look.
        query: The query.
        texts: The paths and texts of the best hits; words in one of them need no lookup.
        filters: Which chunks to look at.

    Raises:
        StoreError: If the index cannot be read.
    """
    if len(query.tokens) > _LONGEST_ASKED:
        return (), ()
    shown = [folded(text) for text in texts]
    names = [name for name in query.identifiers if not _stands_in(shown, name)]
    parts = {part for name in query.identifiers for part in words(name)}
    others = [w for w in query.subject if w not in parts and not _stands_in(shown, w)]
    lacking: list[str] = []
    for word in [*names, *others][:_MOST_ASKED]:
        if len(lacking) < _MOST_REPORTED and await _lacks(store, word, filters):
            lacking.append(word)
    return (
        tuple(name for name in lacking if name in names),
        tuple(word for word in lacking if word not in names),
    )


def outside(names: Sequence[str], texts: Iterable[str]) -> tuple[str, ...]:
    """The names that stand in none of these texts, which may be newer than the index."""
    shown = [folded(text) for text in texts] if names else []
    return tuple(name for name in names if not _stands_in(shown, name))


def _stands_in(texts: Iterable[str], word: str) -> bool:
    spelled = folded(last_name(word))
    return any(spelled in text for text in texts)


async def _lacks(store: Store, word: str, filters: Filters) -> bool:
    """Whether no chunk contains `word`, in any spelling, or as a part of a longer word."""
    name = last_name(word)
    asked = [joined(name)] if name.isascii() else words(name)
    if not asked or not asked[0]:
        return False
    for each in asked:
        if not await store.matching([each], 1, filters):
            return not await store.has_text(name, filters)
    return False
