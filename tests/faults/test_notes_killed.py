"""Notes whose service is killed at any moment: every answered write is there, and committed."""

import json
import os
import random
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import psutil
from machines import git

KILLS = int(os.environ.get("KILLS", "6"))
MOST_ANSWERS = 40  # before a kill
WRITERS = Path(__file__).with_name("notes_writers.py")


class Killed:
    """A store, and what its killed services have answered."""

    def __init__(self, home):
        self.home = home
        self.answered = []
        self.variables = {**os.environ, "PYTHONPATH": str(WRITERS.parent.parent)}

    def run(self, number, answers):
        """Let a service answer so many writes, then kill it in the middle of others."""
        with subprocess.Popen(
            [sys.executable, str(WRITERS), str(self.home), str(1_000 * number)],
            stdout=subprocess.PIPE,
            env=self.variables,
            start_new_session=True,
            text=True,
        ) as process:
            try:
                assert process.stdout.readline() == "begun\n"
                for _ in range(answers):
                    self.answered.append(process.stdout.readline().strip())
            finally:
                kill(process.pid, with_git=bool(number % 2))
            rest = process.stdout.read().splitlines()
            # The last line may have been cut off with the process.
            self.answered += [token for token in rest if token.endswith("-end")]

    def end_well(self):
        """Open the store once more, and end as a service does."""
        opens = "import sys, anyio, machines, pathlib\n" + (
            "async def main():\n"
            "    async with machines.running(pathlib.Path(sys.argv[1])) as machine:\n"
            "        await machine.done('get_storage_status')\n"
            "anyio.run(main)"
        )
        command = [sys.executable, "-c", opens, str(self.home)]
        subprocess.run(command, env=self.variables, check=True)
        assert git(self.home, "status", "--porcelain") == ""

    def check(self):
        """Everything that was answered is on disk and in the history, and nothing is half done."""
        on_disk = "\n".join([*self.texts(), *map(str, self.home.glob("projects/*/knowledge/*"))])
        committed = git(self.home, "grep", "-hoE", "token-[0-9]+-[0-9]+-end", "HEAD", check=False)
        kept = set(committed.split())
        assert [t for t in self.answered if t not in on_disk] == []
        assert set(self.answered) - kept == set()

    def texts(self):
        for path in sorted(self.home.glob("projects/**/*")):
            if path.is_file():
                text = path.read_text(encoding="utf-8")
                if path.suffix == ".json":
                    json.loads(text)  # none is half written
                yield text


def kill(pid, *, with_git):
    """Kill a service; every other time with the git that it has started, in the middle of it."""
    children = psutil.Process(pid).children(recursive=True) if with_git else []
    os.kill(pid, signal.SIGKILL)
    for child in children:
        with suppress(psutil.NoSuchProcess):
            child.kill()


def test_a_kill_loses_no_answered_write_and_leaves_none_by_half(tmp_path):
    store = Killed(tmp_path / "store")
    for number in range(KILLS):
        store.run(number, random.randrange(MOST_ANSWERS))
    store.end_well()
    store.check()
    git(store.home, "fsck", "--strict")
    assert [path.name for path in store.home.glob(".git/**/*.lock")] == ["staging.lock"]
    left = {path.name for path in (store.home / ".git/vector-index-mcp").iterdir()}
    assert left <= {"found", "index.held", "lock", "staging.lock", "staged"}
    numbers = [int(path.name) for path in store.home.glob("projects/project-0/TODO/*")]
    assert len(numbers) == len(set(numbers))
