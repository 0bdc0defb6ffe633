"""Runs both searches for each wording of a query, and fuses what they find."""

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from vector_index_mcp.engine.prose.ranking import CANDIDATES, Fusion, Variant
from vector_index_mcp.engine.search import both_searches
from vector_index_mcp.engine.store import Store
from vector_index_mcp.engine.types import Filters, Vector

_CANDIDATES_PER_DOCUMENT = 5  # candidates are chunks, of which a document has several
_MOST_CANDIDATES = 6_400  # two long documents may have thousands of similar chunks

_Found = TypeVar("_Found")


async def deep_enough(
    look: Callable[[int], Awaitable[tuple[_Found, int, bool]]], wanted: int
) -> _Found:
    """Search as deep as it takes to find `wanted` documents; one may have most of the best chunks.

    Args:
        look: Looks at so many candidates; returns what it found, how many documents that are, and
            whether more candidates may show more.
        wanted: How many documents are wanted.
    """
    most = max(CANDIDATES, _CANDIDATES_PER_DOCUMENT * wanted)
    while True:
        found, count, is_more = await look(most)
        if count >= wanted or not is_more or most >= _MOST_CANDIDATES:
            return found
        most *= 4


async def variant(
    store: Store, stems: Sequence[str], vector: Vector, most: int, filters: Filters
) -> Variant:
    """Search for one wording by words and by meaning.

    Args:
        store: The store to search.
        stems: The stems of the wording's words.
        vector: The wording's embedding.
        most: How many chunks of each search at most.
        filters: Which chunks count.

    Raises:
        StoreError: If the store cannot be read.
    """

    async def words() -> Sequence[str]:
        return stems

    async def embedded() -> Vector:
        return vector

    lexical, semantic = await both_searches(store, words, embedded, most, filters)
    return Variant(len(stems), lexical, semantic, vector)


async def fused(store: Store, variants: Sequence[Variant], chunk_count: int) -> Fusion:
    """Fuse the candidates of all wordings.

    Args:
        store: The store that was searched.
        variants: The wordings; the first is the query itself.
        chunk_count: How many chunks the index has.

    Raises:
        StoreError: If the store cannot be read.
    """
    found = [c for each in variants for c in (*each.lexical, *each.semantic)]
    vectors = await store.vectors_of({c.chunk.document_id for c in found})
    return Fusion(variants, vectors, chunk_count)
