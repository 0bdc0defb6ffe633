"""A conflict that somebody is resolving with git is theirs, also if no merge is under way."""

import subprocess

import pytest
from stores import answered, done, git, log, notes_of, opened, serving, writer_of

from vector_index_mcp.notes.refusal import Code

pytestmark = pytest.mark.anyio

MAIN = "projects/p/main.md"


def fails(store, *words):
    """Run a git command that leaves a conflict."""
    command = ["git", "-c", "user.name=a", "-c", "user.email=a@b", *words]
    assert subprocess.run(command, cwd=store, capture_output=True, check=False).returncode == 1


def with_two_sides(store):
    """A store whose branch `other` changes what the current one does."""
    for folder in ("p", "q"):
        (store / "projects" / folder).mkdir(parents=True)
        (store / "projects" / folder / "main.md").write_text("base\n")
    git(store, "init", "-q", "-b", "main")
    git(store, "add", "-A")
    git(store, "commit", "-qm", "base")
    git(store, "checkout", "-qb", "other")
    (store / MAIN).write_text("theirs\n")
    git(store, "commit", "-qam", "theirs")
    git(store, "checkout", "-q", "main")


def squashed(store):
    (store / MAIN).write_text("ours\n")
    git(store, "commit", "-qam", "ours")
    fails(store, "merge", "--squash", "other")


def unstashed(store):
    (store / MAIN).write_text("stashed\n")
    git(store, "stash", "--quiet")
    (store / MAIN).write_text("ours\n")
    git(store, "commit", "-qam", "ours")
    fails(store, "stash", "pop")


def picked(store):
    (store / MAIN).write_text("ours\n")
    git(store, "commit", "-qam", "ours")
    fails(store, "cherry-pick", "--no-commit", "other")


@pytest.mark.slow
@pytest.mark.parametrize("leave_conflict", [squashed, unstashed, picked])
async def test_no_file_is_committed_with_the_markers_of_a_conflict(store, tmp_path, leave_conflict):
    store.mkdir(exist_ok=True)
    with_two_sides(store)
    leave_conflict(store)
    head, text = git(store, "rev-parse", "HEAD"), (store / MAIN).read_text()
    assert "<<<<<<<" in text
    async with serving(notes_of(tmp_path)) as client:
        await done(client, "update_project_main", project_id="q", content="of another project\n")
        refused = await answered(client, "update_project_main", project_id="p", content="x")
        assert refused["code"] == Code.GIT_ERROR
        assert f"`git add {MAIN}`" in refused["error"]
        details = (await done(client, "get_storage_status"))["status_details"]
        assert f"{MAIN} has a conflict" in details
        assert (store / MAIN).read_text() == text
        assert len(git(store, "ls-files", "-u").splitlines()) == 3  # as git has left it
        assert git(store, "show", f"HEAD:{MAIN}") == git(store, "show", f"{head}:{MAIN}")
        (store / MAIN).write_text("resolved\n")
        git(store, "add", MAIN)
        answer = await done(client, "get_project_main", project_id="p")
        assert answer["content"] == "resolved\n"
        await done(client, "update_project_main", project_id="p", content="by an agent\n")
    assert git(store, "show", f"HEAD~1:{MAIN}") == "resolved"


@pytest.mark.slow
def test_a_resolved_conflict_is_an_edit_by_hand(store, tmp_path):
    store.mkdir(exist_ok=True)
    with_two_sides(store)
    squashed(store)
    with writer_of(tmp_path) as writer:
        opened(writer)
        assert writer.alone(writer.take_over_by_hand).result() == 0
        (store / MAIN).write_text("resolved\n")
        assert writer.alone(writer.take_over_by_hand).result() == 0
        git(store, "add", MAIN)
        assert writer.alone(writer.take_over_by_hand).result() == 1
    assert log(store)[0][1].startswith(f"Edited by hand: {MAIN}")
