"""How fast notes are read, written and found, in a store that has been written for years.

    python benchmarks/notes.py --folder DIR [--clients N] [--seconds S] [--keep]

The store has 50 projects, 2,000 documents of 10 KB (20 MB) and 20,000 commits. Everything is asked
of the real program over standard streams. Beside it stands the original program's way of keeping a
change: one process of git for each step, `add` and `commit`, with an index of the whole store.
"""

import argparse
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
from kept import keep

from vector_index_mcp.notes.store.history import quoted

_PROJECTS, _DOCUMENTS, _COMMITS = 50, 40, 20_000
_CHAPTERS, _CHAPTER_BYTES = 10, 1_000
_READS, _WRITES, _SEARCHES, _STARTS, _STEPS = 300, 150, 100, 9, 30
_PROGRAM = Path(sys.executable).with_name("vector-index-mcp")
_WORDS = [f"{a}{b}{c}" for a in "ba lo ki ru se".split() for b in "ne ta mi" for c in "lor dan pes"]
_INITIALIZE = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "benchmark", "version": "0"},
}


class Client:
    """A client of the program over its standard streams."""

    def __init__(self, arguments: list[str], variables: dict[str, str]) -> None:
        self._process = subprocess.Popen(
            [str(_PROGRAM), *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, **variables},
        )
        self._last = 0
        self.ask("initialize", _INITIALIZE)

    def ask(self, method: str, params: dict[str, Any]) -> Any:
        """The result of a request."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._last += 1
        request = {"jsonrpc": "2.0", "id": self._last, "method": method, "params": params}
        self._process.stdin.write(json.dumps(request).encode() + b"\n")
        self._process.stdin.flush()
        answer = json.loads(self._process.stdout.readline())
        assert answer["id"] == self._last and "result" in answer, answer
        return answer["result"]

    def call(self, name: str, **given: Any) -> Any:
        """The answer to a call that succeeds."""
        result = self.ask("tools/call", {"name": name, "arguments": given})
        answer = result["structuredContent"]
        assert answer["success"], answer
        return answer

    def end(self) -> None:
        """Leave."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


def text_of(chance: random.Random, size: int) -> str:
    """So many characters of words that occur as often as words do."""
    words: list[str] = []
    while sum(map(len, words)) + len(words) < size:
        words.append(_WORDS[min(int(chance.paretovariate(0.6)) - 1, len(_WORDS) - 1)])
    return " ".join(words)


def document_of(chance: random.Random, title: str) -> bytes:
    """A knowledge document."""
    head = f"---\ntitle: {title}\nkeywords: [benchmark]\ncreated: '2026-01-01T00:00:00.000Z'\n"
    head += f"updated: '2026-01-01T00:00:00.000Z'\n---\n\n{text_of(chance, 200)}\n"
    chapters = (
        f"\n## Chapter {n}\n\n{text_of(chance, _CHAPTER_BYTES)}\n" for n in range(_CHAPTERS)
    )
    return (head + "".join(chapters)).encode()


def history(files: dict[str, bytes], chance: random.Random) -> Iterator[bytes]:
    """A stream for `git fast-import`: all files, then a change of one of them in each commit."""
    names = [name for name in files if name.endswith(".md")]
    for number in range(_COMMITS):
        yield b"commit refs/heads/main\ncommitter n <e> %d +0000\n" % (1_700_000_000 + number)
        yield b"data 1\nx\n"
        changed = files if not number else {(name := chance.choice(names)): files[name] + b"\n"}
        if number:
            files |= changed
        for name, data in changed.items():
            yield b"M 100644 inline " + quoted(name) + b"\ndata %d\n%b\n" % (len(data), data)
    yield b"done\n"


def made(home: Path) -> None:
    """Make the store."""
    chance = random.Random(0)
    files = {
        f"projects/project-{p}/knowledge/document-{d}.md": document_of(chance, f"Document {d}")
        for p in range(_PROJECTS)
        for d in range(_DOCUMENTS)
    }
    entries = {f"Project {p}": f"project-{p}" for p in range(_PROJECTS)}
    files["index.json"] = json.dumps({"projects": entries}, indent=2).encode()
    for p in range(_PROJECTS):
        files[f"projects/project-{p}/main.md"] = text_of(chance, 3_000).encode()
    home.mkdir(parents=True)
    subprocess.run(["git", "init", "-q", "-b", "main"], cwd=home, check=True)
    with subprocess.Popen(
        ["git", "fast-import", "--quiet", "--done"], cwd=home, stdin=subprocess.PIPE
    ) as git:
        assert git.stdin is not None
        for part in history(files, chance):
            git.stdin.write(part)
    subprocess.run(["git", "reset", "-q", "--hard"], cwd=home, check=True)


def timed(calls: Iterator[Any]) -> list[float]:
    """How long each call takes, in milliseconds."""
    times = []
    for call in calls:
        began = time.perf_counter()
        call()
        times.append(1_000 * (time.perf_counter() - began))
    return times


class Table:
    """What was measured, printed row by row."""

    def __init__(self) -> None:
        self.found: dict[str, Any] = {}
        print("| | p50 ms | p95 ms | wanted |\n|---|---|---|---|")

    def add(self, name: str, times: list[float], wanted: str) -> None:
        """Print a row."""
        p50, p95 = statistics.median(times), statistics.quantiles(times, n=20)[-1]
        self.found[name] = {"p50_ms": round(p50, 1), "p95_ms": round(p95, 1), "wanted": wanted}
        print(f"| {name} | {p50:.0f} | {p95:.0f} | {wanted} |", flush=True)

    def say(self, name: str, value: object) -> None:
        """Print a figure."""
        self.found[name] = value
        print(f"\n{name}: {value}", flush=True)


def project_and_document(number: int) -> dict[str, str]:
    """Which document a call with that number is about."""
    return {
        "project_id": f"Project {number % _PROJECTS}",
        "filename": f"document-{number % _DOCUMENTS}.md",
    }


def measure(client: Client, table: Table) -> None:
    """What one client measures."""
    reads = timed(
        lambda n=n: client.call("get_knowledge_file", **project_and_document(n))
        for n in range(_READS)
    )
    table.add("read a document", reads, "p95 < 20")
    chapters = timed(
        lambda n=n: client.call("get_chapter", **project_and_document(n), chapter_index=3)
        for n in range(_READS)
    )
    table.add("read a chapter", chapters, "p95 < 20")
    writes = timed(
        lambda n=n: client.call(
            "update_chapter",
            **project_and_document(n),
            chapter_title="Chapter 4",
            new_content=f"changed {n}",
        )
        for n in range(_WRITES)
    )
    table.add("change a chapter, with its commit", writes, "p95 < 100")
    chance = random.Random(1)
    searches = timed(
        lambda n=n: client.call(
            "search_knowledge", project_id=f"Project {n % _PROJECTS}", query=text_of(chance, 12)
        )
        for n in range(_SEARCHES)
    )
    table.add("search a project for words", searches, "p95 < 50")
    chance = random.Random(1)
    everywhere = timed(
        lambda: client.call(
            "search_knowledge", project_id="x", all_projects=True, query=text_of(chance, 12)
        )
        for _ in range(_SEARCHES)
    )
    table.add("search all projects for words", everywhere, "-")


def git_steps(home: Path) -> list[float]:
    """The original program's way: a process of git for each step."""
    path = home / "projects/project-7/knowledge/document-7.md"

    def change(number: int) -> None:
        path.write_text(f"{path.read_text('utf-8')}\nchanged {number}\n", encoding="utf-8")
        for step in (
            ["add", "-A"],
            ["-c", "user.name=n", "-c", "user.email=e", "commit", "-qm", "x"],
        ):
            subprocess.run(["git", *step], cwd=home, check=True)

    return timed(lambda n=n: change(n) for n in range(_STEPS))


def crowd(
    table: Table, arguments: list[str], variables: dict[str, str], clients: int, seconds: float
) -> None:
    """Many clients that write at once."""
    times: list[list[float]] = [[] for _ in range(clients)]
    ends = time.monotonic() + seconds

    def write(number: int) -> None:
        client = Client(arguments, variables)
        while time.monotonic() < ends:
            title = f"crowd-{number}-{len(times[number])}"
            given = {**project_and_document(number), "chapter_title": title, "content": title}
            began = time.perf_counter()
            client.call("add_chapter", **given)
            times[number].append(1_000 * (time.perf_counter() - began))
        client.end()

    threads = [threading.Thread(target=write, args=(n,)) for n in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    home = Path(variables["KNOWLEDGE_MCP_HOME"])
    kept = "".join(p.read_text("utf-8") for p in home.glob("projects/*/knowledge/*.md"))
    wanted = [f"## crowd-{n}-{i}\n" for n, own in enumerate(times) for i in range(len(own))]
    lost = sum(title not in kept for title in wanted)
    every = [each for own in times for each in own]
    table.add(f"{clients} clients write for {seconds:.0f} s", every, "p95 < 1,000")
    table.say("writes of them", len(every))
    table.say("writes lost (wanted: 0)", lost)


def starts(commands: list[list[str]], variables: dict[str, str]) -> list[float]:
    """How long each command takes until `initialize` is answered, its service started; by turns."""
    stop = [str(_PROGRAM), "stop", "--all"]
    times: list[list[float]] = [[] for _ in commands]
    for _ in range(_STARTS):
        for own, arguments in zip(times, commands, strict=True):
            subprocess.run(stop, env={**os.environ, **variables}, check=True, capture_output=True)
            began = time.perf_counter()
            client = Client(arguments, variables)
            own.append(time.perf_counter() - began)
            client.end()
    return [statistics.median(own) for own in times]


@contextmanager
def surroundings(folder: Path) -> Iterator[dict[str, str]]:
    """Variables of a user of its own, whose services end with this."""
    with tempfile.TemporaryDirectory(dir=folder) as place:
        variables = {
            "KNOWLEDGE_MCP_HOME": f"{folder}/notes-store",
            "VECTOR_INDEX_RUNTIME_DIR": f"{place}/run",
            "XDG_STATE_HOME": f"{place}/state",
            "HF_HUB_OFFLINE": "1",
        }
        try:
            yield variables
        finally:
            subprocess.run(
                [str(_PROGRAM), "stop", "--all"],
                env={**os.environ, **variables},
                check=True,
                capture_output=True,
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--folder", type=Path, required=True, help="where the store is made")
    parser.add_argument("--clients", type=int, default=32)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--keep", action="store_true", help="keep the result")
    given = parser.parse_args()
    folder = given.folder.absolute()
    folder.mkdir(parents=True, exist_ok=True)
    home = folder / "notes-store"
    shutil.rmtree(home, ignore_errors=True)
    made(home)
    table = Table()
    serve = ["notes", "serve"]
    with surroundings(folder) as variables:
        project = folder / "notes-project"
        project.mkdir(exist_ok=True)
        (project / "main.py").write_text("def main() -> None: ...\n", encoding="utf-8")
        notes, codebase = starts([serve, [str(project)]], variables)
        client = Client(serve, variables)
        measure(client, table)
        memory = service_memory(variables)
        client.end()
        table.add("the same by `git add`, `git commit`", git_steps(home), "-")
        crowd(table, serve, variables, given.clients, given.seconds)
    table.say("start to `initialize`, ms", round(1_000 * notes))
    table.say("beside a codebase (wanted: 1.1 times)", round(notes / codebase, 2))
    table.say("memory of the service, MB (wanted: 120)", round(memory / 1e6))
    if given.keep:
        keep("notes", table.found)
    shutil.rmtree(home)


def service_memory(variables: dict[str, str]) -> int:
    """The resident memory of the notes' service, in bytes."""
    records = Path(variables["VECTOR_INDEX_RUNTIME_DIR"]).rglob("*.json")
    for record in records:
        values = json.loads(record.read_text("utf-8"))
        if values.get("set") == "notes":
            return int(psutil.Process(values["pid"]).memory_info().rss)
    raise AssertionError("there is no service of notes")


if __name__ == "__main__":
    main()
