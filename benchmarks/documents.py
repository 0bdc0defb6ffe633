"""Is the right document among the first results? Labelled collections, and what each stage adds.

    python benchmarks/documents.py --folder DIR COLLECTION... [--sections DOCS...] [--keep]

COLLECTION is a folder with `documents.jsonl` (or `.jsonl.gz`: id, title, text), `queries.jsonl`
(id, text) and `qrels.tsv` (query id, document id, grade). DOCS is a folder of documentation, as in
the source distribution of a package: a collection is made of its sections, where a query is the
first sentence of a section or its heading, which is taken out of it. Weights were chosen on CACM,
Cranfield and NPL; report on others.

DIR keeps the files and their indexes between runs. nDCG@10: gain 2^grade - 1, discount
1 / log2(rank + 1), divided by that of the best order of all labels; a document counts once.
"""

import argparse
import gzip
import hashlib
import json
import math
import re
import statistics
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import anyio
import under_way
from kept import keep

from vector_index_mcp.documents.home import Home
from vector_index_mcp.documents.service import Documents
from vector_index_mcp.engine.chunk.headings import sections
from vector_index_mcp.engine.chunk.parts import flat
from vector_index_mcp.engine.prose import ranking
from vector_index_mcp.engine.prose.stems import asked_stems
from vector_index_mcp.engine.types import Hit, Vector
from vector_index_mcp.files.language import language_of
from vector_index_mcp.indexing.role import Role
from vector_index_mcp.serving.loading import load_documents
from vector_index_mcp.settings import Settings

UNDER_WAY = {f"query, {share:.0%}": share for share in (0.1, 0.5, 0.9)}
"""What is found while this share of the documents has vectors."""
STAGES = ("search", "vsearch", "fused", "+ own scores", "query", *UNDER_WAY)
BEST = 10
_NAME = re.compile(r"[^\w.-]+")
_SENTENCE = re.compile(r"([A-Z][^\n]*(?:\n[^\n]+)*?[.?!])(?:\s|$)")
_SECTION_CHARS = (350, 20_000)
_SENTENCE_WORDS = (7, 32)
_MOST_QUERIES = 400


@dataclass(frozen=True, slots=True)
class Collection:
    """Documents, queries and which of the documents answer them."""

    name: str
    documents: Mapping[str, tuple[str, str]]
    """Title and text by id."""
    queries: Mapping[str, str]
    grades: Mapping[str, Mapping[str, int]]
    """By query and document."""


def loaded(folder: Path) -> Collection:
    grades: defaultdict[str, dict[str, int]] = defaultdict(dict)
    for line in (folder / "qrels.tsv").read_text("utf-8").splitlines():
        query, document, grade = line.split("\t")
        grades[query][document] = int(grade)
    documents = {d["id"]: (d["title"], d["text"]) for d in _values(folder, "documents")}
    queries = {q["id"]: q["text"] for q in _values(folder, "queries") if q["id"] in grades}
    return Collection(folder.name, documents, queries, grades)


def _values(folder: Path, name: str) -> Iterator[dict[str, Any]]:
    packed = folder / f"{name}.jsonl.gz"
    data = gzip.decompress(packed.read_bytes()) if packed.exists() else None
    text = data or (folder / f"{name}.jsonl").read_bytes()
    return map(json.loads, text.decode("utf-8").splitlines())


def made_of(docs: Path) -> Collection:
    """The sections of documentation, each a document."""
    documents: dict[str, tuple[str, str]] = {}
    queries: dict[str, str] = {}
    grades: dict[str, dict[str, int]] = {}
    for path in sorted(docs.rglob("*")):
        language = "rst" if path.suffix == ".txt" else language_of(path.name)
        if language not in {"markdown", "rst", "asciidoc"} or not path.is_file():
            continue
        text = path.read_text("utf-8", "replace")
        for title, body in _sections(text, language):
            id_ = f"{path.relative_to(docs)}-{len(documents)}"
            is_asked = _SECTION_CHARS[0] <= len(body) <= _SECTION_CHARS[1]
            number = int(hashlib.sha256(id_.encode()).hexdigest()[:8], 16)
            if is_asked and len(queries) < _MOST_QUERIES and number % 4 == 0:
                title, body, query = _asked(title, body, by_heading=number % 8 == 0)
                if query:
                    queries[id_], grades[id_] = query, {id_: 1}
            documents[id_] = title, body
    return Collection(docs.name, documents, queries, grades)


def _sections(text: str, language: str) -> Iterator[tuple[str, str]]:
    lines = text.split("\n")
    parts = [*flat(sections(text, language))]
    for part, after in zip(parts, [*parts[1:], None], strict=True):
        end = after.start if after is not None else len(lines)
        body = "\n".join(lines[part.named_at + 1 : end]).lstrip("=-~^*+#\n")
        if body.strip():
            yield part.name, body


def _asked(title: str, body: str, *, by_heading: bool) -> tuple[str, str, str]:
    """Title and text without what is asked, and that; empty if the section is not asked for."""
    if by_heading:
        return ("", body, title) if len(title.split()) >= 3 else (title, body, "")
    match = _SENTENCE.match(body.lstrip())
    sentence = " ".join(match[1].split()) if match else ""
    if not _SENTENCE_WORDS[0] <= len(sentence.split()) <= _SENTENCE_WORDS[1]:
        return title, body, ""
    return title, body.replace(match[1] if match else "", "", 1), sentence


async def ranked(collection: Collection, folder: Path) -> dict[str, dict[str, list[str]]]:
    """For each stage and query, the ids of the documents, best first."""
    ids = files_of(collection, folder)
    documents = load_documents(_written(collection, folder), Settings(max_file_bytes=10_000_000))
    found: dict[str, dict[str, list[str]]] = {stage: {} for stage in STAGES}
    async with documents.running(Role.VISITOR):
        await documents.index.trigger(force_reindex=False)
        await documents.embed()
        for id_, query in collection.queries.items():
            for stage, hits in (await _stages(documents, query)).items():
                files = (hit.chunk.key.partition("/")[2] for hit in hits)
                found[stage][id_] = [ids[file] for file in files]
    return found


async def _stages(documents: Documents, query: str) -> dict[str, Sequence[Hit]]:
    async with documents.index.reading() as (index, ledger):
        store, stems = index.store, asked_stems(query)
        [vector] = await documents.embedder.embed([query], are_queries=True)
        lexical = await store.matching(stems, ranking.CANDIDATES)
        semantic = await store.nearest(vector, ranking.CANDIDATES)
        vectors = await store.vectors_of({c.chunk.document_id for c in (*lexical, *semantic)})
    variants = [ranking.Variant(len(stems), lexical, semantic, vector)]
    fusion = ranking.Fusion(variants, vectors, ledger.chunk_count)
    partly = {
        stage: _under_way(variants[0], vectors, ledger.chunk_count, share)
        for stage, share in UNDER_WAY.items()
    }
    return {
        "search": ranking.by_words(lexical),
        "vsearch": ranking.by_meaning(semantic),
        "fused": fusion.fused,
        "+ own scores": sorted(fusion.fused, key=lambda hit: -hit.score),
        "query": fusion.ranked(),
        **partly,
    }


def _under_way(
    variant: ranking.Variant, vectors: Mapping[str, Vector], chunks: int, share: float
) -> Sequence[Hit]:
    lexical = under_way.lexical(variant.lexical, share)
    semantic = under_way.semantic(variant.semantic, share)
    known = {c.chunk.document_id for c in (*lexical, *semantic) if c.chunk.has_vector}
    left = {id_: vector for id_, vector in vectors.items() if id_ in known}
    partly = replace(variant, lexical=lexical, semantic=semantic)
    return ranking.Fusion([partly], left, chunks).ranked()


def _written(collection: Collection, folder: Path) -> Home:
    """The home of a collection whose documents are files now."""
    place = folder / collection.name
    files_of(collection, folder)
    configuration = place / "index.yml"
    configuration.write_text(
        f"collections:\n  all:\n    path: {json.dumps(str(place / 'documents'))}\n", "utf-8"
    )
    return Home("index", configuration, str(place / "index.lancedb"))


def files_of(collection: Collection, folder: Path) -> dict[str, str]:
    """The documents' files below `folder / name / documents`, which are written; ids by name."""
    for id_, (title, text) in collection.documents.items():
        file = folder / collection.name / "documents" / _file_of(id_)
        file.parent.mkdir(parents=True, exist_ok=True)
        heading = f"# {' '.join(title.split())}\n\n" if title else ""
        if not file.exists():
            file.write_text(heading + text, "utf-8")
    return {_file_of(id_): id_ for id_ in collection.documents}


def _file_of(id_: str) -> str:
    return f"{_NAME.sub('-', id_)}.md"


def ndcg(order: Sequence[str], grades: Mapping[str, int]) -> float:
    best = sorted(grades.values(), reverse=True)[:BEST]
    return _gain(grades.get(id_, 0) for id_ in order[:BEST]) / (_gain(best) or 1.0)


def _gain(grades: Iterable[int]) -> float:
    return sum((2**grade - 1) / math.log2(rank + 1) for rank, grade in enumerate(grades, 1))


def recall(order: Sequence[str], grades: Mapping[str, int]) -> float:
    wanted = {id_ for id_, grade in grades.items() if grade}
    return len(wanted.intersection(order[:BEST])) / (len(wanted) or 1)


def measured(
    collection: Collection, found: dict[str, dict[str, list[str]]]
) -> dict[str, dict[str, float]]:
    """For each stage, the mean of each measure."""
    return {
        stage: {
            measure.__name__: statistics.mean(
                measure(order, collection.grades[id_]) for id_, order in found[stage].items()
            )
            for measure in (ndcg, recall)
        }
        for stage in STAGES
    }


def report(name: str, collection: Collection, found: dict[str, dict[str, list[str]]]) -> list[str]:
    lines = [
        f"\n{name}: {len(collection.documents):,} documents, {len(collection.queries)} queries",
        f"{'':14}{'nDCG@10':>9}{'recall@10':>11}",
    ]
    for stage, means in measured(collection, found).items():
        lines.append(f"{stage:14}{means['ndcg']:>9.3f}{means['recall']:>11.3f}")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("collections", nargs="*", type=Path)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--sections", nargs="*", type=Path, default=[])
    parser.add_argument("--keep", action="store_true")
    chosen = parser.parse_args()
    folder = chosen.folder.resolve() / "documents"
    lines: list[str] = []
    kept: dict[str, Any] = {}
    for collection in (*map(loaded, chosen.collections), *map(made_of, chosen.sections)):
        found = anyio.run(ranked, collection, folder)
        lines += report(collection.name, collection, found)
        kept[collection.name] = measured(collection, found)
        print("\n".join(lines[-len(STAGES) - 2 :]), flush=True)
    if chosen.keep:
        keep("documents", kept)


if __name__ == "__main__":
    main()
