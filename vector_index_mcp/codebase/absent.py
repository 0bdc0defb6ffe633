"""What of a query stands nowhere: without that being said, the nearest looks like a hit."""

from collections.abc import Iterable, Sequence

from vector_index_mcp.engine.query import Query
from vector_index_mcp.engine.spelling import folded
from vector_index_mcp.engine.store import Store
from vector_index_mcp.engine.types import Filters
from vector_index_mcp.engine.words import joined, last_name, words

_MOST_ASKED = 6  # words that no hit holds; a question to the index for each, 2 ms
_MOST_TOLD = 3  # of them; for each, all texts are looked through
_LONGEST_ASKED = 12  # words of a query; of a pasted log nobody wants to know


async def absent(
    store: Store, query: Query, texts: Sequence[str], filters: Filters
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The identifiers of `query` that no chunk holds, and its other words.

    Args:
        store: Where to look.
        query: What was asked.
        texts: Of the best hits, with their paths: what one of them holds need not be looked for.
        filters: Which chunks count.

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
        if len(lacking) < _MOST_TOLD and await _lacks(store, word, filters):
            lacking.append(word)
    return (
        tuple(name for name in lacking if name in names),
        tuple(word for word in lacking if word not in names),
    )


def _stands_in(texts: Iterable[str], word: str) -> bool:
    spelled = folded(last_name(word))
    return any(spelled in text for text in texts)


async def _lacks(store: Store, word: str, filters: Filters) -> bool:
    """Whether no chunk holds `word`, in any spelling, nor anything that it is a part of."""
    name = last_name(word)
    asked = [joined(name)] if name.isascii() else words(name)
    if not asked or not asked[0]:
        return False
    for each in asked:
        if not await store.matching([each], 1, filters):
            return not await store.has_text(name, filters)
    return False
