"""Everything the program does, against repositories, neighbours and disks that mean harm.

Real processes run inside a folder of canaries, and after each run the same oracle looks: whatever
of the user's is changed, opened or told, whatever answer the disk contradicts, whatever stands
still, grows, ends with a traceback or is left behind, is a failure.
"""

import http.client
import itertools
import json
import os
import random
import re
import shutil
import signal
import stat
import subprocess
import sys
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

import anyio
import anyio.to_thread
import psutil
import pytest
from attacks.hostile import (
    Canaries,
    Making,
    Opens,
    files_that_break_parsers,
    harm_meanwhile,
    repository,
    state_of,
)
from greeting import CLIENT
from processes import NO_MODEL, Place, is_gone, place_of
from waiting import eventually

from vector_index_mcp.clients.catalog import CLIENTS

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.timeout(36_000 if "ROUNDS" in os.environ else 600),
    pytest.mark.skipif(sys.platform != "linux", reason="inotify, /proc and odd names"),
]

NEIGHBOURS = Path(__file__).with_name("neighbours.py").read_text(encoding="utf-8")
NOBODY = 65_534
ROUNDS = int(os.environ.get("ROUNDS", "1"))
STEPS_MEANWHILE = 12
SEED = int(os.environ.get("SEED", "1"))
EXTRA = (files_that_break_parsers,) if "PARSERS" in os.environ else ()
STATUS_SECONDS = 10.0
COMMAND_SECONDS = 180.0  # a service is polite: beside others that work, it takes its time
MOST_MEMORY_BYTES = 600 << 20
MOST_CHILDREN = 12
MOST_DESCRIPTORS = 400
NAMES = [client.name for client in CLIENTS]
ALLOWED_STATUSES = {0, 1, 2}
QUERIES = (
    "apple",
    "banana yellow",
    "durian odd name",
    "honey_1",
    "pelican",
)  # the last word is in every canary
LEFT_IN_RUNTIME = re.compile(r"[0-9a-f]+\.(lock|log|json)")


class Oracle:
    """What must hold after every run in a place."""

    def __init__(self, place: Place, chance: random.Random) -> None:
        self.place = place
        self.canaries = Canaries(place.folder / "canaries").plant(chance)
        home = Path(place.variables["HOME"])
        (home / ".ssh").mkdir(parents=True)
        for name in (".bashrc", ".ssh/config"):
            (home / name).write_text("# mine\n", encoding="utf-8")
        self.users = [home / ".bashrc", home / ".ssh/config"]
        self.temporary = place.folder / "tmp"
        self.temporary.mkdir()
        place.variables["TMPDIR"] = str(self.temporary)
        self.story: list[str] = []
        self._opens = Opens(self.canaries.sealed)
        self._before = self._state()

    def _state(self):
        ours = [(path.read_bytes(), path.lstat().st_mtime_ns) for path in self.users]
        state = (state_of(self.canaries.folder), ours)
        self._opens.seen()  # by this look itself
        return state

    def failed(self, why: object) -> None:
        pytest.fail(f"{why}\nafter: {self.story[-60:]}")

    async def run(self, *arguments: str | Path, options=None) -> str:
        """Run a command to its end and look at everything."""
        self.story.append(" ".join(map(str, arguments)))
        ran = None
        with anyio.move_on_after(COMMAND_SECONDS):
            ran = await self.place.run(*arguments, options=options)
        if ran is None:
            self.failed("it does not end")
        if ran.returncode not in ALLOWED_STATUSES:
            self.failed(f"status {ran.returncode}: {ran.stderr}")
        self.said(ran.stdout + ran.stderr)
        self.looks()
        return ran.stdout

    def said(self, text: str) -> None:
        """Look at what was printed, answered or logged."""
        if "Traceback" in text:
            self.failed(text)
        if told := self.canaries.told_in(text.encode("utf-8", "surrogatepass")):
            self.failed(f"{told} is told: {text[:2_000]}")

    def looks(self) -> None:
        """What belongs to the user is as it was, and nobody has looked at it."""
        if seen := self._opens.seen():
            self.failed(f"opened: {seen}")
        if (now := self._state()) != self._before:
            self.failed(f"changed: {differences(self._before, now)}")

    def hits(self, result: dict) -> None:
        """Every hit stands in its file, which lies in the project."""
        self.said(json.dumps(result))
        for hit in result["results"]:
            if why := untruth(self.place.project, hit):
                self.failed(f"{why}: {hit}")

    def grown(self, service: psutil.Process) -> None:
        with suppress(psutil.NoSuchProcess):
            measured = {
                "memory": (service.memory_info().rss, MOST_MEMORY_BYTES),
                "children": (len(service.children(recursive=True)), MOST_CHILDREN),
                "descriptors": (service.num_fds(), MOST_DESCRIPTORS),
            }
            for what, (value, limit) in measured.items():
                if value > limit:
                    self.failed(f"{value} {what}")

    async def ends(self) -> None:
        """Nothing of ours runs or lies around any more, and nothing that was kept tells a word."""
        self.story.append("the end")
        with suppress(TimeoutError):
            await eventually(lambda: not self.place.processes(), COMMAND_SECONDS)
        if left := self.place.processes():
            self.failed(f"still there: {left}")
        if left := [*self.temporary.iterdir()]:
            self.failed(f"left behind: {left}")
        runtime = self.place.runtime
        left = [*runtime.iterdir()] if runtime.is_dir() else []
        if odd := [path for path in left if not LEFT_IN_RUNTIME.fullmatch(path.name)]:
            self.failed(f"left behind: {odd}")
        for path in self._kept(left):
            self.said(path.read_bytes().decode("utf-8", "replace"))
        self.looks()

    def _kept(self, left):
        home = Path(self.place.variables["HOME"])
        folders = [home, self.place.folder / "cache"]
        kept = itertools.chain.from_iterable(folder.rglob("*") for folder in folders)
        errors = self.place.folder / "stderr.txt"
        for path in itertools.chain(left, kept, [errors]):
            if path.is_file() and not path.is_symlink():
                yield path

    def close(self) -> None:
        self._opens.close()


def differences(before, now):
    """The entries that are not as they were."""
    (old, users), (new, others) = before, now
    changed = [key for key in old.keys() | new.keys() if old.get(key) != new.get(key)]
    return changed or [users, others]


def untruth(project: Path, hit: dict) -> str:
    """What the disk says against a hit; empty if nothing."""
    path = project
    for part in hit["file_path"].split("/"):
        path /= part
        if path.is_symlink():
            return "it is reached by a link"
    if ".." in path.parts or not stat.S_ISREG(path.lstat().st_mode):
        return "it is no file of the project"
    text = path.read_bytes().decode("utf-8", "replace")
    lines = re.split(r"\r\n|\n|\r", text)[hit["start_line"] - 1 : hit["end_line"]]
    here = "\n".join(lines) + "\n"
    shown = re.split(r"\r\n|\n|\r", hit["extracted_text_chunk"])
    if hit.get("is_stale") or "***" in hit["extracted_text_chunk"]:
        return ""
    missing = [line for line in shown if line not in here]
    return f"{missing[:3]} does not stand there" if missing else ""


@contextmanager
def hostile_place(seed: int, **settings: str):
    """A place with canaries and an oracle."""
    chance = random.Random(seed)
    with place_of({}, **NO_MODEL, DISPLAY="", WAYLAND_DISPLAY="", BROWSER="", **settings) as place:
        oracle = Oracle(place, chance)
        oracle.story.append(f"seed {seed}")
        try:
            yield place, oracle, chance
        finally:
            oracle.close()


async def searched(oracle: Oracle, chance: random.Random) -> None:
    """Search by the command."""
    for query in (chance.choice(QUERIES), "pelican"):
        found = await oracle.run("search", oracle.place.project, query, "--json", "--top-k", "50")
        if found.startswith("{"):
            oracle.hits(json.loads(found))


async def commands(oracle: Oracle, chance: random.Random) -> None:
    """Every command that ends by itself, in any order."""
    project = oracle.place.project
    there = {"cwd": project}
    await oracle.run("index", project)
    every = [
        partial(searched, oracle, chance),
        partial(oracle.run, "status", project, "--json"),
        partial(oracle.run, "verify", project),
        partial(oracle.run, "doctor", project, "--json"),
        partial(oracle.run, "index", project, "--force"),
        partial(installed, oracle, there),
    ]
    for act in chance.sample(every, len(every)):
        await act()


async def installed(oracle: Oracle, there: dict) -> None:
    """Install for every client and undo it: the repository is as it was, links and all."""
    before = but_the_index(oracle.place.project)
    project = oracle.place.project
    await oracle.run("install", project, "--yes", "--agents-md", "--client", *NAMES)
    await oracle.run("uninstall", project, "--yes", "--agents-md", "--client", *NAMES)
    after = but_the_index(oracle.place.project)
    if before != after:
        changed = [key for key in before.keys() | after.keys() if before.get(key) != after.get(key)]
        oracle.failed(f"install and uninstall have left {changed}")


def but_the_index(project: Path) -> dict:
    """The project's entries, without times: what was undone is written anew.

    Folders do not count: an empty one may stay.
    """
    return {
        key: (state[0], state[1], state[-1])
        for key, state in state_of(project).items()
        if not key.startswith(".lancedb") and state[0] != stat.S_IFDIR
    }


def page(link: str, query: str) -> list[bytes]:
    """What the page answers to somebody who follows its link."""
    host, _, path = link.removeprefix("http://").partition("/")
    connection = http.client.HTTPConnection(host, timeout=STATUS_SECONDS)
    try:
        connection.request("GET", f"/{path}")
        response = connection.getresponse()
        response.read()
        room, cookie = response.headers["location"], response.headers["set-cookie"]
        answers = []
        for wanted in ("", "api/map", f"api/search?query={query}", "../../canaries/notes.py"):
            connection.request("GET", room + wanted, headers={"Cookie": cookie.partition(";")[0]})
            answers.append(connection.getresponse().read())
        return answers
    finally:
        connection.close()


async def answered(client, oracle: Oracle, tool: str, **arguments):
    """What a tool answers: a result, or an error that is a sentence."""
    oracle.story.append(tool)
    answer = await client.ask("tools/call", name=tool, arguments=arguments)
    oracle.said(json.dumps(answer))
    result = answer.get("result", {})
    return None if result.get("isError") else result.get("structuredContent")


async def until_settled(client, oracle: Oracle) -> None:
    """All that has changed is indexed, or the service says why it cannot be."""
    found = None
    with anyio.move_on_after(COMMAND_SECONDS):
        while found := await answered(client, oracle, "trigger_index"):
            if found["run"]["finished"]:  # without a model, it is never complete
                return
        return
    oracle.failed(f"it does not settle: {found}")


async def in_session(oracle: Oracle, chance: random.Random) -> None:
    """A client and its service, while the repository changes under them."""
    place = oracle.place
    making = Making(place.project, oracle.canaries, chance)
    async with place.relayed() as client:
        await client.initialize()
        for _ in range(STEPS_MEANWHILE):
            harm_meanwhile(making)
            if chance.random() < 0.3:
                await answered(client, oracle, "trigger_index", force_reindex=chance.random() < 0.2)
            with anyio.move_on_after(STATUS_SECONDS) as waited:
                await answered(client, oracle, "get_status")
            if waited.cancelled_caught:
                oracle.failed("the status is not answered")
            if service := place.report():
                oracle.grown(psutil.Process(service["pid"]))
        # Hits are compared with the disk, so that must not change meanwhile.
        await until_settled(client, oracle)
        for query in QUERIES:
            if found := await answered(client, oracle, "search_index", query=query, top_k=100):
                oracle.hits(found)
                if query == "apple" and not any(
                    hit["file_path"] == "apple.py" for hit in found["results"]
                ):
                    oracle.failed(f"the honest file is not found: {found}")
        await asked_by_page(oracle, chance)
        oracle.looks()
        await ended(oracle, chance, place.service())


async def asked_by_page(oracle: Oracle, chance: random.Random) -> None:
    link = (await oracle.run("ui", oracle.place.project, "--no-open")).strip()
    if link.startswith("http://127.0.0.1:"):
        for answer in await anyio.to_thread.run_sync(page, link, "apple%20pelican"):
            oracle.said(answer.decode("utf-8", "replace"))


async def ended(oracle: Oracle, chance: random.Random, service: psutil.Process) -> None:
    """By the command or by SIGTERM; either way it ends."""
    if chance.random() < 0.5:
        await oracle.run("stop", oracle.place.project)
    else:
        oracle.story.append("SIGTERM")
        service.send_signal(signal.SIGTERM)
    await eventually(lambda: is_gone(service))


async def test_a_hostile_repository_gets_nothing_and_breaks_nothing():
    for seed in range(SEED, SEED + ROUNDS):
        with hostile_place(seed) as (place, oracle, chance):
            oracle.story += repository(place.project, oracle.canaries, chance, EXTRA)
            await commands(oracle, chance)
            await in_session(oracle, chance)
            await oracle.ends()
        sys.stdout.write(f"seed {seed}: {oracle.story[1:8]} fine\n")  # for whoever runs it with -s


# -- the neighbour -----------------------------------------------------------------------------


@contextmanager
def neighbour(act: str, *arguments: object, user: int | None = None):
    """A process that does us harm, maybe another user's; ends with this."""
    whose = os.geteuid() if user is None else user
    process = subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", NEIGHBOURS, str(whose), act, *map(str, arguments)],
        stdout=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        cwd="/",
    )
    try:
        assert process.stdout.readline() == b"ready\n"
        yield process
    finally:
        process.kill()
        process.communicate()


async def everything_fails_politely(oracle: Oracle) -> None:
    """No command does anything but say why, within its time; and nothing of ours stays."""
    project = oracle.place.project
    for command in (["status"], ["ui", "--no-open"], ["doctor"], ["stop"], ["search", "apple"]):
        name, *rest = command
        await oracle.run(name, project, *rest)
    await oracle.run("ps")
    oracle.story.append("serve")
    async with oracle.place.relayed() as client:
        with suppress(anyio.EndOfStream, anyio.IncompleteRead, anyio.BrokenResourceError):
            oracle.said(json.dumps(await client.ask("initialize", **CLIENT)))
            oracle.said(json.dumps(await client.ask("tools/list")))


@pytest.fixture
def another_user() -> int:
    if os.geteuid() != 0:
        pytest.skip("only root can be somebody else")
    return NOBODY


async def test_a_neighbour_who_was_first_with_the_runtime_folder_gets_nothing(another_user):
    with hostile_place(SEED) as (place, oracle, chance):
        repository(place.project, oracle.canaries, chance)
        shared = place.folder / "shared"
        shared.mkdir()
        shared.chmod(0o1777)
        place.folder.chmod(0o711)
        place.variables["VECTOR_INDEX_RUNTIME_DIR"] = str(shared / "run")
        with neighbour("hold_folder", shared / "run", user=another_user):
            await everything_fails_politely(oracle)
            assert not [*(shared / "run").iterdir()]
        await oracle.ends()


@pytest.mark.parametrize("has_forged_record", [True, False])
async def test_garbage_on_the_socket_is_replaced_or_told(has_forged_record):
    with hostile_place(SEED) as (place, oracle, chance):
        repository(place.project, oracle.canaries, chance)
        endpoint = await known_endpoint(place)
        record = endpoint.record if has_forged_record else place.folder / "forged.json"
        with neighbour("answer_garbage", endpoint.socket_path, record):
            await everything_fails_politely(oracle)
        async with place.relayed() as client:
            await client.initialize()
            assert await answered(client, oracle, "get_status")
        await oracle.run("stop", place.project)
        await oracle.ends()


async def test_a_held_lock_of_the_service_is_told_in_time():
    with hostile_place(SEED) as (place, oracle, chance):
        repository(place.project, oracle.canaries, chance)
        endpoint = await known_endpoint(place)
        with neighbour("hold_lock", endpoint.lock):
            oracle.story.append("serve")
            async with place.relayed() as client:
                with anyio.fail_after(COMMAND_SECONDS):
                    assert await client.exit_status() in ALLOWED_STATUSES
        await oracle.ends()


async def test_a_flooded_page_lets_its_user_in_and_nobody_else(another_user):
    with hostile_place(SEED) as (place, oracle, _):
        repository(place.project, oracle.canaries, random.Random(0))
        link = (await oracle.run("ui", place.project, "--no-open")).strip()
        port = link.removeprefix("http://127.0.0.1:").partition("/")[0]
        with neighbour("flood", port, SEED, user=another_user) as process:
            guesses = [await anyio.to_thread.run_sync(process.stdout.readline) for _ in range(20)]
            assert {guess.split()[1] for guess in guesses if guess.split()} <= {b"403", b"404"}
            link = (await oracle.run("ui", place.project, "--no-open")).strip()
            for answer in await anyio.to_thread.run_sync(page, link, "apple"):
                oracle.said(answer.decode("utf-8", "replace"))
            oracle.grown(place.service())
        await oracle.run("stop", place.project)
        await oracle.ends()


async def known_endpoint(place: Place):
    """Where a service of the project is met; none runs now."""
    async with place.relayed() as client:
        await client.initialize()
        await client.call("get_status")
    endpoint = place.endpoint
    stopped = await place.run("stop", place.project)
    assert stopped.returncode == 0, stopped.stderr
    return endpoint


# -- the disk ----------------------------------------------------------------------------------


def fill(disk: Path, chance: random.Random) -> None:
    """Leave anything from nothing to 2 MB of a disk."""
    with suppress(OSError), (disk / "full").open("wb") as file:
        left = chance.choice([0, 1_000, 100_000, 2_000_000])
        status = os.statvfs(disk)
        file.write(b"x" * max(0, status.f_bavail * status.f_frsize - left))


def remount(disk: Path, how: str) -> None:
    subprocess.run(["mount", "-o", f"remount,{how}", disk], check=False, capture_output=True)


def forbid(project: Path, chance: random.Random) -> None:
    for path in project.rglob("*.py"):
        if chance.random() < 0.3:
            path.chmod(chance.choice([0o000, 0o200, 0o644]))


async def test_a_hostile_disk_is_told_and_survived(small_disk):
    """It fills up, becomes read-only and forbids; then all is well, and so is the index."""
    for seed in range(SEED, SEED + ROUNDS):
        chance = random.Random(seed)
        with hostile_place(seed, VECTOR_INDEX_LANCEDB_URI=str(small_disk / "index")) as parts:
            place, oracle, _ = parts
            shutil.copytree(Path(__file__).parents[1] / "unit", place.project, dirs_exist_ok=True)
            (place.project / "apple.py").write_text("apple = 1\n", encoding="utf-8")
            acts = [
                partial(fill, small_disk, chance),
                partial(remount, small_disk, "ro"),
                partial(remount, small_disk, "rw"),
                partial(forbid, place.project, chance),
            ]
            async with place.relayed() as client:
                await client.initialize()
                for _ in range(STEPS_MEANWHILE):
                    await anyio.to_thread.run_sync(chance.choice(acts))
                    with anyio.fail_after(STATUS_SECONDS):
                        await answered(client, oracle, "get_status")
                    if found := await answered(client, oracle, "search_index", query="apple"):
                        oracle.hits(found)
                remount(small_disk, "rw")
                (small_disk / "full").unlink(missing_ok=True)
                await until_settled(client, oracle)
                found = await answered(client, oracle, "search_index", query="apple")
                assert "apple.py" in {hit["file_path"] for hit in found["results"]}, found
                await ended(oracle, chance, place.service())
            await oracle.run("verify", place.project)
            await oracle.ends()
            shutil.rmtree(small_disk / "index", ignore_errors=True)
