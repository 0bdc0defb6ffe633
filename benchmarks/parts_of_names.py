"""Measures how often a part of a name leads to its definition.

    python benchmarks/parts_of_names.py [--keep] FOLDER ...

In each FOLDER up to fifty names of three words and more are taken that are defined once. The query
is the name without its first or its last word, if that stands nowhere: `parse_cookie` of
`parse_cookie_header`. Searched by words alone, it prints how often the chunk with the definition is
first, with the signal `part_of_name` and without it, and how often its file is.
"""

import argparse
import random
import re
from collections import defaultdict
from functools import partial
from pathlib import Path
from typing import NamedTuple

import anyio
from kept import keep

from vector_index_mcp.engine.ranking.query import Query
from vector_index_mcp.engine.ranking.rank import rank
from vector_index_mcp.engine.text.words import last_name
from vector_index_mcp.engine.types import Candidate, StoredChunk
from vector_index_mcp.indexing.role import Role
from vector_index_mcp.serving.loading import open_codebase
from vector_index_mcp.settings import Settings

MOST_SAMPLES, FEWEST_WORDS, CANDIDATES = 50, 3, 100
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
WAYS = {"with": frozenset[str](), "without": frozenset({"part_of_name"})}


class Sample(NamedTuple):
    """A part of a name, and the chunk that defines the name."""

    part: str
    chunk: StoredChunk


def samples(chunks: list[StoredChunk]) -> list[Sample]:
    """Parts of names that are defined once; these parts stand nowhere."""
    defined = defaultdict(list)
    for chunk in chunks:
        for name in {last_name(symbol) for symbol in chunk.symbols}:
            defined[name].append(chunk)
    everything = "\n".join(chunk.text for chunk in chunks).lower()
    names = sorted(name for name, places in defined.items() if len(places) == 1)
    chosen = random.Random(1)
    chosen.shuffle(names)
    found: list[Sample] = []
    for name in names:
        words = _WORD.findall(name)
        if len(words) < FEWEST_WORDS or len(found) == MOST_SAMPLES:
            continue
        kept = words[1:] if chosen.random() < 0.5 else words[:-1]
        part = "_".join(kept) if "_" in name else kept[0].lower() + "".join(kept[1:])
        if not re.search(rf"(?<![a-z0-9_]){re.escape(part.lower())}(?![a-z0-9_])", everything):
            found.append(Sample(part, defined[name][0]))
    return found


def firsts(sample: Sample, candidates: list[Candidate]) -> dict[str, tuple[bool, bool]]:
    """Of each way, whether the right chunk is first, and whether its file is."""
    found = {}
    for way, left_out in WAYS.items():
        hits = rank(Query(sample.part), candidates, [], without=left_out)
        first = hits[0].chunk if hits else None
        is_file = first is not None and first.key == sample.chunk.key
        is_chunk = first is not None and first.document_id == sample.chunk.document_id
        found[way] = (is_chunk, is_file)
    return found


async def measured(folder: Path) -> list[dict[str, tuple[bool, bool]]]:
    """What comes first for each sample of a folder."""
    codebase = await open_codebase(folder, Settings(_env_file=None))
    async with codebase.running(Role.VISITOR):
        run = await codebase.index.trigger(force_reindex=False)
        await run.finished.wait()
        async with codebase.index.reading() as (index, ledger):
            rows = await index.store.rows(list(ledger.keys()))
            chunks = [chunk for of_file in rows.values() for chunk, _ in of_file]
            return [
                firsts(s, await index.store.matching(Query(s.part).matched, CANDIDATES))
                for s in samples(chunks)
            ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folders", nargs="+", type=Path, metavar="FOLDER")
    parser.add_argument("--keep", action="store_true", help="write the results to results/")
    arguments = parser.parse_args()
    results: dict[str, dict[str, float]] = {}
    print(f"{'':24}samples" + "".join(f"{way + ': chunk':>16}{'file':>7}" for way in WAYS))
    for folder in arguments.folders:
        found = anyio.run(partial(measured, folder.resolve()))
        if not found:
            continue
        shares = {
            f"{way} {what}": sum(each[way][at] for each in found) / len(found)
            for way in WAYS
            for at, what in enumerate(("chunk", "file"))
        }
        results[folder.name] = {"samples": len(found), **shares}
        cells = [
            f"{share:{7 if name.endswith('file') else 16}.2f}" for name, share in shares.items()
        ]
        print(f"{folder.name:24}{len(found):7}{''.join(cells)}")
    if arguments.keep:
        command = "python benchmarks/parts_of_names.py FOLDER ..."
        print(keep("parts_of_names", {"folders": results}, command))


if __name__ == "__main__":
    main()
