"""Samples of another machine's vectors, to compare them with those of this machine's model."""

import random
from collections import Counter

from vector_index_mcp.engine.store import Store
from vector_index_mcp.engine.text.fields import embedded_text
from vector_index_mcp.engine.types import Vector
from vector_index_mcp.files.scan import CLAIMED
from vector_index_mcp.indexing.ledger import Ledger

_SAMPLES = 32


async def samples_of(store: Store, ledger: Ledger) -> list[tuple[str, Vector]]:
    """At most 32 chunks, chosen at random: the text that is embedded, and the vector of each.

    Args:
        store: The store with the vectors.
        ledger: What is known of its files. Files with the stamp CLAIMED are left out.

    Raises:
        StoreError: If the index cannot be read.
    """
    embedded = {
        record.key: record.chunk_count - lacking
        for record, lacking in ledger.all()
        if record.chunk_count > lacking and record.stamp != CLAIMED
    }
    if not embedded:
        return []
    # Files are weighted by their chunks, so that each chunk is equally likely.
    chosen = Counter(random.choices([*embedded], [*embedded.values()], k=_SAMPLES))
    found: list[tuple[str, Vector]] = []
    for key, rows in (await store.rows(chosen)).items():
        present = [(chunk, vector) for chunk, vector in rows if vector is not None]
        found += [
            (embedded_text(chunk.key, chunk.scope, chunk.text), vector)
            for chunk, vector in random.sample(present, min(chosen[key], len(present)))
        ]
    return found
