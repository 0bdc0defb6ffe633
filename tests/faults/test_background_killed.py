"""Any process of a service is killed or stopped at any moment; nothing is left or lost."""

import os
import random
import sys
from collections import Counter
from contextlib import suppress

import anyio
import anyio.lowlevel
import filelock
import psutil
import pytest
from processes import (
    ANSWER_SECONDS,
    FAKE_WORKER,
    Place,
    Wire,
    command_of,
    is_gone,
    place_of,
    with_import_hook,
)
from serving import contents, differences
from waiting import eventually

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL"),
]

FILES = 60
KILLS = int(os.environ.get("KILLS", "6"))
LONGEST_LIFE_SECONDS = 0.5
LONGEST_STOP_SECONDS = 0.3
CHILD_SECONDS = 2.0  # for a child to be there
KILLS_BETWEEN_LOOKS = 25
WORKER, HOST, PREPARING = "worker", "host of the worker", "preparing child"
CHILDREN = (WORKER, HOST, PREPARING)
VICTIMS = ("front end", "service", *CHILDREN)
PREPARES = "vector_index_mcp.indexing.preparing.child_main"
ACTS = ("killed", "stopped", "stopped and killed")
REBUILD = {
    "jsonrpc": "2.0",
    "id": "nobody waits for this",
    "method": "tools/call",
    "params": {"name": "trigger_index", "arguments": {"force_reindex": True}},
}
WORDS = ["alpha", "beta", "gamma", "delta"]


def edit(place: Place, chance: random.Random) -> None:
    """Change some files, make some, delete some."""
    for number in chance.sample(range(FILES), FILES // 3):
        path = place.project / f"{number % 7}/{number}.py"
        if path.exists() and chance.random() < 0.2:
            path.unlink()
        else:
            words = " ".join(chance.choices(WORDS, k=100))
            path.parent.mkdir(exist_ok=True)
            path.write_text(f"value_{number} = '''{words}'''\n" * chance.randint(0, 4), "utf-8")


async def live(place: Place, client: Wire, chance: random.Random) -> None:
    """Let everything work for a while on files that change."""
    await client.initialize()
    await client.call("get_status")
    with anyio.move_on_after(chance.uniform(0, LONGEST_LIFE_SECONDS)):
        while True:
            edit(place, chance)
            await anyio.lowlevel.checkpoint()
            await client.call("search_index", query="alpha beta")


def children_of(place: Place, victim: str) -> list[psutil.Process]:
    """The processes of that kind that work for a service."""
    if victim == PREPARING:
        children = place.service().children()
        return [child for child in children if PREPARES in command_of(child)]
    if victim == WORKER:
        return place.workers()
    with suppress(psutil.NoSuchProcess):
        return [host for worker in place.workers() if (host := worker.parent())]
    return []


async def found(place: Place, client: Wire, victim: str) -> tuple[str, psutil.Process]:
    """The process to strike, and which one it is: the service if there is no such child now."""
    service = place.service()
    if victim == "front end":
        return victim, psutil.Process(client.process.pid)
    if victim == PREPARING:  # there are some in bulk only
        await client.send(REBUILD)
    with anyio.move_on_after(CHILD_SECONDS):
        while victim in CHILDREN:
            if children := children_of(place, victim):
                return victim, children[0]
            await anyio.lowlevel.checkpoint()
    return "service", service


async def strike(place: Place, client: Wire, victim: str, chance: random.Random) -> str:
    """Stop or kill one process, and see what must follow; returns what was done to which."""
    service, act = place.service(), chance.choice(ACTS)
    victim, process = await found(place, client, victim)
    with suppress(psutil.NoSuchProcess):  # a child may be done meanwhile
        if act != "killed":
            process.suspend()
            await anyio.sleep(chance.uniform(0, LONGEST_STOP_SECONDS))
        if act == "stopped":
            process.resume()
        else:
            process.kill()
    await follows(place, client, victim, service, process, is_dead=act != "stopped")
    return f"{victim} {act}"


async def follows(place, client, victim, service, process, *, is_dead) -> None:
    """What must follow: who depends on the dead ends, everybody else goes on."""
    if is_dead and victim == "service":
        await eventually(lambda: is_gone(process))
        assert await client.leave() == 0
        await eventually(lambda: not place.processes())
        return
    if is_dead:
        await eventually(lambda: is_gone(process))
    if is_dead and victim == "front end":
        await eventually(lambda: place.report()["clients"] == 0)
    else:
        with anyio.fail_after(ANSWER_SECONDS):
            await client.call("get_status")
            await client.call("search_index", query="alpha beta")
    assert place.service() == service


async def indexed_like_new(place: Place, name: str) -> None:
    """No process and no lock is left, and the index is equal to one made from scratch."""
    async with place.relayed() as client:
        await client.initialize()
        with anyio.fail_after(ANSWER_SECONDS):
            await client.complete()
    ran = await place.run("stop", place.project)
    assert ran.returncode == 0, ran.stderr
    await eventually(lambda: not place.processes())
    for lock in (place.endpoint.lock, place.project / ".lancedb" / "index.lock"):
        with filelock.FileLock(lock, timeout=0):
            pass
    kept = await contents(place.project / ".lancedb")
    fresh = place.folder / name
    ran = await place.run("index", place.project, VECTOR_INDEX_LANCEDB_URI=str(fresh))
    assert ran.returncode == 0, ran.stderr
    assert differences(kept, await contents(fresh)) == []


@pytest.mark.timeout(10_800 if "KILLS" in os.environ else 120)
async def test_kills_and_stops_leave_no_process_no_lock_and_a_fresh_index():
    seed = os.environ.get("SEED", "1")
    chance, victims = random.Random(f"edits {seed}"), random.Random(f"victims {seed}")
    with place_of({f"{i % 7}/{i}.py": f"value_{i} = {i}\n" for i in range(FILES)}) as place:
        place.variables = with_import_hook(place.folder / "hook", FAKE_WORKER, place.variables)
        struck: Counter[str] = Counter()
        for number in range(1, KILLS + 1):
            async with place.relayed() as client:
                await live(place, client, chance)
                struck[await strike(place, client, victims.choice(VICTIMS), victims)] += 1
            if number % KILLS_BETWEEN_LOOKS == 0 or number == KILLS:
                await indexed_like_new(place, f"fresh{number}")
        sys.stdout.write(f"{dict(struck)}\n")  # for whoever runs it with -s
