"""How true are the scores? Fits `engine/ranking/likelihood`, and judges it by whole packages.

Right hits come from the labelled questions, and from names that a package uses and does not define,
whose hits are right if their file has the name; wrong ones from the same, and from questions that
nothing answers: some written for the package, others asked of other packages. Each package is
judged by weights that were fitted without it; those that are printed are fitted on all of them.
What is judged is what is shown: the likelihoods in agreement with the order of the hits.

    python benchmarks/likelihood.py --folder DIR [--only flask,httpx] [--keep]

DIR is that of quality.py, which says how long a first run takes.
"""

import random
import sys
from collections.abc import Sequence
from dataclasses import astuple, dataclass, fields
from pathlib import Path
from typing import Any

import anyio
import numpy as np
from corpora import labels_of, unanswered_by
from kept import keep
from left_out import map_without
from packages import CORPORA, Corpus
from quality import arguments_of, candidates, only_used, opened, rows_of

from vector_index_mcp.engine.ranking.likelihood import (
    JUDGED_TOGETHER,
    Evidence,
    cosines_of,
    evidence_of,
    falling,
)
from vector_index_mcp.engine.ranking.query import Query
from vector_index_mcp.engine.ranking.rank import found_for, rank, speaking_for
from vector_index_mcp.engine.types import Candidate

HITS = 5  # are judged, and fitted to
FOREIGN_QUESTIONS = 40  # of other packages, asked of each
STEPS = 60
STRENGTH = 1.0  # of the pull towards 0 (L2)
OF_KIND = 1 + [field.name for field in fields(Evidence)].index("is_symbol")
BINS = (0.0, 0.2, 0.4, 0.6, 0.8)


@dataclass(frozen=True, slots=True)
class Shown:
    """A hit: what shows that it is right, and whether it is."""

    package: str
    place: int
    evidence: tuple[float, ...]
    is_right: bool


def shown(
    package: str,
    query: Query,
    files: Sequence[str],
    lexical: list[Candidate],
    semantic: list[Candidate],
) -> list[Shown]:
    """The first hits for one question."""
    found, cosines = found_for(query, lexical, semantic), cosines_of(lexical, semantic)
    hits = rank(query, lexical, semantic)[:JUDGED_TOGETHER]
    return [
        Shown(
            package,
            place,
            astuple(evidence_of(found.context, chunk, found.alone[chunk.document_id], cosines)),
            chunk.key in files,
        )
        for place, chunk in enumerate(speaking_for(hits, found))
    ]


async def measure(corpora: list[Corpus], folder: Path) -> dict[str, list[Shown]]:
    """The hits of all questions, with vectors and without."""
    chosen = random.Random(5)
    found: dict[str, list[Shown]] = {"by meaning": [], "by words": []}
    for corpus in corpora:
        foreign = [label for other in CORPORA if other != corpus for label in labels_of(other)]
        asked = [(label["query"], label["files"]) for label in labels_of(corpus)]
        asked += [(query, []) for query in unanswered_by(corpus)]
        asked += [(label["query"], []) for label in chosen.sample(foreign, FOREIGN_QUESTIONS)]
        table = map_without(corpus, folder)
        async with opened(corpus, folder) as codebase:
            asked += only_used(await rows_of(codebase))
            for text, files in asked:
                lexical, semantic = await candidates(codebase, text, table)
                query = Query(text)
                found["by meaning"] += shown(corpus.name, query, files, lexical, semantic)
                found["by words"] += shown(corpus.name, query, files, lexical, [])
        print(corpus.name, file=sys.stderr, flush=True)
    return found


def fitted(evidence: Any, is_right: Any) -> Any:
    """The weights of a logistic regression; the first is the base.

    None but the base and that of the kind of query may be negative: what speaks for a hit would
    speak against it beside a hit of another project. Such a feature is left out.
    """
    used = np.ones(evidence.shape[1], bool)
    while True:
        weights = np.zeros(len(used))
        weights[used] = _fitted(evidence[:, used], is_right)
        wrong = used & (weights < 0)
        wrong[0] = wrong[OF_KIND] = False
        if not wrong.any():
            return weights
        used[np.argmin(np.where(wrong, weights, 0))] = False


def _fitted(evidence: Any, is_right: Any) -> Any:
    """The weights, by Newton's method."""
    weights = np.zeros(evidence.shape[1])
    pull = STRENGTH * np.r_[0, np.ones(len(weights) - 1)]
    for _ in range(STEPS):
        likely = 1 / (1 + np.exp(-evidence @ weights))
        slope = evidence.T @ (likely - is_right) + pull * weights
        bend = (evidence * (likely * (1 - likely))[:, None]).T @ evidence + np.diag(pull + 1e-9)
        weights -= np.linalg.solve(bend, slope)
    return weights


def judged(hits: list[Shown]) -> dict[str, Any]:
    """How true the likelihoods are, and the weights."""
    evidence = np.array([(1.0, *hit.evidence) for hit in hits])
    is_right = np.array([hit.is_right for hit in hits], float)
    packages, places = (np.array([getattr(h, n) for h in hits]) for n in ("package", "place"))
    is_first, is_judged = places == 0, places < HITS
    likely = np.zeros(len(hits))
    for package in set(packages.tolist()):
        others = packages != package
        weights = fitted(evidence[others & is_judged], is_right[others & is_judged])
        likely[~others] = 1 / (1 + np.exp(-evidence[~others] @ weights))
    by_query = np.split(likely, np.flatnonzero(is_first)[1:])
    likely = np.concatenate([falling(each.tolist()) for each in by_query])
    table = []
    for low in BINS:
        chosen = is_judged & (likely >= low) & (likely < low + 0.2)
        if chosen.any():
            means = likely[chosen].mean(), is_right[chosen].mean()
            table.append([f"{low:.1f}", *(round(float(m), 2) for m in means), int(chosen.sum())])
    return {
        "hits": int(is_judged.sum()),
        "AUC of first hits": round(auc(likely[is_first], is_right[is_first]), 3),
        "AUC of hits": round(auc(likely[is_judged], is_right[is_judged]), 3),
        "told and true": table,
        "weights": [
            round(float(weight), 2) for weight in fitted(evidence[is_judged], is_right[is_judged])
        ],
    }


def auc(likely: Any, is_right: Any) -> float:
    """How often a right hit has a higher likelihood than a wrong one."""
    order = np.empty(len(likely))
    order[np.argsort(likely)] = np.arange(len(likely))
    right = is_right.sum()
    below = order[is_right == 1].sum() - right * (right - 1) / 2
    return float(below / (right * (len(likely) - right)))


def main() -> int:
    folder, corpora, keeps = arguments_of(__doc__)
    found = {way: judged(hits) for way, hits in anyio.run(measure, corpora, folder).items()}
    names = ("base", *Evidence.__slots__)
    for way, values in found.items():
        print(f"\n{way}: {values['hits']} hits, AUC {values['AUC of hits']}")
        print(f"of first hits {values['AUC of first hits']}")
        print("| from | told | true | hits |\n|---|---|---|---|")
        for row in values["told and true"]:
            print(f"| {' | '.join(map(str, row))} |")
        print(", ".join(f"{n}={v}" for n, v in zip(names, values["weights"], strict=True)))
    if keeps:
        result = {"packages": [corpus.name for corpus in corpora], **found}
        print(f"kept in {keep('likelihood', result).name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
