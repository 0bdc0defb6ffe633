"""Many agents write while the disk fills up: what was answered with success is there, and whole."""

import shutil
from random import Random
from string import ascii_letters

import anyio
import pytest
from machines import git, running

pytestmark = pytest.mark.anyio

AGENTS, WRITES = 4, 40
CHARS = 100_000


async def test_what_was_acknowledged_is_kept_when_the_disk_fills_up(small_disk):
    home = small_disk / "store"
    written, codes = {}, []

    async def write(machine, agent):
        """As long as it works, and then some."""
        chance = Random(agent)
        for n in range(WRITES):
            text = "".join(chance.choices(ascii_letters, k=CHARS))
            answer = await machine.call(
                "update_project_main", project_id=f"p{agent}-{n}", content=text
            )
            if answer["success"]:
                written[f"p{agent}-{n}"] = text
            else:
                codes.append(answer["code"])

    async with running(home) as machine:
        async with anyio.create_task_group() as agents:
            for agent in range(AGENTS):
                agents.start_soon(write, machine, agent)
        assert written
        assert len(codes) > AGENTS
        assert set(codes) <= {"FILE_SYSTEM_ERROR", "GIT_COMMAND_FAILED", "GIT_ERROR"}
        for project, text in written.items():
            assert (await machine.done("get_project_main", project_id=project))["content"] == text
        git(home, "fsck", "--strict")
        # Somebody makes room, and everything goes on.
        gone = next(iter(written))
        shutil.rmtree(home / "projects" / gone)
        await machine.done("update_project_main", project_id="after", content="There is room.")
    for project, text in written.items():
        path = f"projects/{project}/main.md"
        revision = "HEAD" if project != gone else "HEAD~1"
        assert git(home, "show", f"{revision}:{path}") == text
