"""How soon a large dataset answers, beside FAISS's own exact search and its graph.

    python benchmarks/datasets.py --folder DIR [--rows N] [--questions N] [--keep]

Vectors are made of 200 centres with noise, as texts cluster by subject; a question is one of the
rows with noise. Recall is that of the ten nearest by exact search. Embedding is not measured: the
question's vector is given.
"""

import argparse
import multiprocessing
import shutil
import statistics
import sys
import time
from pathlib import Path

import anyio
import numpy as np
import psutil
from kept import keep

from vector_index_mcp.datasets import table
from vector_index_mcp.datasets.dataset import Dataset
from vector_index_mcp.datasets.manifest import Manifest
from vector_index_mcp.datasets.metadata import Text
from vector_index_mcp.datasets.table import Facts
from vector_index_mcp.engine.prose import ranking
from vector_index_mcp.engine.prose.stems import asked_stems
from vector_index_mcp.engine.types import ModelIdentity

_DIMENSION, _CENTRES, _NOISE, _BATCH, _NEIGHBOURS = 384, 200, 0.9, 20_000, 10
_WORDS = [f"{a}{b}{c}" for a in "balokiruse" for b in "netami" for c in ("lor", "dan", "pes")]


def vectors_of(start: int, count: int) -> "np.ndarray":
    """Rows from `start` on; the same ones each time."""
    chance = np.random.default_rng(start)
    centres = np.random.default_rng(7).normal(size=(_CENTRES, _DIMENSION)).astype("<f4")
    found = centres[chance.integers(_CENTRES, size=count)]
    found = found + _NOISE * chance.normal(size=found.shape).astype("<f4")
    return found / np.linalg.norm(found, axis=1, keepdims=True)


def text_of(number: int) -> Text:
    """A text of thirty words."""
    chance = np.random.default_rng(number)
    words = " ".join(chance.choice(_WORDS, 30))
    return Text(f"Title {number}", f"docs/{number}.md", words, words)


async def make(folder: Path, rows: int) -> float:
    """Make a table; seconds."""
    began = time.monotonic()
    async with table.making(folder, ModelIdentity("m", "", _DIMENSION)) as made:
        for start in range(0, rows, _BATCH):
            count = min(_BATCH, rows - start)
            texts = [text_of(n) for n in range(start, start + count)]
            await made.add(texts, vectors_of(start, count))
    table.write_facts(folder, Facts("m", _DIMENSION, rows, "product", is_unit=True))
    return time.monotonic() - began


def questions_of(count: int) -> "np.ndarray":
    """Vectors of questions: rows, with noise."""
    found = vectors_of(0, max(count, _BATCH))[:count]
    found = found + 0.02 * np.random.default_rng(3).normal(size=found.shape).astype("<f4")
    return found / np.linalg.norm(found, axis=1, keepdims=True)


def exact(questions: "np.ndarray", rows: int) -> "np.ndarray":
    """The numbers of the ten nearest rows to each question."""
    scores = np.full((len(questions), _NEIGHBOURS), -2.0)
    numbers = np.zeros((len(questions), _NEIGHBOURS), np.int64)
    for start in range(0, rows, _BATCH):
        found = questions @ vectors_of(start, min(_BATCH, rows - start)).T
        all_scores = np.hstack([scores, found])
        ids = np.broadcast_to(np.arange(start, start + found.shape[1]), found.shape)
        all_numbers = np.hstack([numbers, ids])
        best = np.argsort(-all_scores, axis=1)[:, :_NEIGHBOURS]
        scores = np.take_along_axis(all_scores, best, axis=1)
        numbers = np.take_along_axis(all_numbers, best, axis=1)
    return numbers


async def measure(folder: Path, questions: "np.ndarray", nearest: "np.ndarray") -> list[str]:
    """Open the table, ask, and compare with what exact search finds."""
    lines = []
    manifest = Manifest("big", "Big", "Big", folder, folder, 5, "m")
    began = time.monotonic()
    dataset = await Dataset.open(manifest, folder)
    await dataset.search(asked_stems("balokine lordan"), questions[0], _NEIGHBOURS)
    lines.append(f"ready and first answer: {time.monotonic() - began:.2f} s (wanted: 2)")
    texts = dataset._index.store.unread
    # What is asked for the first time is read from disk, or at least mapped for the first time.
    for words, when in (("nowhere", "at first"), ("nowhere", "again"), ("balokine lordan", "")):
        took, met = [], 0
        for question, expected in zip(questions, nearest, strict=True):
            began = time.monotonic()
            await dataset.search(asked_stems(words), question, _NEIGHBOURS)
            took.append(1_000 * (time.monotonic() - began))
            found, _ = await texts.nearest(question, ranking.CANDIDATES, "cosine")
            read = await texts.read([c.chunk for c in found[:_NEIGHBOURS]], ["file_path"])
            met += len({int(row["file_path"].partition("/")[0]) for row in read} & {*expected})
        took.sort()
        lines.append(
            f"search for {words!r} {when}: p50 {statistics.median(took):.0f} ms (wanted: 30), "
            f"p95 {took[int(0.95 * len(took))]:.0f} ms (wanted: 80)"
        )
    lines.append(f"recall@10: {met / (_NEIGHBOURS * len(questions)):.3f} (wanted: 0.98)")
    memory = psutil.Process().memory_full_info()
    lines.append(f"memory: {memory.uss / 1e6:.0f} MB of its own (wanted: 300)")
    dataset.release()
    return lines


def measured(folder: Path, questions: "np.ndarray", nearest: "np.ndarray") -> list[str]:
    """The same in a process of its own, whose memory is that of a service."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(anyio.run, (measure, folder, questions, nearest))


def beside(rows: int, count: int, lines: list[str]) -> None:
    """The same with FAISS, if it is there."""
    try:
        import faiss
    except ImportError:
        return
    questions = questions_of(count)
    for name in ("Flat", "HNSW32"):
        index = faiss.index_factory(_DIMENSION, name, faiss.METRIC_INNER_PRODUCT)
        began = time.monotonic()
        for start in range(0, rows, _BATCH):
            index.add(vectors_of(start, min(_BATCH, rows - start)))
        built = time.monotonic() - began
        took = []
        for question in questions:
            began = time.monotonic()
            index.search(question[None], _NEIGHBOURS)
            took.append(1_000 * (time.monotonic() - began))
        lines.append(f"faiss {name}: p50 {statistics.median(took):.1f} ms, built in {built:.0f} s")


def main() -> None:
    """Make the dataset unless it is there, measure, print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--questions", type=int, default=100)
    parser.add_argument("--keep", action="store_true")
    given = parser.parse_args()
    folder = given.folder / f"datasets-{given.rows}"
    lines = [f"{given.rows:,} vectors of {_DIMENSION} dimensions", ""]
    if not table.is_ours(folder):
        shutil.rmtree(folder, ignore_errors=True)
        lines.append(f"made in {anyio.run(make, folder, given.rows):.0f} s")
    questions = questions_of(given.questions)
    lines += measured(folder, questions, exact(questions, given.rows))
    if given.rows <= 200_000:
        beside(given.rows, given.questions, lines)
    sys.stdout.write("\n".join(lines) + "\n")
    if given.keep:
        keep("datasets", {"rows": given.rows, "lines": lines[2:]})


if __name__ == "__main__":
    main()
