"""Where the time of a first index goes, and how far that is from what the machine could do.

    python benchmarks/limits.py --folder DIR [--files 2000] [--keep]

DIR is that of quality.py, whose packages are used. Three tables:

- what text costs: processor seconds per megabyte of the project for each step on the way from a
  file to what words find, one after the other; the limit is to read the bytes and no more.
- what vectors cost: the arithmetic per second of a model that embeds chunks as the worker does; the
  limit is the same processor multiplying matrices, those of the model's own sizes and large ones.

- what a save costs before its file is read: finding out what has to be done about it, in projects
  of 1,000, 10,000 and 100,000 known files; the limit is to look at one file.

Times of text are processor times, which are the same on a busy machine; those of vectors are not,
because all threads work on each.
"""

import argparse
import hashlib
import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import anyio
from kept import keep
from projects import Project, make

from vector_index_mcp.engine.batched import batched
from vector_index_mcp.engine.chunk import chunk_text
from vector_index_mcp.engine.chunk.outline import outline
from vector_index_mcp.engine.models.embedding_requests import requests_of_equal_work
from vector_index_mcp.engine.models.model import find_model
from vector_index_mcp.engine.models.worker import Encoder
from vector_index_mcp.engine.store import Index
from vector_index_mcp.engine.store.index import Manifest
from vector_index_mcp.engine.text import fields
from vector_index_mcp.engine.types import Document, FileRecord
from vector_index_mcp.files import read, secrets
from vector_index_mcp.files.folder import Folder, Reading
from vector_index_mcp.files.ignore import Ignore
from vector_index_mcp.files.language import language_of
from vector_index_mcp.files.scan import look, walk
from vector_index_mcp.indexing.ledger import Ledger, Stamps
from vector_index_mcp.indexing.preparing.file import Task, prepare
from vector_index_mcp.indexing.preparing.recipe import Recipe
from vector_index_mcp.indexing.reasons import INDEXED

RECIPE, READING = Recipe(1_200), Reading()
FILES, FILES_PER_COMMIT = 2_000, 200
MODEL, TEXTS, TIMES = "all-MiniLM-L6-v2", 384, 5
# all-MiniLM-L6-v2: 6 layers, 384 wide and 1,536 inside, 256 tokens at most. A token is multiplied
# with each weight of the layers, and in each layer twice with each token of its text.
LAYERS, WIDTH, INSIDE = 6, 384, 1_536
WEIGHTS = LAYERS * (4 * WIDTH * WIDTH + 2 * WIDTH * INSIDE)
ROWS, LARGE = 2_048, 2_048
"""Of matrices: tokens at once, and a size at which arithmetic alone counts."""
KNOWN = (1_000, 10_000, 100_000)

Figures = dict[str, float]


class Steps:
    """Processor seconds by step."""

    def __init__(self) -> None:
        self.seconds: Figures = {}
        self.languages: set[str] = set()
        """Those met so far."""

    @contextmanager
    def of(self, name: str) -> Iterator[None]:
        """Add what is done meanwhile to the step `name`."""
        start = time.process_time()
        try:
            yield
        finally:
            self.seconds[name] = self.seconds.get(name, 0.0) + time.process_time() - start


# -- what text costs -----------------------------------------------------------------------------


async def text_costs(project: Project, uri: str) -> Figures:
    """Processor seconds per megabyte of source, by step."""
    steps, whole = Steps(), Steps()
    with steps.of("look for files"):
        keys = sorted(walk(Folder(project.root), Ignore(Folder(project.root))).files)
    documents = [document for key in keys if (document := _prepared(project.root, key, steps))]
    steps.seconds["cut"] -= steps.seconds["parse, find definitions"]
    await _store(documents, uri, steps)
    with whole.of("preparing, as the service does it"):
        for key in keys:
            prepare(RECIPE, Task(Folder(project.root), key))
    megabytes = project.size / 1e6
    return {name: taken / megabytes for name, taken in (steps.seconds | whole.seconds).items()}


def _prepared(root: Path, key: str, steps: Steps) -> Document | None:
    """What becomes of a file, step by step."""
    with steps.of("read the bytes"):
        data = (root / key).read_bytes()
    with steps.of("decode, hash, sort out"):
        content_hash = hashlib.sha256(data).hexdigest()
        text, language = read.decode(data), language_of(key)
        if text is None or len(data) > READING.max_file_bytes or read.is_minified(text, language):
            return None
    with steps.of("look for credentials"):
        if secrets.is_secret(key) or secrets.is_key(text):
            return None
        text, _ = secrets.masked(text)
    if language not in steps.languages:
        steps.languages.add(language)
        with steps.of("load grammars, once a process"):
            outline("x", language)
    with steps.of("parse, find definitions"):
        outline(text, language)
    with steps.of("cut"):  # which asks for the outline again
        chunks = chunk_text(text, language, RECIPE.chunk_max_chars)
    with steps.of("split words, hash chunks"):
        entries = fields.entries(key, chunks)
    return Document(key, key, content_hash, 0.0, language, entries)


async def _store(documents: list[Document], uri: str, steps: Steps) -> None:
    """Commit them as the service does."""
    index = await Index.create(uri, Manifest(owner="", chunker=""))
    for number, batch in enumerate(batched(documents, FILES_PER_COMMIT)):
        records = [
            FileRecord(d.key, (0, 0, 0), d.content_hash, len(d.entries), "indexed", "")
            for d in batch
        ]
        with steps.of("commit"):
            await index.store.replace(batch, number + 1, {})
            await index.store.put_records(records)
    with steps.of("index the words"):
        await index.store.maintain()
    index.close()


# -- what vectors cost ---------------------------------------------------------------------------


def vector_costs(project: Project) -> Figures:
    """What the model does in a second, and what the processor could.

    In billions of multiplications with an addition, but for the tokens.
    """
    import torch

    encoder = Encoder(find_model(MODEL), "cpu")
    wanted = _texts(project)
    tokenizer = encoder._model.tokenizer  # as it is set up for this model
    lengths = [len(tokenizer(text, truncation=True).input_ids) for text in wanted]
    work = sum(n * WEIGHTS + LAYERS * 2 * n * n * WIDTH for n in lengths)
    groups = [
        [wanted[i] for i in group] for group in requests_of_equal_work(dict(enumerate(wanted)))
    ]

    def embed() -> None:
        for group in groups:
            encoder.encode(group)

    kind = torch.bfloat16 if encoder.precision == "bfloat16" else torch.float32
    tokens = torch.randn(ROWS, WIDTH).to(kind)
    weights = torch.randn(INSIDE, WIDTH).to(kind)
    large = torch.randn(LARGE, LARGE).to(kind)

    def multiply() -> None:
        for _ in range(20):
            torch.nn.functional.linear(tokens, weights)

    def multiply_large() -> None:
        torch.nn.functional.linear(large, large)

    embedding = _best_seconds(embed)
    return {
        "tokens a chunk": sum(lengths) / len(lengths),
        "tokens a second": sum(lengths) / embedding,
        "embedding": work / embedding / 1e9,
        "matrices of the model's sizes": 20 * ROWS * WIDTH * INSIDE / _best_seconds(multiply) / 1e9,
        "large matrices": LARGE**3 / _best_seconds(multiply_large) / 1e9,
    }


def _texts(project: Project) -> list[str]:
    """What is embedded of every so manieth chunk."""
    keys = sorted(walk(Folder(project.root), Ignore(Folder(project.root))).files)
    some = keys[:: len(keys) // 300 or 1]
    found = [prepare(RECIPE, Task(Folder(project.root), key)) for key in some]
    embedded = [
        fields.embedded_text(one.key, entry.chunk.scope, entry.chunk.text)
        for one in found
        if one.document
        for entry in one.document.entries
    ]
    return embedded[:: len(embedded) // TEXTS or 1][:TEXTS]


def _best_seconds(work: Callable[[], None]) -> float:
    """Of some times, the least: what disturbs only ever adds."""
    work()
    taken = []
    for _ in range(TIMES):
        start = time.perf_counter()
        work()
        taken.append(time.perf_counter() - start)
    return min(taken)


# -- what a save costs -----------------------------------------------------------------------------


def save_costs(root: Path) -> Figures:
    """Milliseconds of a look at one saved file, and at its folder, by how many files are known."""
    write_tree(root)
    folder = Folder(root)
    ignore = Ignore(folder)
    found: Figures = {}
    for files in KNOWN:
        ledger = Ledger()
        for number in range(files):
            key = f"d{number // 100:04}/f{number % 100:02}.py"
            ledger.put(FileRecord(key, (1, 1, 1), "", 1, INDEXED, ""), 0)
        for what, key in (("file", "d0007/f07.py"), ("folder", "d0007")):
            save = partial(_save, folder, ignore, ledger, key)
            found[f"{what}, {files:,} files"] = 1000 * _best_seconds(save)
    return found


def _save(folder: Folder, ignore: Ignore, ledger: Ledger, key: str) -> None:
    ledger.put(FileRecord("d0007/new.py", (1, 1, 1), "", 1, INDEXED, ""), 0)
    ledger.forget("d0007/new.py")  # so that the keys are not just as they were
    look(folder, ignore, [key], Stamps(ledger, ()))


def write_tree(root: Path) -> None:
    """The folder that is looked at; of the others, only the index knows."""
    for number in range(100):
        file = root / f"d0007/f{number:02}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("x = 1\n", encoding="utf-8")


# -- the report ----------------------------------------------------------------------------------


def table(text: Figures, vectors: Figures, saves: Figures) -> list[tuple[str, str]]:
    """The lines that the documents show."""
    steps = {name: s for name, s in text.items() if not name.startswith("preparing")}
    whole, reading = sum(steps.values()), text["read the bytes"]
    rows = [(name, f"{1000 * s:.1f} ms, {s / whole:.0%}") for name, s in steps.items()]
    share = vectors["embedding"] / vectors["matrices of the model's sizes"]
    most = vectors["embedding"] / vectors["large matrices"]
    return [
        *rows,
        ("all steps to reading alone", f"{whole / reading:.0f} times"),
        ("embedding to matrices of the model's sizes; large ones", f"{share:.0%}; {most:.0%}"),
        *((f"a look at a saved {what}", f"{ms:.2f} ms") for what, ms in saves.items()),
    ]


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--folder", type=Path, required=True, help="that of quality.py")
    parser.add_argument("--files", type=int, default=FILES)
    parser.add_argument("--keep", action="store_true", help="write the results to results/")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        here = Path(name).resolve()
        project = make(here / "project", arguments.folder.resolve() / "sources", arguments.files)
        text = anyio.run(text_costs, project, str(here / "index"))
        vectors = vector_costs(project)
        saves = save_costs(here / "saves")
    found = {"files": project.files, "megabytes": project.size / 1e6}
    found |= {
        "text": text,
        "vectors": vectors,
        "saves": saves,
        "table": table(text, vectors, saves),
    }
    print(json.dumps(found, indent=2))
    for what, figure in found["table"]:
        print(f"| {what} | {figure} |")
    if arguments.keep:
        print(f"kept in {keep('limits', found).name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
