"""Any process of a background service is killed at any moment; nothing is left, nothing is lost."""

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
    is_gone,
    place_of,
    until,
    with_import_hook,
    workers_of,
)
from serving import contents

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL"),
]

FILES = 60
KILLS = int(os.environ.get("KILLS", "12"))
LONGEST_LIFE_SECONDS = 0.5
VICTIMS = ("front end", "service", "worker")
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


async def kill(place: Place, client: Wire, victim: str) -> str:
    """Kill one process, and wait for what must end with it; returns which one it was."""
    service = place.service()
    workers = workers_of(service)
    if victim == "worker" and not workers:  # it is just being started
        victim = "service"
    with suppress(psutil.NoSuchProcess):
        if victim == "front end":
            client.process.kill()
        elif victim == "worker":
            workers[0].kill()
        else:
            service.kill()
    if victim == "service":
        await client.exit_status()
        await until(lambda: not place.processes())
    elif victim == "front end":
        await until(lambda: place.report()["clients"] == 0)
        assert place.service() == service
    else:
        await until(lambda: is_gone(workers[0]))
        assert place.service() == service
    return victim


async def test_kills_leave_no_process_no_lock_and_a_fresh_index():
    chance, victims = random.Random("edits"), random.Random("victims")
    with place_of({f"{i % 7}/{i}.py": f"value_{i} = {i}\n" for i in range(FILES)}) as place:
        place.variables = with_import_hook(place.folder / "hook", FAKE_WORKER, place.variables)
        killed = []
        for _ in range(KILLS):
            async with place.relayed() as client:
                await live(place, client, chance)
                killed.append(await kill(place, client, victims.choice(VICTIMS)))
        sys.stdout.write(f"killed: {dict(Counter(killed))}\n")  # for whoever runs it with -s
        async with place.relayed() as client:
            await client.initialize()
            with anyio.fail_after(ANSWER_SECONDS):
                await client.complete()
        ran = await place.run("stop", place.project)
        assert ran.returncode == 0, ran.stderr
        assert place.processes() == []
        for lock in (place.endpoint.lock, place.project / ".lancedb" / "index.lock"):
            with filelock.FileLock(lock, timeout=0):
                pass
        kept = await contents(place.project / ".lancedb")
        fresh = place.folder / "fresh"
        ran = await place.run("index", place.project, VECTOR_INDEX_LANCEDB_URI=str(fresh))
        assert ran.returncode == 0, ran.stderr
        assert kept == await contents(fresh)
