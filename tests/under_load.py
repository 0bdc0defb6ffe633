"""A project under load: files that change all the time, clients that search, and what that costs.

The test of the suite runs it for a minute, `benchmarks/load.py` for as long as it is told.
"""

import os
import random
import shutil
import statistics
import time
from collections import Counter
from collections.abc import Callable
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import psutil
from processes import Place, Wire
from waiting import eventually

TOPS = ("src", "docs", "tests")
FOLDERS = [f"src/part_{i}" for i in range(12)] + ["docs", "tests"]
WORDS = (
    "request response session token cache parse render route schema index query retry socket "
    "buffer stream worker queue batch vector chunk model config merge branch commit user account"
).split()
LANGUAGES = {
    "py": "def {name}({arg}):\n    return {arg}.{word}\n\n",
    "md": "## {name}\n\n{word}\n\n",
}
RULES = ["", "*.tmp\n", "docs/\n", "src/part_3/\n*.log\n"]
SWITCHED_FILES = 120  # by a branch switch
SWITCH_EVERY = 400  # edits
EDITS_A_SECOND = 20
SAMPLE_SECONDS = 0.5
CLIENTS = 4


def text_of(chance: random.Random, suffix: str) -> str:
    """A file with some definitions, or sections."""
    template = LANGUAGES[suffix]
    count = chance.choice([0, 1, 3, 8, 20])
    parts = [
        template.format(
            name="_".join(chance.choices(WORDS, k=2)),
            arg=chance.choice(WORDS),
            word=" ".join(chance.choices(WORDS, k=12)) if suffix == "md" else chance.choice(WORDS),
        )
        for _ in range(count)
    ]
    return "".join(parts)


def files_of(count: int) -> dict[str, str]:
    """The project before anybody edits it."""
    chance = random.Random("files")
    names = (f"{FOLDERS[i % len(FOLDERS)]}/file_{i}" for i in range(count))
    suffixes = list(LANGUAGES)
    return {
        f"{name}.{suffixes[i % 7 == 0]}": text_of(chance, suffixes[i % 7 == 0])
        for i, name in enumerate(names)
    }


class Editor:
    """Somebody who changes the project in every way that files can change."""

    def __init__(self, project: Path, seed: str) -> None:
        self.done: Counter[str] = Counter()
        self._project = project
        self._chance = random.Random(seed)
        self._made = 0

    def edit(self) -> None:
        """Do one edit of a random kind."""
        if sum(self.done.values()) % SWITCH_EVERY == SWITCH_EVERY - 1:
            self._count(self._switch_branch)
            return
        kinds = [self._save] * 8 + [self._save_as_editors_do] * 6 + [self._append] * 6
        kinds += [self._make] * 3 + [self._delete] * 3 + [self._rename] * 3
        kinds += [self._move_folder, self._change_rules]
        self._count(self._chance.choice(kinds))

    def _count(self, kind: Callable[[], None]) -> None:
        kind()
        self.done[kind.__name__.strip("_").replace("_", " ")] += 1

    def _files(self) -> list[Path]:
        found = (path for top in TOPS for path in (self._project / top).rglob("*.??"))
        return sorted(path for path in found if path.suffix[1:] in LANGUAGES)

    def _any_file(self) -> Path:
        return self._chance.choice(self._files())

    def _text(self, path: Path) -> str:
        return text_of(self._chance, path.suffix[1:])

    def _save(self) -> None:
        path = self._any_file()
        path.write_text(self._text(path), encoding="utf-8")

    def _save_as_editors_do(self) -> None:
        path = self._any_file()
        beside = path.with_name(f".{path.name}.swp")
        beside.write_text(self._text(path), encoding="utf-8")
        beside.replace(path)

    def _append(self) -> None:
        path = self._any_file()
        with path.open("a", encoding="utf-8") as file:
            file.write(self._text(path))

    def _make(self) -> None:
        self._made += 1
        folder = self._project / self._chance.choice(FOLDERS) / f"new_{self._made % 5}"
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"made_{self._made}.{self._chance.choice(list(LANGUAGES))}"
        path.write_text(self._text(path), encoding="utf-8")

    def _delete(self) -> None:
        if len(files := self._files()) > 50:
            self._chance.choice(files).unlink()

    def _rename(self) -> None:
        path = self._any_file()
        self._made += 1
        path.rename(path.with_name(f"renamed_{self._made}{path.suffix}"))

    def _move_folder(self) -> None:
        source, target = (self._project / name for name in self._chance.sample(FOLDERS, 2))
        target = target / "moved"
        if source.exists() and not target.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            source.rename(target)
        elif target.exists():
            shutil.rmtree(target)

    def _change_rules(self) -> None:
        (self._project / ".gitignore").write_text(self._chance.choice(RULES), encoding="utf-8")

    def _switch_branch(self) -> None:
        for path in self._chance.choices(self._files(), k=SWITCHED_FILES):
            path.write_text(self._text(path), encoding="utf-8")


@dataclass(slots=True)
class Samples:
    """What the service held, sample by sample."""

    megabytes: list[float] = field(default_factory=list)
    descriptors: list[int] = field(default_factory=list)
    threads: list[int] = field(default_factory=list)
    index_megabytes: list[float] = field(default_factory=list)
    index_files: list[int] = field(default_factory=list)

    async def take_forever(self, service: psutil.Process, index: Path) -> None:
        """Take a sample now and then, until cancelled."""
        while True:
            with service.oneshot():
                self.megabytes.append(service.memory_info().rss / 1e6)
                self.descriptors.append(service.num_fds())
                self.threads.append(service.num_threads())
            sizes = sizes_below(index)
            self.index_megabytes.append(sum(sizes) / 1e6)
            self.index_files.append(len(sizes))
            await anyio.sleep(SAMPLE_SECONDS)


def sizes_below(folder: Path) -> list[int]:
    """The sizes of all files, those that vanish meanwhile left out."""
    found = []
    for place, _, names in os.walk(folder):
        for name in names:
            with suppress(FileNotFoundError):
                found.append(Path(place, name).stat().st_size)
    return found


@dataclass(slots=True)
class Load:
    """What happened."""

    edits: Counter[str] = field(default_factory=Counter)
    calls: Counter[str] = field(default_factory=Counter)
    errors: list[Any] = field(default_factory=list)
    query_ms: list[float] = field(default_factory=list)
    samples: Samples = field(default_factory=Samples)

    def growth(self, what: str) -> float:
        """How much larger the median of the last third of the samples is than of the second."""
        values = getattr(self.samples, what)
        third = len(values) // 3
        return statistics.median(values[2 * third :]) / statistics.median(values[third : 2 * third])


async def ask_forever(client: Wire, seed: int, load: Load) -> None:
    """Be a client: search mostly, and check that what comes back can be true."""
    chance = random.Random(seed)
    while True:
        tool = chance.choices(["search_index", "get_status", "trigger_index"], [90, 8, 2])[0]
        arguments: dict[str, Any] = {}
        if tool == "search_index":
            arguments = {"query": " ".join(chance.choices(WORDS, k=chance.randint(1, 5)))}
            more = [{}, {"top_k": 20}, {"path": "src/**"}, {"language": "python"}]
            arguments |= chance.choice(more)
        start = time.perf_counter()
        answer = await client.ask("tools/call", name=tool, arguments=arguments)
        load.calls[tool] += 1
        result = answer.get("result", {})
        if "error" in answer or result.get("isError"):
            load.errors.append(answer)
        elif tool == "search_index":
            load.query_ms.append(1000 * (time.perf_counter() - start))
            load.errors += [hit for hit in result["structuredContent"]["results"] if is_odd(hit)]


def is_odd(hit: dict[str, Any]) -> bool:
    """Whether a hit cannot be true of any file of the project."""
    is_inside = hit["file_path"].split("/")[0] in {*TOPS, ".gitignore"}
    lines = len(hit["extracted_text_chunk"].splitlines())
    has_its_lines = hit.get("is_cut") or lines == hit["end_line"] - hit["start_line"] + 1
    return not (is_inside and has_its_lines and hit["start_line"] >= 1)


async def edit_forever(editor: Editor) -> None:
    """Edit at the pace of a few busy people."""
    while True:
        editor.edit()
        await anyio.sleep(1 / EDITS_A_SECOND)


async def run(place: Place, seconds: float, *, seed: str = "load") -> Load:
    """Edit and search for `seconds`; at the end everything is indexed and embedded."""
    load, editor = Load(), Editor(place.project, seed)
    async with AsyncExitStack() as stack:
        clients = [await stack.enter_async_context(place.relayed()) for _ in range(CLIENTS)]
        for client in clients:
            await client.initialize()
        await clients[0].complete()
        service, index = place.service(), place.project / ".lancedb"
        with anyio.move_on_after(seconds):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(edit_forever, editor)
                tasks.start_soon(load.samples.take_forever, service, index)
                for number, client in enumerate(clients):
                    tasks.start_soon(ask_forever, client, number, load)
        assert place.service() == service, "the service did not live through it"
        async with place.relayed() as client:  # the others may be waiting for an answer
            await client.initialize()
            await client.complete()
    load.edits = editor.done
    return load


async def end(place: Place) -> None:
    """End the service and wait until none of its processes is left."""
    ran = await place.run("stop", place.project)
    assert ran.returncode == 0, ran.stderr
    await eventually(lambda: not place.processes())
