"""Run by quality.py in an environment with semble 0.7.0, model2vec[distill] and scikit-learn.

semble's own model is only to be had from a hub; it gets a static model distilled from
all-MiniLM-L6-v2 with model2vec instead, kept in the folder that is the only argument. Reads jobs
as JSON from standard input, prints the hits of each query.
"""

import json
import sys
from pathlib import Path
from typing import Any

from semble import SembleIndex  # type: ignore[import-not-found]
from weights import weights

# `alpha` is the share of vectors in semble's score; None lets it choose by the query.
SYSTEMS = {"semble 0.7.0": None, "semble 0.7.0, full text only": 0.0}


def main(model: Path) -> None:
    if not model.is_dir():
        # Heavy, and needed once: speed.py measures this script from its start.
        from model2vec.distill import distill  # type: ignore[import-not-found]

        distill(model_name=weights(), pca_dims=256).save_pretrained(str(model))
    answers: dict[str, list[Any]] = {name: [] for name in SYSTEMS}
    for job in json.load(sys.stdin):
        index = SembleIndex.from_path(job["project"], model_path=str(model))
        for query in job["queries"]:
            for name, alpha in SYSTEMS.items():
                hits = index.search(query, top_k=10, alpha=alpha)
                answers[name].append(
                    [
                        (
                            hit.chunk.file_path.removeprefix(f"{job['project']}/"),
                            len(hit.chunk.content),
                        )
                        for hit in hits
                    ]
                )
    json.dump(answers, sys.stdout)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
