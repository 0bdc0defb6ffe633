"""Rules that change outside of the project, or without a file of it: each is followed at once."""

import os
import subprocess
from pathlib import Path

import anyio
import pytest
from fakes import FakeEmbedder
from serving import codebase_of, serving, settled
from waiting import eventually
from writing import write

from vector_index_mcp.indexing.reasons import INDEXED

pytestmark = pytest.mark.anyio


def git(root, *arguments):
    command = ["git", "-c", "user.name=a", "-c", "user.email=a@example.org", *arguments]
    subprocess.run(command, cwd=root, check=True, capture_output=True)


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A user without settings."""
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / "config"))
    monkeypatch.delenv("GIT_CONFIG_GLOBAL", raising=False)
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    return home


@pytest.fixture
def project(tmp_path, home):
    root = tmp_path / "project"
    root.mkdir()
    git(root, "init", "-q")
    write(root, {"one.py": "apple = 1\n", "two.md": "banana\n", "lib/three.py": "cherry = 1\n"})
    return root


@pytest.fixture
async def seen(project):
    """Waits until the index knows exactly the files whose names it is called with."""
    embedder = FakeEmbedder()
    embedder.absent = "no model here"
    codebase = codebase_of(project, embedder)

    async def seen(*names):
        async def are_those():
            records = codebase.index.ledger.with_state(INDEXED)
            return {Path(record.key).name for record in records} == set(names)

        await eventually(are_those)

    async with serving(codebase) as client:
        await settled(client, with_vectors=False)
        await seen("one.py", "two.md", "three.py")
        yield seen


async def test_the_repository_s_own_excludes(project, seen):
    write(project, {".git/info/exclude": "lib/\n"})
    await seen("one.py", "two.md")
    (project / ".git/info/exclude").unlink()
    await seen("one.py", "two.md", "three.py")


async def test_the_user_s_excludes(home, seen):
    write(home, {"config/git/ignore": "*.md\n"})
    await seen("one.py", "three.py")
    write(home, {"config/git/ignore": "one.py\n"})
    await seen("two.md", "three.py")


async def test_excludes_that_are_a_link_to_where_they_are_kept(home, seen):
    write(home, {"kept/ignore": "*.md\n"})
    (home / "config/git").mkdir(parents=True)
    (home / "config/git/ignore").symlink_to(home / "kept/ignore")
    await seen("one.py", "three.py")
    write(home, {"kept/ignore": "one.py\n"})
    await seen("two.md", "three.py")


@pytest.mark.parametrize("where", ["--local", "--global"])
async def test_another_file_of_excludes(project, home, seen, where):
    write(home, {"mine": "*.md\n"})
    await anyio.to_thread.run_sync(
        git, project, "config", where, "core.excludesFile", str(home / "mine")
    )
    await seen("one.py", "three.py")
    write(home, {"mine": "one.py\n"})
    await seen("two.md", "three.py")
    await anyio.to_thread.run_sync(git, project, "config", where, "--unset", "core.excludesFile")
    await seen("one.py", "two.md", "three.py")


async def test_settings_that_change_while_size_and_time_stay(project, home, seen):
    write(home, {"some": "*.md\n", "more": "one.py\n"})
    config = project / ".git/config"
    await anyio.to_thread.run_sync(git, project, "config", "core.excludesFile", str(home / "some"))
    await seen("one.py", "three.py")
    before, text = config.stat(), config.read_text("utf-8")
    with config.open("r+", encoding="utf-8") as file:
        file.write(text.replace(str(home / "some"), str(home / "more")))
    os.utime(config, ns=(before.st_atime_ns, before.st_mtime_ns))
    await seen("two.md", "three.py")


async def test_what_is_added_in_spite_of_the_rules(project, seen):
    write(project, {".gitignore": "lib/\n"})
    await seen("one.py", "two.md", ".gitignore")
    write(project, {"one.py": "apple = 2\n", "four.py": ""})  # something else, in between
    await seen("one.py", "two.md", ".gitignore", "four.py")
    await anyio.to_thread.run_sync(git, project, "add", "-f", "lib/three.py")
    await seen("one.py", "two.md", ".gitignore", "four.py", "three.py")
    await anyio.to_thread.run_sync(git, project, "rm", "-q", "--cached", "lib/three.py")
    await seen("one.py", "two.md", ".gitignore", "four.py")


async def test_a_repository_in_the_project_that_comes_and_goes(project, seen):
    write(project, {".gitignore": "*.md\n", "lib/two.md": "banana\n"})
    await seen("one.py", "three.py", ".gitignore")
    await anyio.to_thread.run_sync(git, project / "lib", "init", "-q")
    await seen("one.py", "three.py", ".gitignore", "two.md")  # its own rules, which are none
    write(project, {"lib/.git/info/exclude": "three.py\n"})
    await seen("one.py", ".gitignore", "two.md")
    await anyio.to_thread.run_sync(git, project / "lib", "add", "-f", "three.py")
    await seen("one.py", ".gitignore", "two.md", "three.py")
    (project / "lib/.git").rename(project.parent / "elsewhere")
    await seen("one.py", "three.py", ".gitignore")


async def test_a_worktree_has_its_rules_where_its_repository_is(project, home):
    git(project, "add", "-A")
    git(project, "commit", "-qm", "first")
    tree = project.parent / "tree"
    git(project, "worktree", "add", "-q", str(tree))
    embedder = FakeEmbedder()
    embedder.absent = "no model here"
    codebase = codebase_of(tree, embedder, uri=str(project.parent / "index"))

    async def knows(*names):
        async def are_those():
            return set(codebase.index.ledger.stamps()) == set(names)

        await eventually(are_those)

    async with serving(codebase) as client:
        await settled(client, with_vectors=False)
        write(tree, {"four.log.py": "damson = 1\n"})
        await knows("one.py", "two.md", "lib/three.py", "four.log.py")
        write(project, {".git/info/exclude": "*.log.py\n"})
        await knows("one.py", "two.md", "lib/three.py")
        await anyio.to_thread.run_sync(git, tree, "add", "-f", "four.log.py")
        await knows("one.py", "two.md", "lib/three.py", "four.log.py")
