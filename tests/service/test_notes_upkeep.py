"""A store that is written for years stays quick, and nothing of it is ever thrown away."""

import pytest
from machines import git, running
from waiting import eventually

from vector_index_mcp.notes.store import upkeep

pytestmark = pytest.mark.anyio


@pytest.mark.long
async def test_many_commits_are_packed_and_what_nothing_leads_to_stays(tmp_path, monkeypatch):
    monkeypatch.setattr(upkeep, "_MOST_IN_A_FOLDER", 1)
    home = tmp_path / "store"
    async with running(home) as machine:
        await machine.done("update_project_main", project_id="app", content="first\n")
        (tmp_path / "lost").write_text("nothing leads to this")
        lost = machine.git("hash-object", "-w", str(tmp_path / "lost"))
        for number in range(200):
            await machine.done("update_project_main", project_id="app", content=f"{number}\n")
        await eventually(lambda: "packs: 0" not in machine.git("count-objects", "-v").splitlines())
    git(home, "fsck", "--strict")
    assert git(home, "rev-list", "--count", "HEAD") == "202"
    assert git(home, "cat-file", "blob", lost) == "nothing leads to this"
