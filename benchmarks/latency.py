"""How long a query takes through `search_index`, with a warm worker and without any vectors.

    python benchmarks/latency.py --folder DIR [--chunks 20000] [--keep]

DIR is that of quality.py, whose packages and embeddings are used: nothing is embedded twice.
"""

import argparse
import os
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import anyio
import served
from corpora import fetch, labels_of
from kept import keep
from mcp import Client
from mcp.client.stdio import StdioServerParameters
from packages import CORPORA

QUERIES = 200
QUIET_SECONDS = 75  # after a minute of quiet the index is tidied, and its vectors indexed
BYTES_PER_CHUNK = 900  # of the packages, with what is skipped


def queries() -> list[str]:
    """Labelled queries of all packages in turn."""
    of_corpora = [[label["query"] for label in labels_of(corpus)] for corpus in CORPORA]
    longest = max(map(len, of_corpora))
    return [found[i] for i in range(longest) for found in of_corpora if i < len(found)][:QUERIES]


async def measure(project: Path, embeddings: Path, model: str, mode: str) -> dict[str, Any]:
    """Latencies in ms over `project` once everything that can be embedded is."""
    server = StdioServerParameters(
        command=sys.executable,
        args=["-m", "vector_index_mcp", "serve", "--foreground", str(project)],
        env={
            **os.environ,
            "VECTOR_INDEX_EMBEDDING_CACHE_DIR": str(embeddings),
            "VECTOR_INDEX_EMBEDDING_CACHE_MAX_MB": "4000",
            "VECTOR_INDEX_EMBEDDING_MODEL": model,
        },
    )
    async with Client(server) as client:
        while True:
            status = await served.status(client)
            chunks, embedded = status["indexed_chunk_count"], status["embedded_chunk_count"]
            if status["status"] == "WATCHING" and chunks:
                answer = await client.call_tool("search_index", {"query": "warm up"})
                assert answer.structured_content is not None
                is_complete = mode == "lexical" or embedded == chunks
                if is_complete and answer.structured_content["mode"] == mode:
                    break
            await anyio.sleep(1)
        await anyio.sleep(QUIET_SECONDS)
        taken = []
        for query in queries():
            start = time.perf_counter()
            answer = await client.call_tool("search_index", {"query": query})
            taken.append((time.perf_counter() - start) * 1000)
            assert answer.structured_content is not None
            assert answer.structured_content["mode"] == mode, answer.structured_content["note"]
    taken.sort()
    return {
        "files": status["indexed_file_count"],
        "chunks": chunks,
        "median_ms": round(statistics.median(taken), 1),
        "p95_ms": round(taken[int(len(taken) * 0.95)], 1),
        "worst_ms": round(taken[-1], 1),
    }


def build_project(folder: Path, target: Path, chunks: int) -> None:
    """Copy packages until about `chunks` chunks are together."""
    size = 0
    for corpus in CORPORA:
        source = fetch(corpus, folder / "sources")
        shutil.copytree(source, target / corpus.name, symlinks=True)
        size += sum(f.stat().st_size for f in source.rglob("*") if f.suffix != ".map")
        if size > chunks * BYTES_PER_CHUNK:
            return


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, required=True, help="that of quality.py")
    parser.add_argument("--chunks", type=int, default=20_000)
    parser.add_argument("--keep", action="store_true", help="write the results to results/")
    arguments = parser.parse_args()
    folder = arguments.folder.resolve()
    with tempfile.TemporaryDirectory() as temporary:
        project = Path(temporary, "project")
        build_project(folder, project, arguments.chunks)
        found: dict[str, Any] = {}
        for mode, model in (("lexical", "no-such-model"), ("hybrid", "all-MiniLM-L6-v2")):
            found[mode] = anyio.run(measure, project, folder / "embeddings", model, mode)
            print(mode, found[mode], flush=True)
    if arguments.keep:
        print(f"kept in {keep('latency', found).name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
