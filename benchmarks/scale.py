"""How the store behaves as it grows: building, queries, updates, maintenance, memory and disk.

    python benchmarks/scale.py --folder DIR [--sizes 10000 100000 500000] [--keep]

DIR is that of quality.py. The texts are the chunks of its packages; where they do not suffice, they
come again under other paths and with other identifiers. The vectors are SYNTHETIC: 1,000 random
centres with noise around them, so that no hours go into embedding. They show what vectors cost;
whether the right ones are found is told by comparison with all of them, not by labels.

Every size has a fresh index and a process of its own. The store is written as the service writes
it, and maintained when the service would: `is_overdue` while text is being committed,
`is_due` otherwise, `is_worthwhile` in the end.
"""

import argparse
import hashlib
import itertools
import multiprocessing
import os
import pickle
import random
import re
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import numpy as np
import psutil
from corpora import fetch, labels_of
from kept import keep, latest
from packages import CORPORA

from vector_index_mcp.engine.batched import batched
from vector_index_mcp.engine.chunk import chunk_text
from vector_index_mcp.engine.ranking.query import Query
from vector_index_mcp.engine.ranking.search import FEWEST_CANDIDATES, search
from vector_index_mcp.engine.store import Index, Store
from vector_index_mcp.engine.store.index import Manifest
from vector_index_mcp.engine.store.reach import Reach
from vector_index_mcp.engine.store.tables import connect, table_names
from vector_index_mcp.engine.text.fields import entries
from vector_index_mcp.engine.types import (
    NO_FILTERS,
    Chunk,
    Document,
    FileRecord,
    Filters,
    ModelIdentity,
    Vector,
    Vectors,
)
from vector_index_mcp.files.folder import Folder, Reading
from vector_index_mcp.files.language import language_of
from vector_index_mcp.files.read import Text, read
from vector_index_mcp.processes import memory

SIZES = (10_000, 100_000, 500_000)
FILES_PER_BATCH = 200
CHUNKS_PER_FILL = 256  # as the service commits them
CHUNK_CHARS, FILE_BYTES = 1_200, 1_000_000
DIMENSION, CENTRES, NOISE = 384, 1_000, 0.8  # of two neighbours the cosine is 0.6
COSINE_ERROR = 1e-5  # of two ways to compute it
QUERIES, RECALL_QUERIES, TOP = 200, 100, 10
UPDATES, DELETIONS = 200, 50
UPDATES_OF_SMALL, UPDATES_OF_OTHERS, SMALL = 10_000, 2_000, 10_000
SAMPLE_SECONDS = 2
OLD_VERSIONS_SECONDS = 31  # after which the store drops what a commit has replaced
BELOW = Filters(path=r"^[^/]+/(src|lib)/")

_NAME = re.compile(r"\b[A-Za-z]\w*(?:_[A-Za-z\d]|[a-z][A-Z])\w*")

Figures = dict[str, float]
Found = dict[str, Figures]
"""Figures by what they are of, by table."""


# -- texts and vectors ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Source:
    """A file of a package, cut."""

    key: str
    chunks: tuple[Chunk, ...]

    def copied(self, copy: int) -> "Source":
        """The same file of another project: its names are others, its words are not."""

        def renamed(text: str) -> str:
            return _NAME.sub(rf"\g<0>{copy}", text)

        chunks = tuple(
            replace(
                chunk,
                text=renamed(chunk.text),
                scope=renamed(chunk.scope),
                symbols=tuple(map(renamed, chunk.symbols)),
            )
            for chunk in self.chunks
        )
        return Source(f"copy{copy}/{self.key}", chunks)

    def edited(self, edit: int) -> "Source":
        """This file with a line more in one of its chunks."""
        place = edit % len(self.chunks)
        chunk = self.chunks[place]
        changed = replace(chunk, text=f"{chunk.text}\n# edit_{edit}")
        return replace(self, chunks=(*self.chunks[:place], changed, *self.chunks[place + 1 :]))


def endless_edits(sources: Iterable[Source]) -> Iterator[Source]:
    """One of the first thousand files after another, each edited."""
    edited = list(itertools.islice(sources, 1_000))
    chooser = random.Random(0)
    while True:
        yield chooser.choice(edited).edited(chooser.randrange(10**9))


def document_of(source: Source) -> Document:
    """As the service stores it."""
    made = entries(source.key, source.chunks)
    return Document(
        key=source.key,
        original_path=source.key,
        content_hash=hashlib.sha256("".join(e.chunk_hash for e in made).encode()).hexdigest(),
        modified=0.0,
        language=language_of(source.key),
        entries=made,
    )


def record_of(document: Document) -> FileRecord:
    count = len(document.entries)
    return FileRecord(document.key, (0, 0, 0), document.content_hash, count, "indexed", "")


@dataclass(frozen=True, slots=True)
class Sources:
    """The files of all packages, mixed; on disk, so as not to count as the store's memory."""

    shelf: Path

    @classmethod
    def cut(cls, folder: Path, shelf: Path) -> "Sources":
        """Cut what lies below `folder` and put it into the file `shelf`."""
        places = [(c.name, fetch(c, folder / "sources")) for c in CORPORA]
        files = [(name, root, file) for name, root in places for file in root.rglob("*")]
        files.sort(key=lambda found: hashlib.sha256(str(found[2]).encode()).digest())
        with shelf.open("wb") as target:
            for name, root, file in files:
                key = file.relative_to(root).as_posix()
                found = read(Folder(root, reading=Reading(FILE_BYTES)), key)
                if file.is_file() and isinstance(found, Text) and found.text:
                    chunks = chunk_text(found.text, language_of(key), CHUNK_CHARS)
                    pickle.dump(Source(f"{name}/{key}", tuple(chunks)), target)
        return cls(shelf)

    def take(self, size: int) -> Iterator[Source]:
        """As many as together have `size` chunks."""
        for copy in itertools.count():
            for source in self._all():
                yield source.copied(copy) if copy else source
                size -= len(source.chunks)
                if size <= 0:
                    return

    def _all(self) -> Iterator[Source]:
        with self.shelf.open("rb") as source:
            while source.peek(1):
                yield pickle.load(source)


def _unit(vectors: Vectors) -> Vectors:
    unit: Vectors = vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)
    return unit


_CENTRES = _unit(np.random.default_rng(0).standard_normal((CENTRES, DIMENSION), np.float32))


def vector_of(digest: str) -> Vector:
    """The synthetic vector of a chunk, always the same."""
    seed = int(digest[:16], 16)
    noise = np.random.default_rng(seed).standard_normal(DIMENSION, np.float32)
    return _unit(_CENTRES[seed % CENTRES] + noise * np.float32(NOISE / DIMENSION**0.5))


def vectors_of(digests: Iterable[str]) -> dict[str, Vector]:
    return {digest: vector_of(digest) for digest in digests}


def texts_of_queries() -> list[str]:
    """Labelled queries of all packages."""
    texts = [label["query"] for corpus in CORPORA for label in labels_of(corpus)]
    return random.Random(0).sample(texts, QUERIES)


def vector_of_query(text: str) -> Vector:
    return vector_of(hashlib.sha256(text.encode()).hexdigest())


# -- what is measured of the process and the folder ----------------------------------------------


@contextmanager
def timed(into: list[float]) -> Iterator[None]:
    """Add the milliseconds it takes to `into`."""
    start = time.perf_counter()
    yield
    into.append(1000 * (time.perf_counter() - start))


def spread(what: str, taken: list[float]) -> Figures:
    """Median and 95th percentile."""
    return {
        f"{what}, median ms": statistics.median(taken),
        f"{what}, 95th percentile ms": sorted(taken)[int(len(taken) * 0.95)],
    }


def resident(what: str) -> Figures:
    """Of this process, now and at most so far."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    kilobytes = {line.split()[0]: int(line.split()[1]) for line in lines if line.startswith("Vm")}
    return {
        f"resident {what}, MB": kilobytes["VmRSS:"] / 1000,
        f"resident at most until then {what}, MB": kilobytes["VmHWM:"] / 1000,
    }


def megabytes_written() -> float:
    """By this process, ever."""
    lines = Path("/proc/self/io").read_text(encoding="ascii").splitlines()
    return int(dict(line.split(": ") for line in lines)["wchar"]) / 1e6


@asynccontextmanager
async def _chunks_of(index: Index) -> AsyncIterator[Any]:
    """The table itself, for what the store does not tell."""
    db = await connect(Reach(index.uri))
    chunks = await db.open_table(table_names(index.store.generation)[0])
    yield chunks
    chunks.close()
    db.close()


async def extent(index: Index) -> Figures:
    """What the index occupies right now."""
    async with _chunks_of(index) as chunks:
        stats = await chunks.stats()
        indices = await chunks.list_indices()
    files = await anyio.to_thread.run_sync(_file_sizes, Path(index.uri))
    return {
        "files": len(files),
        "MB": sum(files.values()) / 1e6,
        "versions of the table": sum(name.endswith(".manifest") for name in files),
        "fragments": stats["fragment_stats"]["num_fragments"],
        "segments of an index": max(found.num_segments or 0 for found in indices),
        "unindexed rows": max(found.num_unindexed_rows or 0 for found in indices),
        "open descriptors": psutil.Process().num_fds(),
    }


def _file_sizes(folder: Path) -> dict[str, int]:
    sizes = {}
    for place, _, names in os.walk(Folder(folder)):
        for name in names:
            path = Path(place, name)
            try:
                sizes[str(path)] = path.stat().st_size
            except FileNotFoundError:  # removed by a commit meanwhile
                continue
    return sizes


# -- the parts -----------------------------------------------------------------------------------


@dataclass(slots=True)
class Upkeep:
    """The store's maintenance: how often and how long."""

    store: Store
    taken: list[float] = field(default_factory=list)
    begun: int = 0

    @property
    def is_running(self) -> bool:
        """Whether it runs right now."""
        return self.begun > len(self.taken)

    async def maintain_if(self, is_due: bool) -> None:
        """Maintain the store if `is_due`, as it says itself."""
        if is_due:
            self.begun += 1
            with timed(self.taken):
                await self.store.maintain()

    def figures(self, what: str) -> Figures:
        """Its share of what took place under the name `what`."""
        return {
            f"{what}: times maintained": len(self.taken),
            f"{what}: all maintenance, s": sum(self.taken) / 1000,
            f"{what}: longest maintenance, s": max(self.taken) / 1000,
        }


@dataclass(slots=True)
class Writer:
    """Writes `index` as the service does."""

    index: Index
    revision: int = 0
    taken: list[float] = field(default_factory=list)
    """Milliseconds of each commit of files."""

    async def write(self, sources: Sequence[Source], *, with_vectors: bool = True) -> None:
        """Commit these files."""
        self.revision += 1
        documents, vectors = await anyio.to_thread.run_sync(_prepared, sources, with_vectors)
        records = list(map(record_of, documents))
        with timed(self.taken):
            await self.index.store.replace(documents, self.revision, vectors)
            await self.index.store.put_records(records)


def _prepared(
    sources: Sequence[Source], with_vectors: bool
) -> tuple[list[Document], dict[str, Vector]]:
    documents = list(map(document_of, sources))
    digests = (e.chunk_hash for document in documents for e in document.entries)
    return documents, vectors_of(digests) if with_vectors else {}


async def build_text(index: Index, writer: Writer, sources: Iterable[Source]) -> Figures:
    written, upkeep = megabytes_written(), Upkeep(index.store)
    for batch in batched(sources, FILES_PER_BATCH):
        await writer.write(batch, with_vectors=False)
        await upkeep.maintain_if(index.store.upkeep.is_overdue)
    await upkeep.maintain_if(True)
    return {
        "text: committing, s": sum(writer.taken) / 1000,
        **upkeep.figures("text"),
        "text: last maintenance, s": upkeep.taken[-1] / 1000,
        "text: written, MB": megabytes_written() - written,
    }


async def build_vectors(index: Index, sources: Iterable[Source]) -> Figures:
    written, upkeep = megabytes_written(), Upkeep(index.store)
    reading: list[float] = []
    filling: list[float] = []
    for keys in _keys_of_fills(sources):
        with timed(reading):
            chunks = await index.store.unembedded(keys)
        vectors = vectors_of(chunk.chunk_hash for chunk in chunks)
        with timed(filling):
            await index.store.fill(keys, vectors)
        await upkeep.maintain_if(index.store.upkeep.is_due)
    await upkeep.maintain_if(True)
    return {
        "vectors: finding rows, s": sum(reading) / 1000,
        "vectors: committing, s": sum(filling) / 1000,
        **upkeep.figures("vectors"),
        "vectors: last maintenance, s": upkeep.taken[-1] / 1000,
        "vectors: written, MB": megabytes_written() - written,
    }


def _keys_of_fills(sources: Iterable[Source]) -> Iterator[list[str]]:
    keys: list[str] = []
    chunks = 0
    for source in sources:
        keys.append(source.key)
        chunks += len(source.chunks)
        if chunks >= CHUNKS_PER_FILL:
            yield keys
            keys, chunks = [], 0
    if keys:
        yield keys


async def reopen(uri: str) -> Figures:
    """What a start asks of the store."""
    opening: list[float] = []
    reading: list[float] = []
    with timed(opening):
        index = await Index.open(uri)
    assert index is not None
    with timed(reading):
        await index.store.records()
        await index.store.holdings()
        await index.store.last_revision()
    index.close()
    return {"start: opening, s": opening[0] / 1000, "start: reading, s": reading[0] / 1000}


async def find(store: Store, text: str, filters: Filters = NO_FILTERS) -> None:
    """Search as the service does; the query's vector is there at once."""

    async def embed() -> Vector:
        return vector_of_query(text)

    await search(store, Query(text), embed, TOP, filters)


async def ask(store: Store) -> Figures:
    async def match(text: str) -> None:
        await store.matching(Query(text).matched, FEWEST_CANDIDATES)

    async def find_nearest(text: str) -> None:
        await store.nearest(vector_of_query(text), FEWEST_CANDIDATES)

    async def find_anywhere(text: str) -> None:
        await find(store, text)

    async def find_below(text: str) -> None:
        await find(store, text, BELOW)

    kinds: dict[str, Callable[[str], Awaitable[None]]] = {
        "words": match,
        "nearest": find_nearest,
        "both": find_anywhere,
        "both, below a path": find_below,
    }
    figures: Figures = {}
    for kind, asking in kinds.items():
        taken: list[float] = []
        for text in texts_of_queries():
            with timed(taken):
                await asking(text)
        figures |= spread(kind, taken)
    return figures


async def recall(index: Index) -> Figures:
    """How many of the truly nearest are found; one that is as near counts as one of them."""
    queries = np.stack([vector_of_query(text) for text in texts_of_queries()[:RECALL_QUERIES]])
    shares = []
    for query, enough in zip(queries, await _cosines_to_reach(index, queries), strict=True):
        found = await index.store.nearest(query, FEWEST_CANDIDATES)
        shares.append(sum(candidate.score >= enough for candidate in found[:TOP]) / TOP)
    return {f"recall@{TOP} of nearest": statistics.fmean(shares)}


async def _cosines_to_reach(index: Index, queries: Vectors) -> list[float]:
    """How near the last of the nearest stored vectors is to each query, by brute force."""
    best = np.empty((len(queries), 0), np.float32)
    async with _chunks_of(index) as chunks:
        async for batch in await chunks.query().select(["vector"]).to_batches():
            block = batch.column("vector").flatten().to_numpy().reshape(-1, DIMENSION)
            best = np.sort(np.hstack([best, queries @ block.T]))[:, -TOP:]
    return [cosine - COSINE_ERROR for cosine in best[:, 0]]


async def update(writer: Writer, edits: Iterator[Source]) -> Figures:
    """Files saved one by one, each with a search behind it; maintenance is not in the times."""
    store, asked = writer.index.store, itertools.cycle(texts_of_queries())
    upkeep = Upkeep(store)
    writer.taken.clear()
    searching: list[float] = []
    deleting: list[float] = []
    for source in itertools.islice(edits, UPDATES):
        await writer.write([source])
        with timed(searching):
            await find(store, next(asked))
        await upkeep.maintain_if(store.upkeep.is_due)
    for source in itertools.islice(edits, DELETIONS):
        with timed(deleting):
            await store.delete([source.key])
        await upkeep.maintain_if(store.upkeep.is_due)
    return {
        **spread("update of a file", writer.taken),
        **spread("both, between updates", searching),
        **spread("deletion of a file", deleting),
    }


async def live_on(writer: Writer, edits: Iterable[Source]) -> Found:
    """Many updates, maintained as the service would, with searches and samples all the time."""
    index, upkeep = writer.index, Upkeep(writer.index.store)
    written, started = megabytes_written(), time.perf_counter()
    writer.taken.clear()
    most: Figures = {}
    outside: list[float] = []
    during: list[float] = []

    async def ask_forever() -> None:
        for text in itertools.cycle(texts_of_queries()):
            begun, running = upkeep.begun, upkeep.is_running
            taken: list[float] = []
            with timed(taken):
                await find(index.store, text)
            is_during = running or upkeep.begun > begun
            (during if is_during else outside).extend(taken)

    async def sample_forever() -> None:
        while True:
            for what, value in (await extent(index)).items():
                most[what] = max(most.get(what, 0), value)
            await anyio.sleep(SAMPLE_SECONDS)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(ask_forever)
        tasks.start_soon(sample_forever)
        for source in edits:
            await writer.write([source])
            await upkeep.maintain_if(index.store.upkeep.is_due)
        tasks.cancel_scope.cancel()
    return {
        "updates without end": {
            "updates": len(writer.taken),
            "all, s": time.perf_counter() - started,
            **spread("update of a file", writer.taken),
            **upkeep.figures("updates"),
            **spread("maintenance", upkeep.taken),
            "written, MB": megabytes_written() - written,
            **spread("both, outside of maintenance", outside),
            **spread("both, during maintenance", during),
            "both, outside of maintenance, first tenth, median ms": _median_of_tenth(outside, 0),
            "both, outside of maintenance, last tenth, median ms": _median_of_tenth(outside, 9),
            "maintenance, first tenth, median ms": _median_of_tenth(upkeep.taken, 0),
            "maintenance, last tenth, median ms": _median_of_tenth(upkeep.taken, 9),
            "both, outside of maintenance, longest ms": max(outside),
            "both, during maintenance, longest ms": max(during),
            **resident("after the updates"),
        },
        "at most": most,
        "after the last update": await extent(index),
    }


def _median_of_tenth(taken: list[float], tenth: int) -> float:
    """Of the first (0) to the last (9) part of `taken`: what grows shows here."""
    begin, end = (len(taken) * place // 10 for place in (tenth, tenth + 1))
    return statistics.median(taken[begin:end] or taken)


async def settle(store: Store) -> None:
    """What the service does in quiet moments, until nothing is left to do."""
    is_untidy = True
    while is_untidy:
        await anyio.sleep(OLD_VERSIONS_SECONDS)
        await store.maintain()
        memory.give_back()
        is_untidy = store.upkeep.is_worthwhile


async def measure(sources: Sources, size: int, uri: str) -> Found:
    model = ModelIdentity("synthetic", "", DIMENSION)
    index = await Index.create(uri, Manifest(owner="", chunker="", model=model))
    writer = Writer(index)
    edits = endless_edits(sources.take(size))
    found: Found = {}

    def note(what: str, figures: Figures) -> None:
        found.setdefault(what, {}).update(figures)
        print(f"{size}: {what} {figures}", file=sys.stderr, flush=True)

    note("building", resident("before"))
    note("building", await build_text(index, writer, sources.take(size)))
    note("building", await build_vectors(index, sources.take(size)))
    note("building", {"chunks": await index.store.count(), **resident("after building")})
    note("building", await reopen(uri))
    await settle(index.store)
    note("new, after a quiet time", {**await extent(index), **resident("after a quiet time")})
    note("queries", await ask(index.store))
    note("queries", await recall(index))
    note("updates", await update(writer, edits))
    count = UPDATES_OF_SMALL if size <= SMALL else UPDATES_OF_OTHERS
    for what, figures in (await live_on(writer, itertools.islice(edits, count))).items():
        note(what, figures)
    await settle(index.store)
    note("updated, after a quiet time", {**await extent(index), **resident("after a quiet time")})
    note("queries after all updates", await ask(index.store))
    return found


def run(sources: Sources, size: int) -> Found:
    with tempfile.TemporaryDirectory() as folder:
        return anyio.run(measure, sources, size, str(Path(folder, "index")))


# -- the report ----------------------------------------------------------------------------------


def table(what: str, by_size: dict[int, Found]) -> str:
    heads = [f"{size:,} chunks" for size in by_size]
    lines = [f"| {' | '.join([what, *heads])} |", "|---" * (len(heads) + 1) + "|"]
    labels = next(iter(by_size.values()))[what]
    for label in labels:
        figures = [_figure(found[what][label]) for found in by_size.values()]
        lines.append(f"| {' | '.join([label, *figures])} |")
    return "\n".join(lines)


def kept_sizes() -> dict[int, Found]:
    """What the newest kept run has found, of the sizes that it had."""
    try:
        sizes = latest("scale")["sizes"]
    except FileNotFoundError:
        return {}
    return {int(size): found for size, found in sizes.items()}


def keep_all(by_size: dict[int, Found]) -> Path:
    return keep("scale", {"vectors": "synthetic", "sizes": by_size, "table": summary(by_size)})


def summary(by_size: dict[int, Found]) -> list[tuple[str, str]]:
    """The lines that the README shows."""
    return [
        (
            f"the store at {size:,} chunks: a query, a file's update, disk",
            f"{found['queries']['both, median ms']:.0f} ms, "
            f"{found['updates']['update of a file, median ms']:.0f} ms, "
            f"{found['new, after a quiet time']['MB']:.0f} MB",
        )
        for size, found in sorted(by_size.items())
    ]


def _figure(value: float) -> str:
    if isinstance(value, int) or value >= 100:
        return f"{value:,.0f}"
    return f"{value:.3f}" if value < 1 else f"{value:.1f}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--folder", type=Path, required=True, help="that of quality.py")
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES, help="in chunks")
    parser.add_argument(
        "--keep", action="store_true", help="write the results to results/, beside those kept"
    )
    arguments = parser.parse_args()
    by_size: dict[int, Found] = {}
    with tempfile.TemporaryDirectory() as temporary:
        sources = Sources.cut(arguments.folder.resolve(), Path(temporary, "sources"))
        for size in arguments.sizes:
            fresh = multiprocessing.get_context("spawn")
            with ProcessPoolExecutor(1, mp_context=fresh) as process:
                by_size[size] = process.submit(run, sources, size).result()
            if arguments.keep:  # one after the other: the largest takes an hour
                print(f"kept in {keep_all(kept_sizes() | by_size).name}", file=sys.stderr)
    print("Real texts, synthetic vectors.")
    for what in next(iter(by_size.values())):
        print(f"\n{table(what, by_size)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
