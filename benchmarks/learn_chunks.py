"""Which chunk of the right file comes first? Learns the weights of `engine/ranking/chunk_order`.

The model is a conditional logit, as in learn.py: of the chunks of a right file that were found, how
likely is each the one with the labelled lines. Packages are left out as a whole, a fifth at a time;
their questions are turned by maps that have not seen them either.

    python benchmarks/learn_chunks.py --folder DIR [--only flask,httpx] [--keep]

DIR is that of quality.py, which says how long a first run takes.
"""

import random
import statistics
import sys
from collections.abc import Iterator, Sequence
from dataclasses import astuple, dataclass, fields
from pathlib import Path
from typing import Any

import anyio
import numpy as np
from kept import keep
from learn import conditional_logit
from left_out import map_without
from quality import arguments_of
from question_map import Asked, holds, measure, proposed

from vector_index_mcp.engine.ranking.chunk_order import ChunkEvidence
from vector_index_mcp.engine.ranking.query import Query
from vector_index_mcp.engine.ranking.rank import found_for

FEATURES = [field.name for field in fields(ChunkEvidence)]
PARTS = 5


@dataclass(frozen=True, slots=True)
class Choice:
    """The chunks of a right file that were found for a question, in the order of their scores."""

    package: str
    evidence: Any
    """A matrix: a row for each of these chunks, a column for each feature."""
    is_right: Any
    """Of each, whether it has some of the labelled lines."""


def choices(asked: Asked, folder: Path, *, vectors: bool) -> Iterator[Choice]:
    """The choices that the questions about a package leave: files of several chunks."""
    table = map_without(asked.corpus, folder)
    for row, (case, lines) in enumerate(zip(asked.cases, asked.lines, strict=True)):
        query = Query(case.query)
        if not query.is_question or not lines:
            continue
        lexical, semantic = proposed(asked, row, table)
        found = found_for(query, lexical, semantic if vectors else [])
        for key in lines:
            chunks = [hit.chunk for hit in found.hits if hit.chunk.key == key]
            if len(chunks) > 1:
                evidence = [astuple(found.evidence_in_file(chunk)) for chunk in chunks]
                is_right = [holds(chunk, lines) for chunk in chunks]
                yield Choice(case.corpus, np.array(evidence), np.array(is_right, float))


def learned(given: Sequence[Choice], columns: Sequence[int]) -> Any:
    """The weights of the features in these columns."""
    return conditional_logit((each.evidence[:, columns], each.is_right) for each in given)


def judged(given: Sequence[Choice], columns: Sequence[int]) -> float:
    """How often the first chunk is right, by weights that were learned from other packages."""
    packages = sorted({each.package for each in given})
    random.Random(2).shuffle(packages)
    part = {package: place % PARTS for place, package in enumerate(packages)}
    weights = [learned([g for g in given if part[g.package] != p], columns) for p in range(PARTS)]
    return statistics.fmean(
        each.is_right[np.argmax(each.evidence[:, columns] @ weights[part[each.package]])]
        for each in given
    )


def report(given: Sequence[Choice]) -> dict[str, Any]:
    """Before and after, what each feature adds, and the weights."""
    every = [
        column
        for column, name in enumerate(FEATURES)
        if any(each.evidence[:, column].any() for each in given)
    ]
    shares = {"before": statistics.fmean(each.is_right[0] for each in given)}
    shares["now"] = judged(given, every)
    for left in every[1:]:
        name = f"without {FEATURES[left]}"
        shares[name] = judged(given, [column for column in every if column != left])
    weights = zip((FEATURES[column] for column in every), learned(given, every), strict=True)
    return {
        "choices": len(given),
        "first is right": {name: round(share, 4) for name, share in shares.items()},
        "weights": {name: round(float(weight), 2) for name, weight in weights},
    }


def main() -> int:
    folder, corpora, keeps = arguments_of(__doc__)
    packages = anyio.run(measure, corpora, folder)
    found = {}
    for way, vectors in (("by meaning", True), ("by words", False)):
        given = [each for asked in packages for each in choices(asked, folder, vectors=vectors)]
        found[way] = report(given)
        print(f"\n{way}: {len(given)} files; how often the right chunk is the first of its file")
        for name, share in found[way]["first is right"].items():
            print(f"| {name} | {share:.3f} |")
        print(", ".join(f"{name}={weight}" for name, weight in found[way]["weights"].items()))
    if keeps:
        print(f"kept in {keep('learn-chunks', found).name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
