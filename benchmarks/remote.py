"""What an index on object storage costs: time, requests and bytes of what is done with it.

    python benchmarks/remote.py [--chunks 100000] [--rtt 20]

A server of buckets runs in memory on this machine; a proxy lets every request wait for RTT ms and
counts. Random words and vectors, as many as a project of so many chunks has. Without BUCKETS_PORT
(tests/buckets.py) the server is a mock and takes its own time: requests and bytes are those of any
server, times are upper bounds.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
import urllib.request
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import anyio
import numpy as np
from kept import keep
from scale import Source, document_of, find, record_of, vectors_of

from vector_index_mcp.engine.store import Index
from vector_index_mcp.engine.store.index import Manifest
from vector_index_mcp.engine.types import Chunk, Document, ModelIdentity

CHUNKS_PER_FILE, FILES_PER_COMMIT, WORDS_PER_CHUNK = 10, 500, 60
QUERIES, SAVES = 20, 10
MODEL = ModelIdentity("random", "00", 384)

Figures = dict[str, float]
sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))


def documents(chunks: int) -> Iterator[Document]:
    """Files of random words, of which few are in many."""
    chance = np.random.default_rng(1)
    for file in range(chunks // CHUNKS_PER_FILE):
        made = []
        for place in range(CHUNKS_PER_FILE):
            words = chance.zipf(1.3, WORDS_PER_CHUNK) % 50_000
            text = " ".join(f"word{number}" for number in words)
            made.append(Chunk(text, place * 20 + 1, place * 20 + 20, f"f{file}", ()))
        yield document_of(Source(f"part{file % 50}/file{file}.py", tuple(made)))


async def write(index: Index, some: list[Document], revision: int) -> None:
    """A batch, as the service commits it."""
    vectors = vectors_of(entry.chunk_hash for each in some for entry in each.entries)
    await index.store.replace(some, revision, vectors)
    await index.store.put_records([record_of(each) for each in some])


class Counter:
    """What the proxy has counted of what is done."""

    def __init__(self, port: int) -> None:
        self._url = f"http://127.0.0.1:{port}/-/counted"
        self.figures: dict[str, Figures] = {}

    def _counted(self) -> list[int]:
        with urllib.request.urlopen(self._url) as answer:
            return list(json.load(answer))

    async def of(self, what: str, times: int, work: Callable[[int], Awaitable[object]]) -> None:
        """Note the median and the 95th percentile of some times, and the means of the rest."""
        taken: list[float] = []
        self._counted()
        for number in range(times):
            began = time.perf_counter()
            await work(number)
            taken.append(time.perf_counter() - began)
        requests, up, down = self._counted()
        self.figures[what] = {
            "p50, ms": statistics.median(taken) * 1000,
            "p95, ms": sorted(taken)[max(0, round(0.95 * times) - 1)] * 1000,
            "requests": requests / times,
            "MB up": up / times / 1e6,
            "MB down": down / times / 1e6,
        }


async def measure(uri: str, chunks: int, counter: Counter) -> None:
    index = await Index.create(uri, Manifest("", "", model=MODEL), 1)
    waiting: list[Document] = []
    all_of_them = documents(chunks)
    revision, first = 0, next(all_of_them)
    for document in all_of_them:
        waiting.append(document)
        if len(waiting) == FILES_PER_COMMIT:
            revision, waiting = revision + 1, await _written(index, waiting, revision + 1)
    await write(index, waiting, revision + 1)
    await counter.of("first maintenance", 1, lambda _: index.store.maintain())

    async def ask_cold(number: int) -> None:
        await _session_forgotten()
        opened = await Index.open(uri)
        assert opened is not None
        await find(opened.store, f"word{number + 40} word{number + 900}")

    async def ask(number: int) -> None:
        await find(reader.store, f"word{number + 50} word{number + 700}")

    async def save(number: int) -> None:
        await write(index, [first], 1_000 + number)

    await counter.of("search, cold, with opening", 3, ask_cold)
    reader = await Index.open(uri)
    assert reader is not None
    await ask(-1)
    await counter.of("search, warm", QUERIES, ask)
    await counter.of("save of a file", SAVES, save)
    await counter.of("maintenance", 1, lambda _: index.store.maintain())
    await counter.of("opening for writing", 1, lambda _: Index.open(uri, 2))


async def _written(index: Index, some: list[Document], revision: int) -> list[Document]:
    await write(index, some, revision)
    return []


async def _session_forgotten() -> None:
    from vector_index_mcp.engine.store import tables

    tables._session.cache_clear()


def main() -> int:
    from buckets import bucket_server, variables

    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--chunks", type=int, default=100_000)
    parser.add_argument("--rtt", type=float, default=20)
    server_name = "unknown" if "BUCKETS_PORT" in os.environ else "moto"
    parser.add_argument("--server", default=server_name, help="its name, for the results")
    given = parser.parse_args()
    with bucket_server() as server:
        uri = f"{server.new_bucket()}/index"
        proxy = [sys.executable, str(Path(__file__).with_name("roundtrip.py"))]
        command = [*proxy, str(server.port), str(given.rtt)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            port = int(process.stdout.readline())
            os.environ.update(variables(port))
            counter = Counter(port)
            try:
                anyio.run(measure, uri, given.chunks, counter)
            finally:
                process.kill()
    for what, figures in counter.figures.items():
        print(f"| {what} | " + " | ".join(f"{value:,.1f}" for value in figures.values()) + " |")
    what = {"chunks": given.chunks, "rtt_ms": given.rtt, "server": given.server}
    command = f"python benchmarks/remote.py --chunks {given.chunks} --rtt {given.rtt:g}"
    keep(f"remote-{given.chunks}", {**what, "figures": counter.figures}, command)
    return 0


if __name__ == "__main__":
    sys.exit(main())
