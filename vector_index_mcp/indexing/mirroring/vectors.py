"""Whether the vectors that another machine has made are those of this machine's model."""

import random

import numpy as np

from vector_index_mcp.engine.embedder import Embedder
from vector_index_mcp.engine.fields import embedded_text
from vector_index_mcp.engine.store import Store
from vector_index_mcp.indexing.ledger import CLAIMED, Ledger

_SAMPLES = 32
_LEAST_COSINE = 0.99  # between two precisions of one model it is 0.999


async def are_true(store: Store, ledger: Ledger, embedder: Embedder) -> bool:
    """Whether vectors of some chunks, chosen at random, are what the model makes of them.

    Args:
        store: Where the vectors are.
        ledger: Of its files. Those that were not compared with the disk yet are left out.
        embedder: The model.

    Raises:
        EmbeddingError: If the model makes none now.
        StoreError: If the index cannot be read.
    """
    known = [record for record, lacking in ledger.all() if record.chunk_count > lacking]
    keys = [record.key for record in known if record.stamp != CLAIMED]
    rows = await store.rows(random.sample(keys, min(_SAMPLES, len(keys))))
    chosen = [
        random.choice(present)
        for of_file in rows.values()
        if (present := [(c, v) for c, v in of_file if v is not None])
    ]
    texts = [embedded_text(chunk.key, chunk.scope, chunk.text) for chunk, _ in chosen]
    if not texts:
        return True
    made = await embedder.embed(texts)
    stored = np.stack([vector for _, vector in chosen])
    # Not so for what is no number.
    return bool(((made * stored).sum(axis=1) >= _LEAST_COSINE).all())
