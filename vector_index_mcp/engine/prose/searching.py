"""Both searches for one wording of a query, and what several of them find, fused."""

from collections.abc import Sequence

from vector_index_mcp.engine.prose.ranking import Fusion, Variant
from vector_index_mcp.engine.search import both_searches
from vector_index_mcp.engine.store import Store
from vector_index_mcp.engine.types import Filters, Vector


async def variant(
    store: Store, stems: Sequence[str], vector: Vector, most: int, filters: Filters
) -> Variant:
    """What both searches find for one wording.

    Args:
        store: Where to look.
        stems: Of its words.
        vector: What it means.
        most: Chunks of each search.
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
    """What was found for all wordings together.

    Args:
        store: Where it was found.
        variants: The first is the query itself.
        chunk_count: How many chunks the index has.

    Raises:
        StoreError: If the store cannot be read.
    """
    found = [c for each in variants for c in (*each.lexical, *each.semantic)]
    vectors = await store.vectors_of({c.chunk.document_id for c in found})
    return Fusion(variants, vectors, chunk_count)
