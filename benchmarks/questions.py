"""Ten questions a person might ask of real sources, and where the answer stands.

Indexes the installed sources of six packages (over 500 files) through a real stdio client, asks
the questions, then the same identifiers in several spellings, and prints at which rank the right
file came. Run it with `make questions`; the results are kept in `results/`.
"""

import argparse
import importlib.metadata
import importlib.util
import os
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path

import anyio
from kept import keep
from mcp import Client, StdioServerParameters

PACKAGES = ("mcp", "starlette", "anyio", "pydantic", "sentence_transformers", "lancedb")

QUESTIONS = {
    "How is the preflight request for cross-origin resource sharing answered?": [
        "starlette/middleware/cors.py"
    ],
    "Where is the response compressed with gzip?": ["starlette/middleware/gzip.py"],
    "How are signed cookies used to keep a session?": ["starlette/middleware/sessions.py"],
    "Where are uploaded files parsed out of a multipart form?": ["starlette/formparsers.py"],
    "How does a synchronous function run in a worker thread without blocking the event loop?": [
        "anyio/to_thread.py",
        "anyio/_backends/_asyncio.py",
    ],
    "How is a JSON schema generated for a model?": ["pydantic/json_schema.py"],
    "Which class limits how many tasks may use a resource at the same time?": [
        "anyio/_core/_synchronization.py"
    ],
    "How are several search results merged with reciprocal rank fusion?": [
        "lancedb/rerankers/rrf.py",
        "sentence_transformers/sparse_encoder/evaluation/reciprocal_rank_fusion.py",
    ],
    "Where are token embeddings averaged into one sentence embedding?": [
        "sentence_transformers/sentence_transformer/modules/pooling.py",
    ],
    "How does the server read JSON-RPC messages from standard input?": ["mcp/server/stdio.py"],
}

IDENTIFIERS = {
    "starlette/middleware/trustedhost.py": ["TrustedHostMiddleware", "trusted_host_middleware"],
    "anyio/_core/_tasks.py": ["move_on_after", "moveOnAfter", "move on after"],
    "pydantic/functional_validators.py": ["BeforeValidator", "before_validator"],
    "lancedb/merge.py": ["LanceMergeInsertBuilder", "lance_merge_insert_builder"],
    "starlette/staticfiles.py": ["StaticFiles", "static_files", "STATIC_FILES"],
}


def copy_sources(folder: Path) -> int:
    for package in PACKAGES:
        spec = importlib.util.find_spec(package)
        assert spec is not None and spec.submodule_search_locations is not None
        shutil.copytree(
            spec.submodule_search_locations[0],
            folder / package,
            ignore=shutil.ignore_patterns("__pycache__", "*.so"),
        )
    return sum(path.is_file() for path in folder.rglob("*"))


def rank_of(results: list[dict[str, object]], expected: list[str]) -> int:
    """1-based rank of the first hit in an expected file, files counted; 0 if there is none."""
    files = list(dict.fromkeys(str(hit["file_path"]) for hit in results))
    return next((rank for rank, file in enumerate(files, 1) if file in expected), 0)


async def ask(client: Client, query: str, expected: list[str]) -> int:
    answer = await client.call_tool("search_index", {"query": query, "top_k": 5})
    assert answer.structured_content is not None
    assert answer.structured_content["mode"] == "hybrid", answer.structured_content["note"]
    return rank_of(answer.structured_content["results"], expected)


async def seconds_to_find_a_save(client: Client, project: Path, number: int) -> float:
    """From saving a file to the first answer with its new text."""
    word = f"quagga{'abcdefghij'[number]}"
    (project / "saved.py").write_text(f"def {word}():\n    pass\n", encoding="utf-8")
    start = time.perf_counter()
    while True:
        answer = await client.call_tool("search_index", {"query": word, "top_k": 1})
        assert answer.structured_content is not None
        hits = answer.structured_content["results"]
        if hits and word in hits[0]["extracted_text_chunk"]:
            return time.perf_counter() - start


async def measure(project: Path, cache: Path) -> dict[str, object]:
    server = StdioServerParameters(
        command=sys.executable,
        args=["-m", "vector_index_mcp", str(project)],
        env={**os.environ, "VECTOR_INDEX_EMBEDDING_CACHE_DIR": str(cache)},
    )
    start = time.perf_counter()
    async with Client(server) as client:
        initialized = time.perf_counter() - start
        while True:
            status = (await client.call_tool("get_status", {})).structured_content
            assert status is not None
            chunks, embedded = status["indexed_chunk_count"], status["embedded_chunk_count"]
            done = status["status"] == "WATCHING" and chunks and embedded == chunks
            if done and status["model"]["state"] == "ready":
                break
            await client.call_tool("search_index", {"query": "warm up"})
            await anyio.sleep(1)
        seconds = time.perf_counter() - start
        saves = [await seconds_to_find_a_save(client, project, number) for number in range(10)]
        questions = {q: await ask(client, q, files) for q, files in QUESTIONS.items()}
        identifiers = {
            spelling: await ask(client, spelling, [file])
            for file, spellings in IDENTIFIERS.items()
            for spelling in spellings
        }
    return {
        "files": status["indexed_file_count"],
        "chunks": chunks,
        "seconds_to_initialize": round(initialized, 2),
        "seconds_to_index_and_embed": round(seconds, 1),
        "seconds_from_save_to_found_median": round(statistics.median(saves), 2),
        "seconds_from_save_to_found_longest": round(max(saves), 2),
        "questions": questions,
        "identifiers": identifiers,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keep", action="store_true", help="write the results to results/")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        project = Path(folder) / "project"
        copy_sources(project)
        found = anyio.run(measure, project, Path(folder) / "cache")
    print(
        f"{found['files']} files, {found['chunks']} chunks, indexed and embedded in "
        f"{found['seconds_to_index_and_embed']} s"
    )
    print(
        f"initialize: {found['seconds_to_initialize']} s; from save to found: "
        f"{found['seconds_from_save_to_found_median']} s (median of 10)"
    )
    for name in ("questions", "identifiers"):
        ranks = found[name]
        assert isinstance(ranks, dict)
        print(
            f"\n{name}: {sum(0 < rank <= 5 for rank in ranks.values())} of {len(ranks)} in the "
            "first 5 files"
        )
        for query, rank in ranks.items():
            print(f"  {rank or '-':>2}  {query}")
    if arguments.keep:
        found["versions"] = {
            name: importlib.metadata.version(name.replace("_", "-")) for name in PACKAGES
        }
        print(f"kept in {keep('questions', found).name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
