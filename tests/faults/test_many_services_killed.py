"""Several services share a worker; any of them die together, again and again, under load."""

import os
import random
import sys
from collections import Counter
from contextlib import AsyncExitStack, suppress

import anyio
import anyio.lowlevel
import psutil
import pytest
from processes import ANSWER_SECONDS, FAKE_WORKER, Place, place_of, with_import_hook
from serving import contents, differences
from waiting import eventually
from writing import write

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL"),
]

PROJECTS = 3
FILES = 40
KILLS = int(os.environ.get("KILLS", "3"))
LONGEST_LIFE_SECONDS = 0.7
WORKER, HOST = "worker", "host"
# For each death: what its services had in hand. Four were seen; who embeds a project anew each time
# it starts would need forty.
MOST_TEXTS_AGAIN = 20
MOST_GROWTH = 1.3  # of the memory of the same processes after all of it
# Notes each text that comes to it, by its hash.
COUNTING_WORKER = FAKE_WORKER.replace(
    '        texts = request["texts"]\n',
    '        texts = request["texts"]\n'
    '        with open(os.environ["EMBEDDED"], "a") as file:\n'
    "            for text in texts:\n"
    "                file.write(hashlib.sha256(text.encode()).hexdigest() + chr(10))\n",
)


def text_of(number: int) -> str:
    """A file that there has never been before."""
    return f"def name_{number}():\n    return 'word{number} alpha'\n"


class Editor:
    """Changes the files of all projects; no text is ever written twice."""

    def __init__(self, places: list[Place], seed: str) -> None:
        self._places = places
        self._chance = random.Random(f"edits {seed}")
        self._made = 0

    def edit(self) -> None:
        """Change, make or delete some files of one project."""
        project = self._chance.choice(self._places).project
        for number in self._chance.sample(range(FILES), 3):
            path = project / f"{number % 5}/{number}.py"
            if path.exists() and self._chance.random() < 0.2:
                path.unlink()
            else:
                self._made += 1
                path.parent.mkdir(exist_ok=True)
                path.write_text(text_of(1000 * PROJECTS + self._made), "utf-8")


@pytest.fixture
def places():
    with place_of({f"{i % 5}/{i}.py": text_of(i) for i in range(FILES)}) as first:
        log = first.folder / "embedded"
        log.touch()
        variables = {**first.variables, "EMBEDDED": str(log)}
        first.variables = with_import_hook(first.folder / "hook", COUNTING_WORKER, variables)
        others = [
            Place(
                first.folder,
                write(
                    first.folder / f"project{n}",
                    {f"{i % 5}/{i}.py": text_of(1000 * n + i) for i in range(FILES)},
                ),
                first.variables,
            )
            for n in range(1, PROJECTS)
        ]
        yield [first, *others]


async def live(places, clients, editor, chance):
    """Let all services work for a while on files that change."""

    async def search(client):
        while True:
            await client.call("search_index", query="alpha word")

    with anyio.move_on_after(chance.uniform(0.1, LONGEST_LIFE_SECONDS)):
        async with anyio.create_task_group() as tasks:
            for client in clients:
                tasks.start_soon(search, client)
            while True:
                editor.edit()
                await anyio.lowlevel.checkpoint()


def victims_of(places, chance):
    """One to three processes that die in the same moment, by their names."""
    found = {f"service {n}": place.service() for n, place in enumerate(places)}
    for worker in places[0].workers():
        with suppress(psutil.NoSuchProcess):
            found[WORKER] = worker
            if (host := worker.parent()) is not None:
                found[HOST] = host
    return {name: found[name] for name in chance.sample(sorted(found), chance.randint(1, 3))}


async def answers(clients):
    """Every client that still has its service gets an answer."""
    for client in clients:
        with anyio.fail_after(ANSWER_SECONDS):
            await client.call("get_status")
            await client.call("search_index", query="alpha word")


async def round_of_kills(places, editor, chance):
    """Have everything work, kill some of it, and see that the rest goes on; returns who died."""
    async with AsyncExitStack() as stack:
        clients = [await stack.enter_async_context(place.relayed()) for place in places]
        for client in clients:
            await client.initialize()
            await client.call("get_status")
        await live(places, clients, editor, chance)
        victims = victims_of(places, chance)
        for process in victims.values():
            with suppress(psutil.NoSuchProcess):
                process.kill()
        left = [c for n, c in enumerate(clients) if f"service {n}" not in victims]
        await answers(left)
        return "+".join(victims)


async def complete(places):
    """Wait until everything of all projects has its vector."""
    for place in places:
        async with place.relayed() as client:
            await client.initialize()
            with anyio.fail_after(ANSWER_SECONDS):
                await client.complete()


def memory_of(places):
    """The resident bytes of the services, the host and its one worker, at rest."""
    [worker] = places[0].workers()
    lasting = [place.service() for place in places] + [worker, worker.parent()]
    return sum(process.memory_info().rss for process in lasting)


async def equals_a_fresh_index(place, folder):
    ran = await place.run("stop", place.project)
    assert ran.returncode == 0, ran.stderr
    kept = await contents(place.project / ".lancedb")
    ran = await place.run("index", place.project, VECTOR_INDEX_LANCEDB_URI=str(folder))
    assert ran.returncode == 0, ran.stderr
    assert differences(kept, await contents(folder)) == []


@pytest.mark.timeout(10_800 if "KILLS" in os.environ else 180)
async def test_services_that_share_a_worker_survive_each_other(places):
    seed = os.environ.get("SEED", "1")
    chance, editor, struck = random.Random(f"victims {seed}"), Editor(places, seed), Counter()
    await complete(places)
    size = memory_of(places)
    deaths = 0
    for _ in range(KILLS):
        who = await round_of_kills(places, editor, chance)
        struck[who] += 1
        deaths += who.count("+") + 1
    await complete(places)

    assert memory_of(places) <= MOST_GROWTH * size

    embedded = Counter((places[0].folder / "embedded").read_text("utf-8").split())
    again = sum(count - 1 for count in embedded.values())
    sys.stdout.write(f"{dict(struck)}; {sum(embedded.values())} texts, {again} of them again\n")
    assert again <= deaths * MOST_TEXTS_AGAIN

    for number, place in enumerate(places):
        await equals_a_fresh_index(place, place.folder / f"fresh{number}")
    await eventually(lambda: not places[0].services())
