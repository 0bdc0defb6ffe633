"""Searches prose: by words or by meaning alone, or by both, for each wording of a query."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import TypeVar

from vector_index_mcp.engine.prose import ranking
from vector_index_mcp.engine.prose.fragments import without_fragments
from vector_index_mcp.engine.prose.ranking import CANDIDATES, Fusion, Variant
from vector_index_mcp.engine.prose.stems import asked_stems
from vector_index_mcp.engine.ranking.search import both_searches
from vector_index_mcp.engine.store import Store
from vector_index_mcp.engine.types import Candidate, Filters, Hit, Vector

_CANDIDATES_PER_DOCUMENT = 5  # candidates are chunks, of which a document has several
_MOST_CANDIDATES = 6_400  # two long documents may have thousands of similar chunks

_Found = TypeVar("_Found")


class Search:
    """A query and where it is searched for. A search raises StoreError if the store is unreadable.

    Args:
        store: The store to search.
        query: The query.
        filters: Which chunks count.
        wanted: How many documents to find.
    """

    def __init__(self, store: Store, query: str, filters: Filters, wanted: int) -> None:
        self._store = store
        self._query = query
        self._stems = asked_stems(query)
        self._filters = filters
        self._wanted = wanted

    async def by_words(self) -> list[Hit]:
        """Return the best chunks of the best documents by full-text search."""

        async def look(most: int) -> tuple[list[Hit], int, bool]:
            found = await self._store.matching(self._stems, most, self._filters)
            hits = ranking.by_words(await self._without_fragments(found, most))
            return hits, len(hits), len(found) == most

        return (await self._deep_enough(look))[: self._wanted]

    async def by_meaning(self, vector: Vector) -> list[Hit]:
        """Return the best chunks of the best documents by vector search.

        Args:
            vector: The query's embedding.
        """

        async def look(most: int) -> tuple[list[Hit], int, bool]:
            found = await self._store.nearest(vector, most, self._filters)
            hits = ranking.by_meaning(found)
            return hits, len(hits), len(found) == most

        return (await self._deep_enough(look))[: self._wanted]

    async def by_both(
        self, vector: Vector, chunk_count: int, others: Sequence[tuple[str, Vector]] = ()
    ) -> Fusion:
        """Fuse what both searches find, for the query and for its other wordings.

        Args:
            vector: The query's embedding.
            chunk_count: How many chunks the index has.
            others: Other wordings of the query, with their embeddings.
        """

        async def look(most: int) -> tuple[Fusion, int, bool]:
            wordings = [(self._stems, vector), *((asked_stems(words), v) for words, v in others)]
            variants = [await self._variant(*each, most) for each in wordings]
            is_more = any(most in (len(v.lexical), len(v.semantic)) for v in variants)
            # The other wordings have no names, for they are a model's words.
            telling = await self._without_fragments(variants[0].lexical, most)
            variants[0] = replace(variants[0], lexical=telling)
            found = [c for each in variants for c in (*each.lexical, *each.semantic)]
            vectors = await self._store.vectors_of({c.chunk.document_id for c in found})
            fusion = Fusion(variants, vectors, chunk_count)
            return fusion, len(fusion.fused), is_more

        return await self._deep_enough(look)

    async def _variant(self, stems: Sequence[str], vector: Vector, most: int) -> Variant:
        async def words() -> Sequence[str]:
            return stems

        async def embedded() -> Vector:
            return vector

        lexical, semantic = await both_searches(self._store, words, embedded, most, self._filters)
        return Variant(len(stems), lexical, semantic, vector)

    async def _without_fragments(self, found: Sequence[Candidate], most: int) -> list[Candidate]:
        return await without_fragments(
            found, self._query, self._stems, self._store, most, self._filters
        )

    async def _deep_enough(
        self, look: Callable[[int], Awaitable[tuple[_Found, int, bool]]]
    ) -> _Found:
        """Search as deep as it takes; a single document may have most of the best chunks.

        Args:
            look: Looks at so many candidates; returns what it found, how many documents that are,
                and whether more candidates may show more.
        """
        most = max(CANDIDATES, _CANDIDATES_PER_DOCUMENT * self._wanted)
        while True:
            found, count, is_more = await look(most)
            if count >= self._wanted or not is_more or most >= _MOST_CANDIDATES:
                return found
            most *= 4
