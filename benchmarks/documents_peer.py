"""The documents beside the program whose command line they have: is it as good, is it as fast?

    python benchmarks/documents_peer.py --folder DIR --peer "COMMAND" COLLECTION... [--keep]

COMMAND starts the other program (qmd: https://github.com/tobi/qmd); COLLECTION is as in
`documents.py`. Both get the same files and are asked the same questions by words alone (`search
--json -n 10`), since that program's models come from a hub; every question is a command of its own,
ours with a service as an MCP client starts it, and the two take turns. Times are medians in
seconds, of whole commands as a script sees them.
"""

import argparse
import json
import os
import shlex
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from documents import BEST, Collection, loaded, ndcg, recall
from documents import files_of as written
from kept import keep

OURS = (sys.executable, "-m", "vector_index_mcp", "documents")
_HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "benchmark", "version": "1"},
    },
}


@dataclass
class Program:
    """One of the two, with a home of its own."""

    name: str
    command: Sequence[str]
    home: Path
    seconds: list[float] = field(default_factory=list)
    indexing_seconds: float = 0.0
    orders: dict[str, list[str]] = field(default_factory=dict)

    @property
    def variables(self) -> dict[str, str]:
        """The environment: nothing of the user's is touched."""
        places = {
            "HOME": "home",
            "XDG_CONFIG_HOME": "config",
            "XDG_CACHE_HOME": "cache",
            "XDG_STATE_HOME": "state",
            "VECTOR_INDEX_RUNTIME_DIR": "run",
        }
        return os.environ | {name: str(self.home / folder) for name, folder in places.items()}

    def run(self, *arguments: str) -> tuple[str, float]:
        """What a command prints, and how long it takes."""
        began = time.perf_counter()
        done = subprocess.run(
            [*self.command, *arguments],
            env=self.variables,
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout, time.perf_counter() - began

    def index(self, folder: Path) -> None:
        """Make `folder` a collection, and note how long that takes."""
        (self.home / "home").mkdir(parents=True, exist_ok=True)
        arguments = ("collection", "add", str(folder), "--name", "all")
        _, self.indexing_seconds = self.run(*arguments)

    def ask(self, id_: str, query: str, ids: Mapping[str, str]) -> None:
        """Ask a question, and note the answer and its time."""
        shown, seconds = self.run("search", "--json", "-n", str(BEST), "--", query)
        self.seconds.append(seconds)
        found = json.loads(shown) if shown.lstrip().startswith("[") else []
        names = (hit["file"].removeprefix("qmd://all/").lower() for hit in found)
        self.orders[id_] = [ids[name] for name in names]


@contextmanager
def served(program: Program) -> Iterator[None]:
    """The time in which an MCP client is there, and so a service."""
    with subprocess.Popen(
        [*program.command, "mcp"],
        env=program.variables,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as client:
        assert client.stdin is not None
        assert client.stdout is not None
        client.stdin.write(json.dumps(_HELLO) + "\n")
        client.stdin.flush()
        client.stdout.readline()
        try:
            yield
        finally:
            client.stdin.close()
            client.wait()
            program.run("stop")


def compared(collection: Collection, folder: Path, peer: Sequence[str]) -> list[Program]:
    """Both programs, after they have been asked everything in turns."""
    ids = {file.lower(): id_ for file, id_ in written(collection, folder).items()}
    programs = [
        Program("ours", OURS, folder / collection.name / "ours"),
        Program("peer", peer, folder / collection.name / "peer"),
    ]
    for program in programs:
        program.index(folder / collection.name / "documents")
    with ExitStack() as stack:
        stack.enter_context(served(programs[0]))
        for id_, query in collection.queries.items():
            for program in programs:
                program.ask(id_, " ".join(query.split()), ids)
    return programs


def measured(collection: Collection, program: Program) -> dict[str, float]:
    """What is said of a program."""
    labelled = [(order, collection.grades[id_]) for id_, order in program.orders.items()]
    return {
        "ndcg": statistics.mean(ndcg(*each) for each in labelled),
        "recall": statistics.mean(recall(*each) for each in labelled),
        "unanswered": float(sum(not order for order in program.orders.values())),
        "search_seconds": statistics.median(program.seconds),
        "indexing_seconds": program.indexing_seconds,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("collections", nargs="+", type=Path)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--peer", type=shlex.split, required=True)
    parser.add_argument("--keep", action="store_true")
    chosen = parser.parse_args()
    kept: dict[str, Any] = {}
    for collection in map(loaded, chosen.collections):
        programs = compared(collection, chosen.folder.resolve() / "peer", chosen.peer)
        print(f"\n{collection.name}: {len(collection.queries)} questions, each by words")
        print(f"{'':6}{'nDCG@10':>9}{'recall@10':>11}{'no answer':>11}{'search':>9}{'index':>9}")
        for program in programs:
            found = measured(collection, program)
            kept.setdefault(collection.name, {})[program.name] = found
            print(
                f"{program.name:6}{found['ndcg']:>9.3f}{found['recall']:>11.3f}"
                f"{found['unanswered']:>11.0f}{found['search_seconds']:>9.3f}"
                f"{found['indexing_seconds']:>9.1f}",
                flush=True,
            )
    if chosen.keep:
        keep("documents-peer", kept)


if __name__ == "__main__":
    main()
