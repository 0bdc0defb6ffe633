"""How long is an answer, and does it hold the place that was asked for?

Asks the labelled questions that name lines, as an agent does, and measures the answer in the forms
in which clients pass it on: text, structured, and structured with all that is stored (`verbose`,
which was the only structured form once). A place counts as shown if a hit, or with `also` one of
the other places of its file, overlaps the labelled lines.

    python benchmarks/answers.py --folder DIR [--only flask,httpx] [--keep]

DIR is that of quality.py, which says how long a first run takes.
"""

import json
import statistics
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import anyio
from corpora import labels_of
from kept import keep
from packages import Corpus
from quality import arguments_of, opened

from vector_index_mcp.codebase import rendering, text
from vector_index_mcp.codebase.budget import CHARS_PER_TOKEN
from vector_index_mcp.codebase.hits import SearchHit, SearchResult
from vector_index_mcp.codebase.limits import DEFAULT_MAX_TOKENS

COUNTS = (5, 20)
Lines = Mapping[str, Sequence[int]]


def lengths(result: SearchResult) -> dict[str, float]:
    """Characters and shares of one answer."""
    compact = json.dumps(result.compact(), ensure_ascii=False, separators=(",", ":"))
    return {
        "text": len(text.of_search(result)),
        "structured": len(compact),
        "verbose": len(result.model_dump_json()),
        "cut": sum(hit.is_cut for hit in result.results),
        "left out": 0.0,
    }


def holds(hit: SearchHit, lines: Lines, *, with_others: bool) -> bool:
    """Whether a hit shows what was asked for."""
    if hit.file_path not in lines:
        return False
    first, last = lines[hit.file_path]
    spans = [(hit.start_line, hit.end_line)]
    if with_others:
        spans += [tuple(map(int, place.split(" ")[0].split("-"))) for place in hit.also]
    return any(start <= last and first <= end for start, end in spans)


async def measure(corpora: list[Corpus], folder: Path) -> dict[int, dict[str, list[float]]]:
    found: dict[int, dict[str, list[float]]] = {count: {} for count in COUNTS}
    for corpus in corpora:
        async with opened(corpus, folder) as codebase:
            for label in labels_of(corpus):
                if not label.get("lines"):
                    continue
                for count in COUNTS:
                    answer = await codebase.search(label["query"], count, wait_for_model=True)
                    result = rendering.search_result(answer, DEFAULT_MAX_TOKENS)
                    values = lengths(result)
                    values["left out"] = len(answer.hits) - len(result.results)
                    for name, is_wide in (("place", False), ("place with also", True)):
                        hits = result.results[:5]
                        values[name] = any(
                            holds(h, label["lines"], with_others=is_wide) for h in hits
                        )
                    for name, value in values.items():
                        found[count].setdefault(name, []).append(float(value))
        print(corpus.name, file=sys.stderr, flush=True)
    return found


def main() -> int:
    folder, corpora, keeps = arguments_of(__doc__)
    found = anyio.run(measure, corpora, folder)
    print("| top_k | text | structured | verbose | texts cut | place in 5 | with `also` |")
    print("|---|---|---|---|---|---|---|")
    kept = {}
    for count, values in found.items():
        means = {name: statistics.fmean(each) for name, each in values.items()}
        tokens = {n: round(means[n] / CHARS_PER_TOKEN) for n in ("text", "structured", "verbose")}
        kept[str(count)] = tokens | {
            "questions": len(values["text"]),
            "texts cut": round(means["cut"], 2),
            "hits left out": round(means["left out"], 2),
            "place in 5": round(means["place"], 3),
            "place in 5 with also": round(means["place with also"], 3),
        }
        row = [*tokens.values(), *list(kept[str(count)].values())[4:5]]
        row += [kept[str(count)]["place in 5"], kept[str(count)]["place in 5 with also"]]
        print(f"| {count} | {' | '.join(map(str, row))} |")
    if keeps:
        result = {"packages": [corpus.name for corpus in corpora], "answers": kept}
        print(f"kept in {keep('answers', result).name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
