"""Measures how often code that resembles a function leads to its twin.

    python benchmarks/similar.py [--keep] FOLDER ...

A twin is another function of the same name, where `async`, `sync` and the like do not count, in a
class of the same name: clients for synchronous and asynchronous use, drivers for several databases.
In each FOLDER up to sixty such functions are taken, and for each the eight best chunks. It prints
the mean of 1/place of the first twin (mean reciprocal rank) of

- `vectors`: the cosine of the two chunks' vectors, as `engine/ranking/similar`;
- `query`: the chunk's text as a query, as a question would be ranked.
"""

import argparse
import random
import re
from collections import defaultdict
from functools import partial
from pathlib import Path

import anyio
from kept import keep

from vector_index_mcp.engine.ranking.query import Query
from vector_index_mcp.engine.ranking.search import search
from vector_index_mcp.engine.ranking.similar import similar
from vector_index_mcp.engine.types import Hit, StoredChunk, Vector
from vector_index_mcp.indexing.role import Role
from vector_index_mcp.serving.loading import open_codebase
from vector_index_mcp.settings import Settings

MOST_SAMPLES, SHOWN = 60, 8
FEWEST_LINES = 5
MOST_TWINS = 4  # more of one name are no twins, but a protocol
_FUNCTION = re.compile(r"(?:class (?P<of>\w+) › )?function (?P<name>\w+)$")
_MODE = re.compile(r"asynchronous|synchronous|async|sync|^a(?=close|read|iter|exit|enter|send)")

Row = tuple[StoredChunk, Vector]


def name_of(chunk: StoredChunk) -> tuple[str, str] | None:
    """The class and the name of a chunk's function, without its mode; None if it is no function."""
    if not (found := _FUNCTION.search(chunk.scope)):
        return None
    plain = [_MODE.sub("", (part or "").lower()).strip("_") for part in found.group("of", "name")]
    is_real = plain[1] not in {"", "init"} and chunk.end_line - chunk.start_line >= FEWEST_LINES - 1
    return (plain[0], plain[1]) if is_real else None


def samples(rows: list[Row]) -> list[tuple[Row, set[str]]]:
    """Functions that have twins, and the ids of these."""
    groups = defaultdict(list)
    for row in rows:
        if (name := name_of(row[0])) is not None:
            groups[name].append(row)
    twins = [group for group in groups.values() if 1 < len(group) <= MOST_TWINS]
    found = [
        (row, {c.document_id for c, _ in group if c is not row[0]})
        for group in twins
        for row in group
    ]
    random.Random(1).shuffle(found)
    return found[:MOST_SAMPLES]


def reciprocal_rank(hits: list[Hit], sample: StoredChunk, twins: set[str]) -> float:
    """1/place of the first twin among the hits beside the sample; 0 if there is none."""
    others = [h.chunk.document_id for h in hits if h.chunk.document_id != sample.document_id]
    return next((1 / place for place, id_ in enumerate(others[:SHOWN], 1) if id_ in twins), 0.0)


async def measured(folder: Path) -> tuple[int, dict[str, float]]:
    """The number of samples in a folder, and the mean of each way."""
    codebase = await open_codebase(folder, Settings(_env_file=None))
    sums = {"vectors": 0.0, "query": 0.0}
    async with codebase.running(Role.VISITOR):
        run = await codebase.index.trigger(force_reindex=False)
        await run.finished.wait()
        await codebase.index.embed()
        async with codebase.index.reading() as (index, ledger):
            rows = await index.store.rows(list(ledger.keys()))
            whole = [(c, v) for of_file in rows.values() for c, v in of_file if v is not None]
            taken = samples(whole)
            for (chunk, vector), twins in taken:

                async def embed(vector: Vector = vector) -> Vector:
                    return vector

                found = {
                    "vectors": await similar(index.store, vector, SHOWN + 1),
                    "query": await search(index.store, Query(chunk.text), embed, SHOWN + 1),
                }
                for way, hits in found.items():
                    sums[way] += reciprocal_rank(hits, chunk, twins)
    return len(taken), {way: total / max(1, len(taken)) for way, total in sums.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folders", nargs="+", type=Path, metavar="FOLDER")
    parser.add_argument("--keep", action="store_true", help="write the results to results/")
    arguments = parser.parse_args()
    results = {}
    print(f"{'':24}samples  vectors  query")
    for folder in arguments.folders:
        count, means = anyio.run(partial(measured, folder.resolve()))
        results[folder.name] = {"samples": count, **means}
        print(f"{folder.name:24}{count:7}{means['vectors']:9.3f}{means['query']:7.3f}")
    if arguments.keep:
        command = "python benchmarks/similar.py FOLDER ..."
        print(keep("similar", {"folders": results}, command))


if __name__ == "__main__":
    main()
