"""How fast everything is, from a first start to a save in a large project, beside the peers.

    python benchmarks/speed.py --folder DIR [--semble PYTHON] [--peer PYTHON]... [--keep]

DIR is that of quality.py, whose packages are used. What is measured, each through a real client:

- first answer: from the start on a project never seen until five names are all found where they
  are defined, beside semble's whole indexing (PYTHON: an environment with semble and model2vec)
  and grep;
- embedding: chunks per second, beside environments with a peer that embeds with a transformer;
- never twice: what a second worktree, a renamed folder, a branch switched and switched back and
  `force_reindex` cost, and how much of it is embedded again;
- saves: from a save to its text and to its vector, and a storm of changed files;
- restart: nothing has changed in 10,000 files;
- cost: processor time, idle processor time, memory and disk.

In the large project, vectors stand in the embedding cache beforehand and are random: embedding
100,000 chunks would take an hour and is not what is measured there.
"""

import argparse
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import numpy as np
from kept import keep, latest
from projects import Project, landmarks, make
from served import (
    Stopwatch,
    call,
    cpu_seconds,
    end_worker,
    environment,
    found_files,
    front_end,
    is_complete,
    is_indexed,
    service_of,
    status,
    status_when,
    stop,
)

from vector_index_mcp.engine.models.cache import EmbeddingCache
from vector_index_mcp.engine.models.embed import WorkerEmbedder
from vector_index_mcp.engine.models.embedding_requests import requests_of_equal_work
from vector_index_mcp.engine.models.model import find_model
from vector_index_mcp.engine.text.fields import embedded_text
from vector_index_mcp.engine.types import Document, Vectors
from vector_index_mcp.files.folder import Folder
from vector_index_mcp.files.ignore import Ignore
from vector_index_mcp.files.scan import walk
from vector_index_mcp.indexing.preparing.crew import Crew
from vector_index_mcp.indexing.preparing.file import Task
from vector_index_mcp.indexing.preparing.recipe import Recipe
from vector_index_mcp.processes import children

SIZES = {100: 5, 1_000: 3, 10_000: 1}
"""Files of a project, and how often its first answer is measured."""
NAMES = 5
TWICE_FILES, SMALL_FILES = 200, 150
"""Of the projects that are embedded for real, and of about 1,000 chunks."""
TEXTS = 384
PARTS = ("first-answer", "embedding", "twice", "saves", "restart", "storm", "cost")
SAVES = 40
STORM, STORM_SUFFIXES = 5_000, {".py", ".js", ".ts", ".go", ".java", ".c", ".h", ".rs"}
IDLE_SECONDS = 60
QUIET_SECONDS = 75  # a minute after the last change the service tidies up
MODEL = "all-MiniLM-L6-v2"
RECIPE = Recipe(1_200)

Found = dict[str, Any]


# -- first answer --------------------------------------------------------------------------


async def first_answer(project: Project, names: dict[str, str]) -> Found:
    """Seconds from the start until the client is served, and until all `names` are found."""
    with tempfile.TemporaryDirectory() as folder:
        variables = environment(Path(folder), lancedb_uri=f"{folder}/index")
        watch = Stopwatch()
        async with front_end(project.root, variables) as client:
            initialized = watch.seconds
            for name, file in names.items():
                while (await found_files(client, name))[:1] != [file]:
                    pass
            answered = watch.seconds
            await status_when(client, is_indexed)
            indexed = watch.seconds
        await stop(project.root, variables)
        await end_worker(variables)  # which loads its model while semble is measured
    return {"initialize": initialized, "answered": answered, "indexed": indexed}


def semble_first_answer(python: str, model: Path, project: Project, names: dict[str, str]) -> float:
    """Seconds semble takes to index the project and to answer the same questions."""
    script = Path(__file__).with_name("semble_peer.py")
    jobs = json.dumps([{"project": str(project.root), "queries": list(names)}])
    watch = Stopwatch()
    subprocess.run(
        [python, str(script), str(model)], input=jobs, capture_output=True, text=True, check=True
    )
    return watch.seconds


def grep_seconds(project: Project, names: dict[str, str]) -> float:
    """Seconds grep takes to find all `names`."""
    watch = Stopwatch()
    for name in names:
        subprocess.run(["grep", "-rlw", name, str(project.root)], capture_output=True, check=True)
    return watch.seconds


def first_answers(project: Project, repeats: int, folder: Path, semble: str | None) -> Found:
    names = landmarks(project, NAMES)
    ours, theirs, grep = [], [], []
    for _ in range(repeats):
        ours.append(anyio.run(first_answer, project, names))
        if semble:
            theirs.append(semble_first_answer(semble, folder / "semble-model", project, names))
        grep.append(grep_seconds(project, names))
    found: Found = {
        key: statistics.median(one[key] for one in ours)
        for key in ("initialize", "answered", "indexed")
    }
    if theirs:
        found["semble"] = statistics.median(theirs)
    return found | {"grep": statistics.median(grep), "megabytes": project.size / 1e6}


# -- embedding -----------------------------------------------------------------------------


def embedding(project: Project, peers: list[str]) -> Found:
    """Chunks per second of our worker and of the peers, over the same texts."""
    texts = anyio.run(_texts, project)
    vectors, seconds = anyio.run(_embedded, texts)
    found: Found = {"texts": len(texts), "ours": len(texts) / seconds}
    for python in peers:
        script = Path(__file__).with_name("embedding_peer.py")
        answer = subprocess.run(
            [python, str(script)],
            input=json.dumps(texts),
            capture_output=True,
            text=True,
            check=True,
        )
        peer = json.loads(answer.stdout)
        found[peer["system"]] = len(texts) / peer["seconds"]
        cosines = np.sum(vectors[: len(peer["vectors"])] * np.array(peer["vectors"]), axis=1)
        found[f"{peer['system']}, least cosine to ours"] = float(cosines.min())
    return found


async def _texts(project: Project) -> list[str]:
    """What is embedded of every so manieth chunk."""
    documents = await _documents(project)
    texts = [
        embedded_text(document.key, entry.chunk.scope, entry.chunk.text)
        for document in documents
        for entry in document.entries
    ]
    return texts[:: max(1, len(texts) // TEXTS)][:TEXTS]


async def _embedded(texts: list[str]) -> tuple[Vectors, float]:
    """Their vectors, and the seconds a warm worker took for them."""
    embedder = WorkerEmbedder(MODEL, start_worker=children.start, remedy_of=str)
    async with embedder.running():
        await embedder.embed(texts[:8])
        watch = Stopwatch()
        vectors = np.empty((len(texts), 384), dtype="f4")
        for batch in requests_of_equal_work(dict(enumerate(texts))):
            vectors[batch] = await embedder.embed([texts[number] for number in batch])
        return vectors, watch.seconds


async def _documents(project: Project) -> list[Document]:
    crew = Crew(RECIPE)
    files = walk(Folder(project.root), Ignore(Folder(project.root))).files
    found = await crew.prepare([Task(Folder(project.root), key) for key in files])
    await crew.end()
    return [one.document for one in sorted(found, key=lambda one: one.key) if one.document]


# -- never twice ---------------------------------------------------------------------------


async def never_twice(project: Project, folder: Path) -> Found:
    """Seconds until every chunk has its vector again, and how many were embedded for it."""
    found: Found = {}
    variables = environment(folder, worker_idle_minutes="60")
    root = project.root
    watch = Stopwatch()
    async with front_end(root, variables) as client:
        before = await status_when(client, is_complete)
        found["cold"] = {"seconds": watch.seconds, "chunks": before["indexed_chunk_count"]}

        async def again(what: str, change: Callable[[], Any]) -> None:
            before, watch = (await status(client))["model"]["chunks_embedded"], Stopwatch()
            change()
            await call(client, "trigger_index")
            now = await status_when(client, is_complete)
            embedded = now["model"]["chunks_embedded"] - before
            found[what] = {"seconds": watch.seconds, "embedded": embedded}

        files = sorted(path for path in root.rglob("*.py") if path.is_file())[::3]
        old = {path: path.read_bytes() for path in files}
        new = {path: text.replace(b"self", b"this") for path, text in old.items()}
        await again("another branch", lambda: _write(new))
        await again("back again", lambda: _write(old))
        folders = [f for f in root.iterdir() if f.is_dir() and not f.name.startswith(".")]
        largest = max(folders, key=lambda f: len([*f.rglob("*")]))
        await again("folder renamed", lambda: largest.rename(root / "renamed"))
        watch, before = Stopwatch(), await status(client)
        await call(client, "trigger_index", force_reindex=True)
        now = await status_when(client, is_complete)
        embedded = now["model"]["chunks_embedded"] - before["model"]["chunks_embedded"]
        found["force_reindex"] = {"seconds": watch.seconds, "embedded": embedded}
    await stop(root, variables)
    worktree = folder / "worktree"
    shutil.copytree(root, worktree, ignore=shutil.ignore_patterns(".lancedb"))
    watch = Stopwatch()
    async with front_end(worktree, variables) as client:
        now = await status_when(client, is_complete)
        seconds = watch.seconds
        found["second worktree"] = {
            "seconds": seconds,
            "embedded": now["model"]["chunks_embedded"],
        }
    await stop(worktree, variables)
    return found


def _write(files: dict[Path, bytes]) -> None:
    for path, text in files.items():
        path.write_bytes(text)


# -- a project at work ---------------------------------------------------------------------


def fill_cache(project: Project, folder: Path) -> None:
    """Put random vectors for every chunk of `project` into the embedding cache in `folder`."""
    model = find_model(MODEL).identity
    cache = EmbeddingCache(folder, 10**10)
    rng = np.random.default_rng(7)

    documents = anyio.run(_documents, project)
    hashes = list(dict.fromkeys(e.chunk_hash for document in documents for e in document.entries))
    for start in range(0, len(hashes), 5_000):
        portion = hashes[start : start + 5_000]
        vectors = rng.normal(size=(len(portion), model.dimension)).astype("<f4")
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        cache.put(model, dict(zip(portion, vectors, strict=True)))
    cache.close()


async def saves(project: Project, folder: Path) -> Found:
    """Seconds from a save to the first answer with its text, and to its vector."""
    variables = environment(folder, embedding_cache_max_mb="10000", worker_idle_minutes="60")
    to_text, to_vector = [], []
    async with front_end(project.root, variables) as client:
        now = await status_when(client, is_complete)
        while (await call(client, "search_index", query="warm up"))["mode"] != "hybrid":
            await anyio.sleep(0.5)
        files = sorted(project.root.rglob("*.py"))[:: max(1, project.files // (4 * SAVES))]
        for number, path in enumerate(files[:SAVES]):
            word = f"quagga{number}zebra"
            text = path.read_text("utf-8", "replace")
            watch = Stopwatch()
            path.write_text(f"{text}\n\ndef {word}():\n    return 'saved just now'\n", "utf-8")
            key = path.relative_to(project.root).as_posix()
            while (await found_files(client, word))[:1] != [key]:
                await anyio.sleep(0.02)  # a search takes a processor, which the service needs
            to_text.append(watch.seconds)
            await status_when(client, is_complete, every=0.02)
            to_vector.append(watch.seconds)
    return (
        {"chunks": now["indexed_chunk_count"]}
        | _spread("text", to_text)
        | _spread("vector", to_vector)
    )


async def storm(project: Project, folder: Path) -> Found:
    """Seconds until the texts of thousands of files changed at once are found."""
    variables = environment(folder, embedding_cache_max_mb="10000")
    files = [p for p in project.root.rglob("*.*") if p.suffix in STORM_SUFFIXES][:STORM]
    async with front_end(project.root, variables) as client:
        await status_when(client, is_indexed)
        for path in files:
            with path.open("ab") as file:
                file.write(b"\n# okapi\n")
        last = files[-1].relative_to(project.root).as_posix()
        watch = Stopwatch()
        taken = []
        while True:
            query = Stopwatch()
            await found_files(client, "how is the configuration read")
            taken.append(query.seconds)
            now = await status(client)
            if is_indexed(now):
                break
        seconds = watch.seconds
        answer = await call(client, "search_index", query="okapi", path=last)
        assert "okapi" in answer["results"][0]["extracted_text_chunk"]
    return {"files": len(files), "seconds": seconds} | _spread("query", taken)


async def restart(project: Project, folder: Path) -> Found:
    """Seconds from the start of the service until a project without changes is ready."""
    variables = environment(folder, embedding_cache_max_mb="10000")
    async with front_end(project.root, variables) as client:
        await status_when(client, is_complete)
        await anyio.sleep(QUIET_SECONDS)
    taken = []
    for _ in range(5):
        await stop(project.root, variables)
        watch = Stopwatch()
        async with front_end(project.root, variables) as client:
            # Answered once the first scan is over, which the status then confirms.
            await found_files(client, "how is the configuration read")
            now = await status_when(client, is_indexed)
            taken.append(watch.seconds)
            assert now["last_run"]["files_read"] == 0
            assert now["model"]["chunks_embedded"] == 0
    return {"files": now["indexed_file_count"]} | _spread("ready", taken)


async def cost(project: Project, folder: Path) -> Found:
    """What the first index of a project costs, and what doing nothing does."""
    variables = environment(
        folder, embedding_cache_max_mb="10000", lancedb_uri=str(folder / "cost")
    )
    async with front_end(project.root, variables) as client:
        now = await status_when(client, is_complete)
        service = service_of(project.root)
        chunks = now["indexed_chunk_count"]
        found: Found = {
            "chunks": chunks,
            "cpu_s_per_1000_chunks": 1_000 * cpu_seconds(service) / chunks,
        }
        await anyio.sleep(QUIET_SECONDS)
        before = cpu_seconds(service)
        await anyio.sleep(IDLE_SECONDS)
        found["idle_percent_of_a_core"] = 100 * (cpu_seconds(service) - before) / IDLE_SECONDS
        found["service_mb"] = service.memory_info().rss / 1e6
        now = await status(client)
        found["index_mb_per_mb_of_source"] = now["index_bytes"] / project.size
    await stop(project.root, variables)
    return found


def _spread(what: str, seconds: list[float]) -> Found:
    ordered = sorted(seconds)
    return {
        f"{what}_median": statistics.median(ordered),
        f"{what}_p95": ordered[min(len(ordered) - 1, int(0.95 * len(ordered)))],
    }


# -- all of it -----------------------------------------------------------------------------


def measure(arguments: argparse.Namespace) -> Found:
    folder: Path = arguments.folder.resolve()
    packages = folder / "sources"
    found: Found = {}

    def show(what: str, figures: Found) -> None:
        found[what] = _rounded(figures)
        print(what, json.dumps(found[what]), flush=True)

    with tempfile.TemporaryDirectory() as name:
        here = Path(name).resolve()
        wanted = set(arguments.only or PARTS)
        for files, repeats in SIZES.items():
            if "first-answer" in wanted:
                project = make(here / f"first{files}", packages, files)
                answers = first_answers(project, repeats, folder, arguments.semble)
                show(f"first answer, {files} files", answers)
                shutil.rmtree(project.root)
        if "embedding" in wanted:
            project = make(here / "texts", packages, 300)
            show("embedding", embedding(project, arguments.peer))
        if "twice" in wanted:
            project = make(here / "twice", packages, TWICE_FILES)
            show("never twice", anyio.run(never_twice, project, here / "twice-work"))
        if "saves" in wanted:
            small = make(here / "small", packages, SMALL_FILES)
            fill_cache(small, here / "small-work" / "cache")
            show("saves, small", anyio.run(saves, small, here / "small-work"))
        if wanted & {"saves", "restart", "storm", "cost"}:
            large, work = make(here / "large", packages, max(SIZES)), here / "large-work"
            fill_cache(large, work / "cache")
            for part, run in {
                "cost": cost,
                "restart": restart,
                "saves": saves,
                "storm": storm,
            }.items():
                if part in wanted:
                    show(f"{part}, large", anyio.run(run, large, work))
            anyio.run(stop, large.root, environment(work))
    return found


def table(found: Found) -> list[tuple[str, str]]:
    """What was measured, as the rows of the README's table."""
    rows = []
    for files in SIZES:
        if first := found.get(f"first answer, {files} files"):
            figure = f"{first['answered']} s"
            figure += f"; semble {first['semble']} s" if "semble" in first else ""
            rows.append((f"first right answers in {files:,} new files", figure))
    if embedded := found.get("embedding"):
        peers = (
            f"{name} {speed}"
            for name, speed in embedded.items()
            if name not in {"texts", "ours"} and "cosine" not in name
        )
        rows.append(("chunks embedded a second", "; ".join([str(embedded["ours"]), *peers])))
    if twice := found.get("never twice"):
        again = twice["second worktree"]
        figure = f"{again['seconds']} s, {again['embedded']}; at first {twice['cold']['seconds']} s"
        rows.append(("all vectors of a second worktree, chunks embedded for it", figure))
    for size in ("small", "large"):
        if saved := found.get(f"saves, {size}"):
            figure = f"{saved['text_p95']} s; {saved['vector_p95']} s"
            chunks = f"{saved['chunks']:,} chunks"
            rows.append((f"from a save to its text; its vector, p95, {chunks}", figure))
    if changed := found.get("storm, large"):
        rows.append((f"{changed['files']:,} files changed at once", f"{changed['seconds']} s"))
    if ready := found.get("restart, large"):
        rows.append(
            (f"restart, {ready['files']:,} unchanged files, median", f"{ready['ready_median']} s")
        )
    if cost := found.get("cost, large"):
        rows += [
            (
                "processor time for 1,000 chunks, with vectors from the cache",
                f"{cost['cpu_s_per_1000_chunks']} s",
            ),
            (
                "processor time of a watching service",
                f"{cost['idle_percent_of_a_core']} % of a core",
            ),
            ("disk per MB of source", f"{cost['index_mb_per_mb_of_source']} MB"),
        ]
    return rows


def _rounded(figures: Found) -> Found:
    return {
        key: _rounded(value)
        if isinstance(value, dict)
        else (float(f"{value:.3g}") if isinstance(value, float) else value)
        for key, value in figures.items()
    }


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--folder", type=Path, required=True, help="that of quality.py")
    parser.add_argument("--semble", metavar="PYTHON", help="compare with semble")
    parser.add_argument("--peer", metavar="PYTHON", action="append", default=[])
    parser.add_argument("--only", choices=PARTS, action="append", help="measure this part only")
    parser.add_argument("--keep", action="store_true", help="write the results to results/")
    arguments = parser.parse_args()
    found = measure(arguments)
    found["table"] = table(found)
    for what, figure in found["table"]:
        print(f"| {what} | {figure} |")
    if arguments.keep:
        if arguments.only:  # a part that is measured again replaces what was kept of it
            found = latest("speed") | found
            found["table"] = table(found)
        print(f"kept in {keep('speed', found).name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
