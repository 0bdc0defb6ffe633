"""Is the right file among the first results? Labelled queries over released packages.

The labels (labels/<corpus>.json) were written by reading the sources: a query, its category, the
files that answer it and, where it is clear, the lines. Half of them, chosen by a hash of the query,
is for tuning; only the other half is reported.

    python benchmarks/quality.py --folder DIR [--half tune] [--semble PYTHON] [--keep]

DIR keeps the fetched packages, their indexes and the embeddings between runs; the first run embeds
everything, which takes some ten minutes. PYTHON is that of an environment with semble 0.7.0,
model2vec[distill] and scikit-learn for the comparison.
"""

import argparse
import hashlib
import json
import math
import re
import shutil
import statistics
import subprocess
import sys
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import cycle
from pathlib import Path
from typing import Any

import anyio
import lancedb
import under_way
from corpora import fetch, labels_of
from kept import keep
from left_out import map_without
from packages import CORPORA, Corpus

from vector_index_mcp.codebase.budget import CHARS_PER_TOKEN
from vector_index_mcp.codebase.service import Codebase
from vector_index_mcp.engine.kinds import kinds_of
from vector_index_mcp.engine.models import question_map
from vector_index_mcp.engine.ranking.query import Query
from vector_index_mcp.engine.ranking.rank import STEPS, rank
from vector_index_mcp.engine.ranking.search import FEWEST_CANDIDATES, compared
from vector_index_mcp.engine.ranking.signals import SIGNALS
from vector_index_mcp.engine.text.words import joined, last_name
from vector_index_mcp.engine.types import Candidate, Hit, StoredChunk, Vectors
from vector_index_mcp.indexing.role import Role
from vector_index_mcp.serving.loading import load_codebase
from vector_index_mcp.settings import Settings

CATEGORIES = ("sentence", "architecture", "symbol")
EVERYTHING = (*SIGNALS, *STEPS)
SAMPLED_SYMBOLS = 200
SAMPLED_USES, FEW = 8, 3  # names of each package; chunks that have one
# `user_name`, `userName`, `USER_NAME`, as a whole: neither a part of a longer name nor cut off.
_COMPOUND = re.compile(
    r"(?<![\w$-])(?:[A-Za-z]+_[A-Za-z_]{2,40}|[a-z]{2,20}[A-Z][A-Za-z]{2,40})(?![\w-])"
)
# A text in code that may be an error's, and what a program fills in: `{name}`, `%s`, `${name}`.
_MESSAGE = re.compile(r"([\"'`])([A-Z][^\"'`\n\\<=]{24,120})\1")
_HOLE = re.compile(r"\$?\{[^{}]*\}|%\(\w+\)[sdr]|%[-+\d.]*[sdiqvrx]")
_FEWEST_SPACES = 4
_FILLED_IN = ("10.0.0.7:8080", "/var/lib/app/data.db", "42", "Widget", "eth0", "users.json")
_LONGEST_PIECE = 3  # words between what is filled in, for a message that is said to be in pieces


@dataclass(frozen=True, slots=True)
class Case:
    """One labelled query with what both searches found for it."""

    corpus: str
    query: str
    category: str
    files: list[str]
    lexical: list[Candidate]
    semantic: list[Candidate]
    is_natural: bool = False
    """Whether it was written without rules about its words."""


IsRight = Callable[[StoredChunk], bool]


@dataclass(frozen=True, slots=True)
class Lookup:
    """An identifier, a file's name or a quotation: the first result has to be the right one."""

    kind: str
    text: str
    is_right: IsRight
    lexical: list[Candidate]
    semantic: list[Candidate]

    def is_first(self, *, vectors: bool = True, without: Sequence[str] = ()) -> bool:
        """Whether it is."""
        semantic = self.semantic if vectors else []
        hits = rank(Query(self.text), self.lexical, semantic, without=without)
        return bool(hits) and self.is_right(hits[0].chunk)


@dataclass(slots=True)
class Score:
    """What one system reached."""

    ndcg: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    recall: list[float] = field(default_factory=list)
    tokens: list[float] = field(default_factory=list)

    def add(self, case: Case, hits: Sequence[tuple[str, int]]) -> None:
        """Note the hits of one query: files in order, and the length of each text."""
        value = ndcg([file for file, _ in hits], case.files)
        language = Path(case.files[0]).suffix.lstrip(".") or "none"
        for group in ("all", case.category, f"corpus {case.corpus}", f"language {language}"):
            self.ndcg[group].append(value)
        first = {file for file, _ in hits[:5]}
        self.recall.append(len(first & set(case.files)) / len(case.files))
        self.tokens.append(sum(chars for _, chars in hits[:5]) / CHARS_PER_TOKEN)

    def means(self) -> dict[str, float]:
        """All figures by name."""
        found = {name: statistics.fmean(values) for name, values in self.ndcg.items()}
        found["recall@5"] = statistics.fmean(self.recall)
        found["tokens"] = statistics.fmean(self.tokens)
        return {name: round(value, 3) for name, value in found.items()}


def ndcg(files: Sequence[str], relevant: Iterable[str], depth: int = 10) -> float:
    """NDCG@10 with binary relevance; a file met again has used a place and gains nothing."""
    wanted = set(relevant)
    gains = 0.0
    ideal = sum(1 / math.log2(place + 2) for place in range(min(depth, len(wanted))))
    for place, file in enumerate(files[:depth]):
        if file in wanted:
            wanted.remove(file)
            gains += 1 / math.log2(place + 2)
    return gains / ideal


def half_of(query: str) -> str:
    """Which half a query belongs to; a hash, so that it never changes."""
    return "tune" if hashlib.sha256(query.encode()).digest()[0] % 2 == 0 else "report"


# -- our own searches ----------------------------------------------------------------------------


async def indexed(codebase: Codebase) -> None:
    """Wait until every chunk of `codebase` has its vector."""
    run = await codebase.index.trigger(force_reindex=False)
    await run.finished.wait()
    while codebase.index.progress.lacks_vectors:
        await codebase.index.embedding_progressed()


@asynccontextmanager
async def opened(corpus: Corpus, folder: Path) -> AsyncIterator[Codebase]:
    """The index of a package, with all its vectors; what is kept in `folder` is used again."""
    project = fetch(corpus, folder / "sources")
    settings = Settings(
        lancedb_uri=str(folder / "indexes" / corpus.name),
        embedding_cache_dir=str(folder / "embeddings"),
    )
    codebase = load_codebase(project, settings)
    async with codebase.running(Role.VISITOR):
        await indexed(codebase)
        yield codebase


def arguments_of(description: str | None) -> tuple[Path, list[Corpus], bool]:
    """What a benchmark over these packages is told: the folder, which packages, whether to keep."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--folder", type=Path, required=True, help="where everything is kept")
    parser.add_argument("--only", default="", help="names of packages, with commas; all if empty")
    parser.add_argument("--keep", action="store_true", help="write the results to results/")
    arguments = parser.parse_args()
    folder, names = arguments.folder.resolve(), arguments.only.split(",")
    (folder / "sources").mkdir(parents=True, exist_ok=True)
    chosen = [corpus for corpus in CORPORA if not arguments.only or corpus.name in names]
    return folder, chosen, arguments.keep


async def measure_corpus(corpus: Corpus, folder: Path) -> tuple[list[Case], list[Lookup]]:
    """The labelled queries of one corpus and the lookups sampled from it, with their candidates."""
    table = map_without(corpus, folder)
    async with opened(corpus, folder) as codebase:
        cases = [
            Case(
                corpus.name,
                label["query"],
                label["category"],
                label["files"],
                *await candidates(codebase, label["query"], table),
                is_natural=label.get("natural", False),
            )
            for label in labels_of(corpus)
        ]
        lookups = [
            Lookup(kind, text, is_right, *await candidates(codebase, text, table))
            for kind, text, is_right in await sampled_lookups(codebase)
        ]
    return cases, lookups


async def candidates(
    codebase: Codebase, text: str, table: Vectors
) -> tuple[list[Candidate], list[Candidate]]:
    """What full text and vectors propose for a query whose vector is moved by `table`."""
    [made] = await codebase.index.embedder.embed([text])
    vector = question_map.moved(made, table)
    async with codebase.index.reading() as (index, _):
        words = Query(text).matched
        lexical = await index.store.matching(words, FEWEST_CANDIDATES, with_vectors=True)
        semantic = await index.store.nearest(vector, FEWEST_CANDIDATES)
    return [compared(each, vector) for each in lexical], semantic


async def sampled_lookups(codebase: Codebase) -> list[tuple[str, str, IsRight]]:
    """Identifiers, file names, quotations and messages of a corpus, with how to tell the place."""
    rows = await rows_of(codebase)
    defining = defaultdict(list)
    for row in rows:
        for name in row["symbols"]:
            defining[name].append(row["document_id"])
    # Of a name with several definitions, nobody could tell which is meant.
    alone = [name for name, places in defining.items() if len(places) == 1 and len(name) > 4]
    symbols = _sampled(alone, SAMPLED_SYMBOLS // len(CORPORA) + 1)
    names = _sampled({row["file_path"].rpartition("/")[2] for row in rows}, 4)
    lines = {_longest_line(row["extracted_text_chunk"]) for row in rows}
    quotations = _sampled({line for line in lines if len(line) >= 30}, 4)
    rare = rare_messages(rows)
    return [
        *(("used", name, partial(_holds, name)) for name, _ in only_used(rows)),
        *(("symbol", name, partial(_is_chunk, defining[name][0])) for name in symbols),
        *(("file name", name, partial(_is_in_file, name)) for name in names),
        *(("quotation", f'"{line}"', partial(_holds, line)) for line in quotations),
        *(("message", seen, partial(_holds, text)) for text, seen in messages(rare)),
        *(("in pieces", seen, partial(_holds, text)) for text, seen in in_pieces(rare)),
    ]


def rare_messages(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Texts of several words in code, which stand in few places."""
    places: dict[str, int] = defaultdict(int)
    for row in rows:
        if not kinds_of(row["file_path"], row["language"]):
            for _, text in set(_MESSAGE.findall(row["extracted_text_chunk"])):
                places[text] += text.count(" ") >= _FEWEST_SPACES
    return [text for text, count in places.items() if 0 < count <= FEW]


def messages(rare: Sequence[str]) -> list[tuple[str, str]]:
    """Some of these texts, each with what a user sees."""
    return [(text, f"Error: {_HOLE.sub('users.json', text)}") for text in _sampled(rare, 8)]


def in_pieces(rare: Sequence[str]) -> list[tuple[str, str]]:
    """Some in which no four words stand in a row, each with what a user sees."""
    broken = []
    for text in rare:
        pieces = [len(piece.split()) for piece in _HOLE.split(text)]
        if max(pieces) <= _LONGEST_PIECE < sum(pieces):
            broken.append(text)
    return [(text, _filled(text)) for text in _sampled(broken, 8)]


def _filled(text: str) -> str:
    values = cycle(_FILLED_IN)
    return _HOLE.sub(lambda _: next(values), text)


def only_used(rows: Sequence[Mapping[str, Any]]) -> list[tuple[str, list[str]]]:
    """Names of several words that stand in few chunks and are defined in none, with their files."""
    known = {joined(last_name(name)) for row in rows for name in row["symbols"]}
    used = defaultdict(list)
    for row in rows:
        for name in set(_COMPOUND.findall(row["extracted_text_chunk"])):
            used[name].append(row["file_path"])
    rare = (n for n, files in used.items() if len(files) <= FEW and joined(n) not in known)
    return [(name, used[name]) for name in _sampled(rare, SAMPLED_USES)]


async def rows_of(codebase: Codebase) -> list[dict[str, Any]]:
    """What lookups are sampled from."""
    columns = ["document_id", "file_path", "language", "symbols", "extracted_text_chunk"]
    rows: list[dict[str, Any]] = await (await chunks_of(codebase)).query().select(columns).to_list()
    return rows


async def chunks_of(codebase: Codebase) -> lancedb.AsyncTable:
    """The table of the chunks; an index that was rebuilt has it under another name."""
    db = await lancedb.connect_async(codebase.index.uri)
    names = (await db.list_tables()).tables
    return await db.open_table(max((n for n in names if n.startswith("chunks")), key=len))


def _is_chunk(document_id: str, chunk: StoredChunk) -> bool:
    return chunk.document_id == document_id


def _is_in_file(name: str, chunk: StoredChunk) -> bool:
    return f"/{chunk.key}".endswith(f"/{name}")


def _holds(line: str, chunk: StoredChunk) -> bool:
    return line in chunk.text


def _sampled(values: Iterable[str], count: int) -> list[str]:
    """`count` of `values`, always the same ones."""
    return sorted(values, key=lambda v: hashlib.sha256(v.encode()).digest())[:count]


def _longest_line(text: str) -> str:
    lines = [line.strip()[:80].strip() for line in text.split("\n") if '"' not in line]
    return max(lines, key=len, default="")


def _files(hits: Sequence[Hit | Candidate]) -> list[tuple[str, int]]:
    return [(hit.chunk.key, len(hit.chunk.text)) for hit in hits[:10]]


def _ranked(case: Case, *, vectors: bool, without: Sequence[str] = ()) -> list[tuple[str, int]]:
    semantic = case.semantic if vectors else []
    return _files(rank(Query(case.query), case.lexical, semantic, without=without))


def _under_way(case: Case, share: float) -> list[tuple[str, int]]:
    """The result while this share of the files has vectors."""
    lexical = under_way.lexical(case.lexical, share)
    return _files(rank(Query(case.query), lexical, under_way.semantic(case.semantic, share)))


SYSTEMS: dict[str, Callable[[Case], list[tuple[str, int]]]] = {
    "full text only (BM25)": lambda case: _files(case.lexical),
    "vectors only": lambda case: _files(case.semantic),
    "hybrid without ranking": partial(_ranked, vectors=True, without=EVERYTHING),
    "full text with ranking": partial(_ranked, vectors=False),
    "hybrid": partial(_ranked, vectors=True),
    **{
        f"hybrid, {share:.0%} of the files have vectors": partial(_under_way, share=share)
        for share in (0.1, 0.3, 0.5, 0.7, 0.9)
    },
    **{
        f"{base} without {name}": partial(_ranked, vectors=vectors, without=[name])
        for base, vectors in (("full text", False), ("hybrid", True))
        for name in EVERYTHING
    },
}


# -- the others ----------------------------------------------------------------------------------


def grep(case: Case, project: Path) -> list[tuple[str, int]]:
    """What an agent without an index does: the files that hold most of the words."""
    counts: dict[str, int] = defaultdict(int)
    tool = ["rg", "-il", "--no-messages"] if shutil.which("rg") else ["grep", "-rilI"]
    for word in Query(case.query).subject[:12]:
        listed = subprocess.run(
            [*tool, "--", word, "."], cwd=project, capture_output=True, text=True, check=False
        )
        for line in listed.stdout.splitlines():
            counts[line.removeprefix("./")] += 1
    best = sorted(counts, key=lambda file: (-counts[file], file))[:10]
    return [(file, (project / file).stat().st_size) for file in best]


def ask_semble(python: str, cases: list[Case], folder: Path) -> dict[str, list[Any]]:
    """What semble finds, by query, asked in an environment of its own."""
    jobs = [
        {
            "project": str(folder / "sources" / f"{corpus.name}-{corpus.version}"),
            "queries": [case.query for case in cases if case.corpus == corpus.name],
        }
        for corpus in CORPORA
    ]
    script = Path(__file__).with_name("semble_peer.py")
    command = [python, str(script), str(folder / "semble-model")]
    answered = subprocess.run(command, input=json.dumps(jobs), stdout=subprocess.PIPE, text=True)
    found: dict[str, list[Any]] = json.loads(answered.stdout)
    return found


# -- the report ----------------------------------------------------------------------------------


def evaluate(cases: list[Case], folder: Path, semble: str | None) -> dict[str, Score]:
    scores: dict[str, Score] = defaultdict(Score)
    projects = {c.name: folder / "sources" / f"{c.name}-{c.version}" for c in CORPORA}
    for case in cases:
        scores["ripgrep" if shutil.which("rg") else "grep"].add(
            case, grep(case, projects[case.corpus])
        )
        for name, system in SYSTEMS.items():
            scores[name].add(case, system(case))
    if semble:
        for name, answers in ask_semble(semble, cases, folder).items():
            for case, hits in zip(_by_corpus(cases), answers, strict=True):
                scores[name].add(case, [(file, chars) for file, chars in hits])
    return scores


def _by_corpus(cases: list[Case]) -> list[Case]:
    order = {corpus.name: place for place, corpus in enumerate(CORPORA)}
    return sorted(cases, key=lambda case: order[case.corpus])


def table(means: dict[str, dict[str, float]]) -> str:
    lines = [
        "| system | NDCG@10 | sentence | architecture | symbol | recall@5 | tokens |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, values in means.items():
        columns = [values[c] for c in ("all", *CATEGORIES, "recall@5")]
        figures = " | ".join(f"{value:.3f}" for value in columns)
        lines.append(f"| {name} | {figures} | {values['tokens']:.0f} |")
    return "\n".join(lines)


def lookup_table(lookups: list[Lookup]) -> dict[str, dict[str, str]]:
    """How many of each kind are found first: by all signals, and without each of five."""
    variants: dict[str, Callable[[Lookup], bool]] = {
        "full text with ranking": lambda lookup: lookup.is_first(vectors=False),
        "hybrid": lambda lookup: lookup.is_first(),
    }
    for name in ("defines", "holds", "named", "quoted", "verbatim"):
        variants[f"hybrid without {name}"] = partial(Lookup.is_first, without=[name])
    found = {}
    for variant, is_first in variants.items():
        firsts = defaultdict(list)
        for lookup in lookups:
            firsts[lookup.kind].append(is_first(lookup))
        found[variant] = {k: f"{sum(v)} of {len(v)}" for k, v in firsts.items()}
    return found


async def measure(folder: Path, half: str) -> tuple[list[Case], list[Lookup]]:
    cases: list[Case] = []
    lookups: list[Lookup] = []
    for corpus in CORPORA:
        of_corpus, sampled = await measure_corpus(corpus, folder)
        cases += [case for case in of_corpus if half in ("all", half_of(case.query))]
        lookups += sampled
        print(f"{corpus.name}: {len(of_corpus)} queries", file=sys.stderr, flush=True)
    return cases, lookups


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, required=True, help="where everything is kept")
    parser.add_argument("--half", choices=("tune", "report", "all"), default="report")
    parser.add_argument("--semble", metavar="PYTHON", help="compare with semble")
    parser.add_argument("--keep", action="store_true", help="write the results to results/")
    arguments = parser.parse_args()
    folder = arguments.folder.resolve()
    (folder / "sources").mkdir(parents=True, exist_ok=True)
    cases, lookups = anyio.run(measure, folder, arguments.half)
    scores = evaluate(cases, folder, arguments.semble)
    means = {name: score.means() for name, score in scores.items()}
    print(f"{len(cases)} queries ({arguments.half}) over {len(CORPORA)} packages\n")
    print(table(means))
    firsts = lookup_table(lookups)
    kinds = list(next(iter(firsts.values())))
    print(f"\n| found first | {' | '.join(kinds)} |\n|---|{'---|' * len(kinds)}")
    for variant, counts in firsts.items():
        print(f"| {variant} | {' | '.join(counts.values())} |")
    print()
    hybrid = means["hybrid"]
    for group in sorted(name for name in hybrid if name.startswith(("corpus", "language"))):
        lexical = means["full text with ranking"][group]
        print(f"{group}: hybrid {hybrid[group]:.3f}, full text {lexical:.3f}")
    if arguments.keep:
        found = {"half": arguments.half, "queries": len(cases), "systems": means, "first": firsts}
        print(f"kept in {keep('quality', found).name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
