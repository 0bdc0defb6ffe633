"""Which way do questions point? Learns the map of `engine/models/question_map`, and judges it.

Of all chunks of a package, the one that holds the labelled lines should be nearest to a question:
the map is moved against the gradient of that probability's logarithm (InfoNCE: van den Oord, Li,
Vinyals, Representation Learning with Contrastive Predictive Coding, 2018), step by step (Adam:
Kingma, Ba, 2015). It has more entries than there are questions, so it is learned for a few rounds
only; then it has not moved far. Packages are left out as a whole, a fifth at a time: each is judged
by a map that was learned from the others.

    python benchmarks/question_map.py --folder DIR [--only flask,httpx] [--keep]

DIR is that of quality.py, which says how long a first run takes. There, the maps are kept that
quality.py, learn.py and likelihood.py judge each package by. With --keep, the map of all packages
becomes that of the program.
"""

import io
import random
import statistics
import sys
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import numpy as np
from corpora import labels_of
from kept import keep
from left_out import file_of
from packages import Corpus
from quality import Case, arguments_of, chunks_of, ndcg, opened

from vector_index_mcp.engine.models import question_map
from vector_index_mcp.engine.ranking.query import Query
from vector_index_mcp.engine.ranking.rank import rank
from vector_index_mcp.engine.ranking.search import FEWEST_CANDIDATES, compared
from vector_index_mcp.engine.store import schema
from vector_index_mcp.engine.types import Candidate, StoredChunk, Vectors

PARTS = 5
ROUNDS = 3
PACKAGES_PER_STEP = 4
STEP, MEAN_KEPT, SQUARE_KEPT, LEAST = 1e-3, 0.9, 0.999, 1e-8  # as in Adam's paper
SHARPNESS = 20.0  # of the softmax over cosines; 12 to 30 give the same
SHARES = (0.25, 0.5, 1.0)  # of the packages that a map is learned from


@dataclass(frozen=True, slots=True)
class Asked:
    """The labelled questions of a package."""

    corpus: Corpus
    cases: list[Case]
    """Without what vectors find."""
    lines: list[dict[str, list[int]]]
    questions: Vectors
    """Their vectors, as the model makes them."""
    chunks: Sequence[StoredChunk]
    vectors: Vectors
    """Those of the chunks."""
    is_right: Any
    """For each question, of each chunk, whether it holds what was asked for."""


async def asked_of(corpus: Corpus, folder: Path) -> Asked:
    async with opened(corpus, folder) as codebase:
        rows = await (await chunks_of(codebase)).query().where("vector IS NOT NULL").to_list()
        labels = labels_of(corpus)
        questions = await codebase.index.embedder.embed([label["query"] for label in labels])
        async with codebase.index.reading() as (index, _):
            found = [
                await index.store.matching(
                    Query(each["query"]).matched, FEWEST_CANDIDATES, with_vectors=True
                )
                for each in labels
            ]
    chunks = list(schema.stored_chunks(rows))
    lines = [label.get("lines") or {} for label in labels]
    return Asked(
        corpus,
        [
            Case(corpus.name, label["query"], label["category"], label["files"], lexical, [])
            for label, lexical in zip(labels, found, strict=True)
        ],
        lines,
        questions,
        chunks,
        np.array([row["vector"] for row in rows], np.float32),
        np.array(
            [
                [chunk.key in label["files"] and holds(chunk, where) for chunk in chunks]
                for label, where in zip(labels, lines, strict=True)
            ]
        ),
    )


def holds(chunk: StoredChunk, lines: dict[str, list[int]]) -> bool:
    """Whether a chunk of a right file has some of its labelled lines, if it has any."""
    if chunk.key not in lines:
        return True
    first, last = lines[chunk.key]
    return chunk.start_line <= last and first <= chunk.end_line


def gradient(table: Vectors, asked: Asked) -> tuple[Any, int]:
    """The slope of the summed loss of a package's questions, and how many they are."""
    rows = asked.is_right.any(axis=1)
    questions, is_right = asked.questions[rows], asked.is_right[rows]
    moved = questions + questions @ table
    lengths = np.linalg.norm(moved, axis=1, keepdims=True)
    turned = moved / lengths
    likely = np.exp(SHARPNESS * (turned @ asked.vectors.T - 1))
    right = likely * is_right
    off = likely / likely.sum(axis=1, keepdims=True) - right / right.sum(axis=1, keepdims=True)
    slope = SHARPNESS * off @ asked.vectors
    slope -= (slope * turned).sum(axis=1, keepdims=True) * turned  # lengths are made 1 again
    return questions.T @ (slope / lengths), int(rows.sum())


def learned(packages: Sequence[Asked], seed: int = 0) -> Vectors:
    """The map of these packages."""
    dimension = packages[0].vectors.shape[1]
    table = np.zeros((dimension, dimension), np.float32)
    mean, square = np.zeros_like(table), np.zeros_like(table)
    order, chosen = list(packages), random.Random(seed)
    steps = -(-len(order) // PACKAGES_PER_STEP) * ROUNDS
    for step in range(steps):
        place = step * PACKAGES_PER_STEP % (-(-len(order) // PACKAGES_PER_STEP) * PACKAGES_PER_STEP)
        if place == 0:
            chosen.shuffle(order)
        slopes = [gradient(table, each) for each in order[place : place + PACKAGES_PER_STEP]]
        slope = sum(each for each, _ in slopes) / sum(count for _, count in slopes)
        mean = MEAN_KEPT * mean + (1 - MEAN_KEPT) * slope
        square = SQUARE_KEPT * square + (1 - SQUARE_KEPT) * slope**2
        unbiased = mean / (1 - MEAN_KEPT ** (step + 1))
        spread = np.sqrt(square / (1 - SQUARE_KEPT ** (step + 1))) + LEAST
        table -= STEP * (1 - step / steps) * unbiased / spread
    return table


def proposed(asked: Asked, row: int, table: Vectors) -> tuple[list[Candidate], list[Candidate]]:
    """What words and what vectors propose for a question."""
    vector = question_map.moved(asked.questions[row], table)
    cosines = asked.vectors @ vector
    best = np.argsort(-cosines, kind="stable")[:FEWEST_CANDIDATES]
    semantic = [Candidate(asked.chunks[place], float(cosines[place])) for place in best]
    return [compared(each, vector) for each in asked.cases[row].lexical], semantic


def figures(packages: Sequence[Asked], tables: Sequence[Vectors]) -> dict[str, float]:
    """How well each package's questions are answered, each by its own map."""
    values: dict[str, list[float]] = {}
    for asked, table in zip(packages, tables, strict=True):
        for row, case in enumerate(asked.cases):
            lexical, semantic = proposed(asked, row, table)
            alone = list(dict.fromkeys(each.chunk.key for each in semantic))
            hits = rank(Query(case.query), lexical, semantic)
            keys, lines = [hit.chunk.key for hit in hits], asked.lines[row]
            values.setdefault("by meaning", []).append(ndcg(alone, case.files))
            values.setdefault("by both", []).append(ndcg(keys, case.files))
            values.setdefault(case.category, []).append(ndcg(keys, case.files))
            values.setdefault("first", []).append(keys[0] in case.files)
            if lines:
                shown = [hit.chunk for hit in hits[:5] if hit.chunk.key in lines]
                values.setdefault("place in 5", []).append(any(holds(c, lines) for c in shown))
    return {name: round(statistics.fmean(each), 4) for name, each in values.items()}


def left_out(packages: Sequence[Asked], share: float) -> list[Vectors]:
    """For each package, the map of this share of the packages of other parts."""
    order = list(range(len(packages)))
    random.Random(1).shuffle(order)
    part = {row: place % PARTS for place, row in enumerate(order)}
    tables = []
    for each in range(PARTS):
        others = [packages[row] for row in order if part[row] != each]
        tables.append(learned(others[: max(1, round(share * len(others)))]))
    return [tables[part[row]] for row in range(len(packages))]


def in_file(table: Vectors) -> bytes:
    """The map as it is kept: a file of numpy's, packed by the frequency of its bytes alone.

    To look for repeats as well, where there are none, takes a seventh more room.
    """
    data = io.BytesIO()
    np.save(data, np.clip(np.round(table / question_map.UNIT), -127, 127).astype(np.int8))
    packing = zlib.compressobj(9, zlib.DEFLATED, 16 + zlib.MAX_WBITS, 9, zlib.Z_HUFFMAN_ONLY)
    return packing.compress(data.getvalue()) + packing.flush()


async def measure(corpora: Sequence[Corpus], folder: Path) -> list[Asked]:
    packages = []
    for corpus in corpora:
        packages.append(await asked_of(corpus, folder))
        print(corpus.name, file=sys.stderr, flush=True)
    return packages


def main() -> int:
    folder, corpora, keeps = arguments_of(__doc__)
    packages = anyio.run(measure, corpora, folder)
    none = np.zeros((packages[0].vectors.shape[1],) * 2, np.float32)
    found = {"none": figures(packages, [none] * len(packages))}
    for share in SHARES:
        tables = left_out(packages, share)
        found[f"{share:.0%} of the packages"] = figures(packages, tables)
    for asked, table in zip(packages, tables, strict=True):
        file = file_of(asked.corpus, folder)
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(in_file(table))
    questions = sum(len(asked.cases) for asked in packages)
    print(f"{questions} questions over {len(packages)} packages; NDCG@10 and shares\n")
    print(f"| learned from | {' | '.join(found['none'])} |\n|---|{'---|' * len(found['none'])}")
    for name, values in found.items():
        print(f"| {name} | {' | '.join(f'{value:.3f}' for value in values.values())} |")
    if keeps:
        question_map.FILE.write_bytes(in_file(learned(packages)))
        print(f"\nkept in {question_map.FILE.name}, and in ", end="")
        result = {"questions": questions, "packages": len(packages), "learned from": found}
        print(keep("question-map", result).name)
    return 0


if __name__ == "__main__":
    sys.exit(main())
