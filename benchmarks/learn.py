"""Which file comes first? Learns the weights of `engine/ranking/file_order`, and judges them.

The model is a conditional logit (McFadden, Conditional Logit Analysis of Qualitative Choice
Behavior, 1974): of the files among the candidates, how likely is each the one that was looked for.
Packages are left out as a whole: each is judged by weights that were learned from others, over
several ways to split them. Questions that name or quote what they look for are left to the chunks.
Of most labels the words were chosen not to be those of file names, and the files to be small beside
large ones; the `natural` ones, which were written without such rules, are reported by themselves.

    python benchmarks/learn.py --folder DIR [--only flask,httpx] [--keep]

DIR is that of quality.py, which says how long a first run takes.
"""

import random
import statistics
import sys
from collections.abc import Iterable, Sequence
from dataclasses import astuple, dataclass, fields
from pathlib import Path
from typing import Any

import anyio
import numpy as np
from kept import keep
from packages import Corpus
from quality import CATEGORIES, Case, arguments_of, measure_corpus, ndcg

from vector_index_mcp.engine.ranking.file_order import FileEvidence
from vector_index_mcp.engine.ranking.query import Query
from vector_index_mcp.engine.ranking.rank import found_for

FEATURES = [field.name for field in fields(FileEvidence)]
GROUPS = ("all", *CATEGORIES, "natural")
SPLITS, PARTS = 5, 6
STEPS = 50
LONGEST_STEP = 0.5
STRENGTH = 1.0  # of the pull towards 0 (L2)


@dataclass(frozen=True, slots=True)
class Question:
    """A labelled question, with what speaks for each file that was found."""

    package: str
    category: str
    is_natural: bool
    files: list[str]
    found: list[str]
    """The files among the candidates, in the order of their best chunks."""
    evidence: Any
    """A matrix: a row for each of these files, a column for each feature."""

    @property
    def wording(self) -> str:
        """The group of questions it belongs to by its words."""
        return "natural" if self.is_natural else "other"

    @property
    def is_right(self) -> Any:
        """Of each of these files."""
        return np.array([file in self.files for file in self.found], float)


def question(case: Case, *, vectors: bool) -> Question | None:
    """What a case shows; None if files are not put in order for it."""
    query = Query(case.query)
    found = found_for(query, case.lexical, case.semantic if vectors else [])
    evidence = found.evidence()
    if not query.is_question or not evidence:
        return None
    rows = np.array([astuple(of_file) for of_file in evidence.values()])
    return Question(case.corpus, case.category, case.is_natural, case.files, list(evidence), rows)


def learned(questions: Iterable[Question], columns: Sequence[int]) -> Any:
    """The weights of the features in these columns."""
    return conditional_logit((q.evidence[:, columns], q.is_right) for q in questions)


def conditional_logit(choices: Iterable[tuple[Any, Any]]) -> Any:
    """The weights that make what is right most likely, by Newton's method.

    Args:
        choices: Of each, a matrix with a row for what may be chosen and a column for each feature,
            and whether each row is right; without any that is, a choice does not count.
    """
    asked = [(evidence, is_right) for evidence, is_right in choices if is_right.any()]
    weights = np.zeros(asked[0][0].shape[1])
    for _ in range(STEPS):
        slope, bend = STRENGTH * weights, STRENGTH * np.eye(len(weights))
        for evidence, is_right in asked:
            logits = evidence @ weights
            likely = np.exp(logits - logits.max())
            likely /= likely.sum()
            mean = likely @ evidence
            slope += mean - is_right @ evidence / is_right.sum()
            bend += (evidence * likely[:, None]).T @ evidence - np.outer(mean, mean)
        step = np.linalg.solve(bend, slope)
        step /= max(1.0, np.abs(step).max() / LONGEST_STEP)  # far away, the curve is no parabola
        weights -= step
        if np.abs(step).max() < 1e-6:
            break
    return weights


def ordered(asked: Question, columns: Sequence[int], weights: Any) -> list[str]:
    """The files of a question, best first."""
    logits = asked.evidence[:, columns] @ weights
    return [asked.found[row] for row in np.argsort(-logits, kind="stable")]


def judged(questions: list[Question], columns: Sequence[int], seed: int) -> list[list[str]]:
    """The files of each question, by weights that were learned from other packages."""
    packages = sorted({asked.package for asked in questions})
    random.Random(seed).shuffle(packages)
    part = {package: place % PARTS for place, package in enumerate(packages)}
    weights = [
        learned((q for q in questions if part[q.package] != each), columns) for each in range(PARTS)
    ]
    return [ordered(asked, columns, weights[part[asked.package]]) for asked in questions]


def figures(questions: list[Question], orders: Sequence[Sequence[str]]) -> dict[str, float]:
    """NDCG@10, and how often a right file is first, by category."""
    found: dict[str, float] = {}
    pairs = list(zip(questions, orders, strict=True))
    for name in GROUPS:
        chosen = [(q, order) for q, order in pairs if name in ("all", q.category, q.wording)]
        if chosen:
            found[name] = statistics.fmean(ndcg(order, q.files) for q, order in chosen)
            found[f"{name} first"] = statistics.fmean(order[0] in q.files for q, order in chosen)
    return {name: round(value, 3) for name, value in found.items()}


def report(questions: list[Question]) -> dict[str, Any]:
    """Before and after, the spread over splits, what each feature adds, and the weights."""
    every = list(range(len(FEATURES)))
    splits = [figures(questions, judged(questions, every, seed)) for seed in range(SPLITS)]
    after = {name: round(statistics.fmean(s[name] for s in splits), 3) for name in splits[0]}
    without = {
        FEATURES[left]: figures(questions, judged(questions, [c for c in every if c != left], 0))
        for left in every
        if left or len(every) == 1
    }
    weights = learned(questions, every)
    return {
        "questions": len(questions),
        "packages": len({asked.package for asked in questions}),
        "before": figures(questions, [asked.found for asked in questions]),
        "after": after,
        "spread of all": [min(s["all"] for s in splits), max(s["all"] for s in splits)],
        "without": without,
        "weights": {n: round(float(w), 2) for n, w in zip(FEATURES, weights, strict=True)},
    }


def show(way: str, found: dict[str, Any]) -> None:
    """Print one report."""
    low, high = found["spread of all"]
    print(f"\n{way}: {found['questions']} questions over {found['packages']} packages, ", end="")
    print(f"NDCG@10 {low} to {high} over {SPLITS} splits")
    names = [name for name in GROUPS if name in found["before"]]
    print(f"| | {' | '.join(f'{name} | first' for name in names)} |")
    print(f"|---|{'---|---|' * len(names)}")
    rows = {"before": found["before"], "after": found["after"]}
    rows |= {f"without {name}": values for name, values in found["without"].items()}
    for title, values in rows.items():
        columns = [f"{values[name]:.3f} | {values[f'{name} first']:.3f}" for name in names]
        print(f"| {title} | {' | '.join(columns)} |")
    print(", ".join(f"{name}={weight}" for name, weight in found["weights"].items()))


async def measure(corpora: Sequence[Corpus], folder: Path) -> list[Case]:
    """The labelled questions with their candidates."""
    cases: list[Case] = []
    for corpus in corpora:
        cases += (await measure_corpus(corpus, folder))[0]
        print(corpus.name, file=sys.stderr, flush=True)
    return cases


def main() -> int:
    folder, corpora, keeps = arguments_of(__doc__)
    cases = anyio.run(measure, corpora, folder)
    found = {}
    for way, vectors in (("by meaning", True), ("by words", False)):
        asked = [question(case, vectors=vectors) for case in cases]
        found[way] = report([each for each in asked if each is not None])
        show(way, found[way])
    if keeps:
        print(f"kept in {keep('learn', found).name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
