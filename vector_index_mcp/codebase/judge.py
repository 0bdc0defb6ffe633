"""Has a cross-encoder reorder the best hits for a question in words."""

from collections.abc import Sequence

from vector_index_mcp.codebase.wanted import Wanted
from vector_index_mcp.engine.models.embedder import Embedder
from vector_index_mcp.engine.ranking.reranking import JUDGED, by_both
from vector_index_mcp.engine.text.fields import embedded_text
from vector_index_mcp.engine.types import Hit
from vector_index_mcp.indexing.answering.judging import judged


class Judge:
    """Reorders hits by the cross-encoder; does nothing if none is configured."""

    def __init__(self, embedder: Embedder, seconds: float) -> None:
        """Prepare; the cross-encoder is loaded when it is first needed.

        Args:
            embedder: Has the cross-encoder, if one is configured.
            seconds: How long a search waits for it.
        """
        self._embedder, self._seconds = embedder, seconds

    def most(self, wanted: Wanted, most: int) -> int:
        """How many hits to find if `most` are wanted; more if they will be reordered."""
        return max(most, JUDGED) if self._has_a_say(wanted) else most

    async def ranked(self, wanted: Wanted, hits: Sequence[Hit]) -> tuple[list[Hit], str]:
        """Rank the hits.

        Only for questions in words: identifiers, paths and quotations match by their letters, about
        which a cross-encoder could only guess. A hit that leads is not judged, and keeps its place.

        Returns:
            The hits in their final order, and why the cross-encoder did not rank them; empty if it
            did, or did not have to.
        """
        if not self._has_a_say(wanted):
            return [*hits], ""
        leads = sum(hit.leads for hit in hits)
        led, first, rest = hits[:leads], hits[leads:JUDGED], hits[JUDGED:]
        texts = [embedded_text(c.key, c.scope, c.text) for c in (hit.chunk for hit in first)]
        judgement = await judged(
            self._embedder, wanted.query.text, texts, self._seconds, waits_to_load=False
        )
        if judgement.scores is None:
            return [*hits], judgement.lack
        return [*led, *by_both(first, judgement.scores), *rest], ""

    def _has_a_say(self, wanted: Wanted) -> bool:
        is_question = wanted.sample is None and wanted.query.is_question
        return is_question and self._embedder.has_reranker
