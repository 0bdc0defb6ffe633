"""A store that comes from somebody else: nothing is written outside of it."""

import shutil
import stat

import pytest
from machines import git, running

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(
    "place", ["refs/heads", "refs/heads/main", "refs/remotes", "objects/pack", "objects/00"]
)
async def test_git_writes_through_no_link_of_a_repository(tmp_path, place):
    home, outside = tmp_path / "store", tmp_path / "outside"
    home.mkdir()
    outside.mkdir()
    git(home, "init", "--quiet", "--initial-branch=main")
    link = home / ".git" / place
    if link.is_dir():
        shutil.rmtree(link)
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(outside if place != "refs/heads/main" else outside / "main")
    async with running(home) as machine:
        answer = await machine.call("update_project_main", project_id="app", content="x")
        assert answer["code"] == "GIT_ERROR"
        assert "is a link" in answer["error"]
        assert [*outside.iterdir()] == []
        assert not (home / "projects").exists()


@pytest.mark.parametrize("place", ["projects", "projects/app", "projects/app/knowledge"])
async def test_no_note_is_written_through_a_link(tmp_path, place):
    home, outside = tmp_path / "store", tmp_path / "outside"
    outside.mkdir()
    link = home / place
    link.parent.mkdir(parents=True)
    link.symlink_to(outside)
    (home / "index.json").write_text('{"projects": {"app": "app"}}')
    async with running(home) as machine:
        await machine.call(
            "create_knowledge_file",
            project_id="app",
            filename="x",
            title="x",
            introduction="x",
            keywords=["x"],
            chapters=[],
        )
        assert [*outside.iterdir()] == []


@pytest.mark.parametrize("is_there", [False, True])
async def test_other_users_cannot_read_a_store_that_was_made_here(tmp_path, is_there):
    home = tmp_path / "store"
    if is_there:  # its owner has decided
        home.mkdir(mode=0o755)
    async with running(home) as machine:
        await machine.call("update_project_main", project_id="app", content="x")
    assert stat.S_IMODE(home.stat().st_mode) == (0o755 if is_there else 0o700)
