"""How fast documents are found: 10,000 files of Markdown, 50 MB, in each way, and over REST.

    python benchmarks/documents_speed.py --folder DIR --words COLLECTION [--files N] [--keep]

The files are made of the words of COLLECTION (as in `documents.py`), 80 in a row. Their vectors are
random, and a query's takes 11 ms as that of all-MiniLM-L6-v2 does here (`latency.py`): a model
would take an hour for as many chunks, and what is measured would be the same.
"""

import argparse
import json
import random
import re
import shutil
import statistics
import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import numpy as np
from documents import loaded
from kept import keep

from vector_index_mcp.documents import asking
from vector_index_mcp.documents.configuration import read
from vector_index_mcp.documents.home import Home
from vector_index_mcp.documents.remedies import REMEDIES
from vector_index_mcp.documents.service import Documents
from vector_index_mcp.engine.models.cache import EmbeddingCache
from vector_index_mcp.engine.types import ModelIdentity, Vectors
from vector_index_mcp.indexing.options import Options
from vector_index_mcp.indexing.preparing.recipe import Recipe
from vector_index_mcp.serving import sets
from vector_index_mcp.serving.lazily import Lazily
from vector_index_mcp.serving.ports import Ports
from vector_index_mcp.serving.server import build_server

_WORDS_IN_A_ROW = 80
_BYTES = 5_000  # of a file, at least
_QUERIES = 150
_SAVES = 20
_CLIENTS, _REQUESTS = 16, 25
_EMBEDDING_SECONDS = 0.011
_DIMENSION = 384
# A process of its own: clients that share the service's would be measured with it.
_CROWD = """
import asyncio, json, sys, time, httpx
url, queries, clients = sys.argv[1], json.loads(sys.argv[2]), int(sys.argv[3])
async def ask(client, own):
    times = []
    for query in own:
        began = time.perf_counter()
        answer = await client.post(url, json={"query": query})
        times.append(time.perf_counter() - began)
        assert answer.status_code == 200 and "results" in answer.json(), answer.text
    return times
async def main():
    limits = httpx.Limits(max_connections=clients)
    async with httpx.AsyncClient(timeout=60, limits=limits) as client:
        found = await asyncio.gather(*(ask(client, queries[n::clients]) for n in range(clients)))
    print(json.dumps([seconds for each in found for seconds in each]))
asyncio.run(main())
"""


class Random:
    """Vectors that mean nothing, as fast as they can be had."""

    state, reason, precision, pid, has_reranker = "ready", "", "float32", None, False

    def __init__(self) -> None:
        self._random = np.random.default_rng(0)

    @asynccontextmanager
    async def running(self) -> AsyncIterator["Random"]:
        """There is nothing to start."""
        yield self

    def start(self) -> None:
        """It is ready."""

    retry = start

    async def identity(self) -> ModelIdentity:
        """A model that does not exist."""
        return ModelIdentity("random", "0" * 64, _DIMENSION)

    identity_at_hand = identity

    async def embed(self, texts: Sequence[str], *, are_queries: bool = False) -> Vectors:
        """Vectors of length 1; a query's take as long as a model takes."""
        if are_queries:
            await anyio.sleep(_EMBEDDING_SECONDS)
        vectors = self._random.normal(size=(len(texts), _DIMENSION)).astype("<f4")
        return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True))


class Text:
    """Text of a collection's words."""

    def __init__(self, collection: Path) -> None:
        documents = loaded(collection).documents.values()
        self._words = re.findall(r"[a-z]+", " ".join(text for _, text in documents).lower())
        self._random = random.Random(1)

    def some(self, least: int, most: int) -> str:
        """So many words, each at random."""
        return " ".join(self._random.sample(self._words, self._random.randint(least, most)))

    def document(self) -> str:
        """A document of some sections."""
        parts, size = [f"# {self.some(4, 6)}\n"], 0
        while size < _BYTES:
            start = self._random.randrange(len(self._words) - _WORDS_IN_A_ROW)
            paragraph = " ".join(self._words[start : start + _WORDS_IN_A_ROW])
            if self._random.random() < 0.25:
                parts.append(f"## {self.some(3, 3)}\n")
            parts.append(f"{paragraph}\n")
            size += len(paragraph)
        return "\n".join(parts)


def percentiles(seconds: Sequence[float]) -> dict[str, float]:
    """Median and 95th percentile, in milliseconds."""
    p95 = statistics.quantiles(seconds, n=20)[-1]
    return {"p50_ms": 1_000 * statistics.median(seconds), "p95_ms": 1_000 * p95}


async def measure(documents: Documents, text: Text, files: Sequence[Path]) -> dict[str, Any]:
    """Everything, in the order in which it happens to somebody."""

    async def load() -> Documents:
        return documents

    service = Lazily(load)
    tool_set = sets.named(sets.DOCUMENTS)
    ports = Ports(tool_set, build_server(tool_set, service), service)
    began = time.perf_counter()
    found: dict[str, Any] = {"files": len(files)}
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(service.run)
        tasks.start_soon(ports.run)
        await service.get()
        await _timed(documents, "boundary layer", asking.Mode.WORDS)
        found["first_answer_seconds"] = time.perf_counter() - began
        run = await documents.index.trigger(force_reindex=False)
        await run.finished.wait()
        found["text_complete_seconds"] = time.perf_counter() - began
        await documents.embed()
        await documents.index.tidy()
        found["chunks"] = documents.index.progress.chunks
        queries = [text.some(2, 7) for _ in range(_QUERIES)]
        for mode in asking.Mode:
            times = [await _timed(documents, query, mode) for query in queries]
            found[mode.value] = percentiles(times[_QUERIES // 10 :])
        for mode in ("search", "query"):
            asked = [text.some(2, 7) for _ in range(_CLIENTS * _REQUESTS)]
            found[f"{mode}, {_CLIENTS} clients"] = percentiles(await _by_rest(ports, mode, asked))
        found["save to found"] = percentiles([await _saved(documents, f) for f in files[:_SAVES]])
        tasks.cancel_scope.cancel()
    return found


async def _timed(documents: Documents, query: str, mode: asking.Mode) -> float:
    began = time.perf_counter()
    await asking.search(documents, asking.Wanted(query, mode))
    return time.perf_counter() - began


async def _saved(documents: Documents, file: Path) -> float:
    """How long after a save its text is found."""
    # Of letters alone: digits would be words of their own, which others have.
    word = "zz" + "".join(chr(ord("a") + int(digit)) for digit in file.stem if digit.isdigit())
    wanted = asking.Wanted(word, asking.Mode.WORDS)
    began = time.perf_counter()
    await anyio.Path(file).write_text(f"# Changed\n\n{word}\n", "utf-8")
    while not (await asking.search(documents, wanted)).found:
        await anyio.sleep(0.005)
    return time.perf_counter() - began


async def _by_rest(ports: Ports, mode: str, queries: Sequence[str]) -> list[float]:
    """How long each request takes when `_CLIENTS` ask at once; all must be answered."""
    async with ports.opened({"host": "127.0.0.1", "port": 0, "token": ""}) as told:
        url = f"http://127.0.0.1:{told['port']}/{mode}"
        command = [sys.executable, "-c", _CROWD, url, json.dumps([*queries]), str(_CLIENTS)]
        done = await anyio.run_process(command)
    times: list[float] = json.loads(done.stdout)
    return times


def documents_in(folder: Path) -> Documents:
    """The documents of `folder / documents`, with an index that does not exist yet."""
    for old in ("index.lancedb", "state", "cache"):
        shutil.rmtree(folder / old, ignore_errors=True)
    configuration = folder / "index.yml"
    path = json.dumps(str(folder / "documents"))
    configuration.write_text(f"collections:\n  all:\n    path: {path}\n", "utf-8")
    options = Options(
        recipe=Recipe(1_200, is_prose=True),
        quiet_seconds=0.2,
        longest_seconds=2.0,
        rescan_seconds=300.0,
        state_folder=folder / "state",
        remedies=REMEDIES,
    )
    home = Home("index", configuration, str(folder / "index.lancedb"))
    cache = EmbeddingCache(folder / "cache", 1_000_000_000)
    return Documents(home, read(configuration), options, Random(), cache)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--words", type=Path, required=True)
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument("--keep", action="store_true")
    chosen = parser.parse_args()
    folder, text = chosen.folder.resolve() / "documents-speed", Text(chosen.words)
    files = [folder / "documents" / f"part-{n % 100}" / f"note-{n}.md" for n in range(chosen.files)]
    for file in files:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text.document(), "utf-8")
    began = time.perf_counter()
    size = sum(len(file.read_bytes()) for file in files)
    reading = time.perf_counter() - began
    found = anyio.run(measure, documents_in(folder), text, files)
    found |= {"megabytes": size / 1e6, "reading_seconds": reading}
    for name, value in found.items():
        shown = value if isinstance(value, dict) else {"": value}
        print(f"{name:24}", *(f"{part} {number:,.2f}" for part, number in shown.items()))
    if chosen.keep:
        keep("documents-speed", found)


if __name__ == "__main__":
    main()
