"""A repository is pulled as far as nothing of the user's is touched; an update counts changes."""

import os
import shutil
import subprocess
from pathlib import Path

import anyio
import psutil
import pytest
from processes import is_gone
from waiting import PATIENCE_SECONDS, eventually

from vector_index_mcp.documents import pulling
from vector_index_mcp.documents.configuration import Collection
from vector_index_mcp.documents.pulling import pull
from vector_index_mcp.documents.updating import seen, update_of
from vector_index_mcp.engine.types import FileRecord
from vector_index_mcp.indexing.ledger import Ledger
from vector_index_mcp.indexing.reasons import INDEXED, SKIPPED
from vector_index_mcp.processes import git as environments

pytestmark = pytest.mark.anyio


def git(folder, *arguments):
    command = ["git", "-c", "user.name=a", "-c", "user.email=a@example.org", *arguments]
    done = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def commit(folder, name, text):
    (folder / name).write_text(text)
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", name)


@pytest.fixture
def repositories(tmp_path, monkeypatch):
    """A repository that somebody works in, and a clone of it; both know a bare one."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("LC_ALL", "C")
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    for name in [name for name in os.environ if name in environments._OF_A_REPOSITORY]:
        monkeypatch.delenv(name)
    (tmp_path / "home").mkdir()
    git(tmp_path, "init", "-q", "--bare", "-b", "main", "origin")
    git(tmp_path, "clone", "-q", "origin", "theirs")
    theirs, ours = tmp_path / "theirs", tmp_path / "ours"
    git(theirs, "checkout", "-q", "-B", "main")
    commit(theirs, "a.md", "one")
    git(theirs, "push", "-q", "origin", "main")
    git(tmp_path, "clone", "-q", "origin", "ours")
    commit(theirs, "a.md", "two")
    (theirs / "docs").mkdir()
    commit(theirs, "docs/b.md", "new")
    git(theirs, "push", "-q", "origin", "main")
    return theirs, ours


@pytest.mark.slow
async def test_what_others_pushed_is_there_afterwards(repositories):
    _, ours = repositories
    said = await pull(ours)
    assert "Fast-forward" in said
    assert (ours / "a.md").read_text() == "two"
    assert "up to date" in await pull(ours)


@pytest.mark.slow
async def test_a_folder_in_a_repository_is_of_that_repository(repositories):
    _, ours = repositories
    (ours / "docs").mkdir()
    assert "Fast-forward" in await pull(ours / "docs")


async def test_a_folder_in_no_repository_is_left_alone(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))  # git is not even looked for
    assert await pull(tmp_path) == ""
    assert await pull(tmp_path / "missing") == ""


@pytest.mark.slow
async def test_no_git_is_told(repositories, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "git is not installed" in await pull(repositories[1])


@pytest.mark.slow
async def test_changes_that_are_not_committed_stay(repositories):
    _, ours = repositories
    git(ours, "config", "merge.autoStash", "true")
    git(ours, "config", "rebase.autoStash", "true")
    (ours / "a.md").write_text("mine")
    assert "a.md" in await pull(ours)
    assert (ours / "a.md").read_text() == "mine"
    assert git(ours, "stash", "list") == ""


@pytest.mark.slow
@pytest.mark.parametrize("setting", ["pull.rebase", "branch.main.rebase", "pull.ff"])
async def test_commits_of_ones_own_stay_what_they_are(repositories, setting):
    _, ours = repositories
    git(ours, "config", setting, "false" if setting == "pull.ff" else "true")
    commit(ours, "c.md", "mine")
    before = git(ours, "rev-parse", "HEAD")
    assert await pull(ours)
    assert git(ours, "rev-parse", "HEAD") == before
    assert (ours / "a.md").read_text() == "one"


@pytest.mark.slow
async def test_no_hook_runs(repositories, tmp_path):
    _, ours = repositories
    canary, hook = tmp_path / "canary", f"#!/bin/sh\necho $0 >> {tmp_path / 'canary'}\n"
    other = tmp_path / "hooks"
    for folder in (ours / ".git" / "hooks", other):
        folder.mkdir(exist_ok=True)
        for name in ("post-merge", "reference-transaction", "post-checkout", "fsmonitor"):
            (folder / name).write_text(hook)
            (folder / name).chmod(0o755)
    git(ours, "config", "core.hooksPath", str(other))
    git(ours, "config", "core.fsmonitor", str(other / "fsmonitor"))
    canary.unlink(missing_ok=True)
    assert "Fast-forward" in await pull(ours)
    assert not canary.exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("remote.origin.uploadpack", "touch {canary}; git-upload-pack"),
        ("core.sshCommand", "touch {canary}; ssh"),
        ("credential.helper", "!touch {canary}"),
        ("credential.https://example.org.helper", "!touch {canary}"),
        ("filter.a b.smudge", "touch {canary}; cat"),
        ("protocol.ext.allow", "always"),
        ("core.alternateRefsCommand", "touch {canary}"),
        ("hook.mine.command", "touch {canary}"),
        ("lfs.customtransfer.x.path", "{canary}"),
        ("submodule.x.update", "!touch {canary}"),
        ("http.cookieFile", "{canary}"),
        ("http.https://example.org.saveCookies", "true"),
        ("http.proxy", "example.org"),
        ("remote.origin.proxy", "example.org"),
        ("extensions.refStorage", "files://{canary}"),
        ("unknown.setting", "{canary}"),
        ("remote.origin.fetch", "+refs/heads/*:refs/heads/*"),
        ("remote.origin.mirror", "true"),
        ("include.path", "{more}"),
    ],
)
async def test_no_program_runs_that_the_repository_names(repositories, tmp_path, setting, value):
    _, ours = repositories
    canary, more = tmp_path / "canary", tmp_path / "more"
    more.write_text(f'[remote "origin"]\n\tuploadpack = touch {canary}; git-upload-pack\n')
    before = git(ours, "rev-parse", "HEAD")
    git(ours, "config", setting, value.format(canary=canary, more=more))
    said = await pull(ours)
    assert said.startswith("git pull was not run: settings of the repository may run programs")
    assert git(ours, "rev-parse", "HEAD") == before
    assert not canary.exists()


@pytest.mark.slow
async def test_a_folder_of_files_that_looks_like_a_repository_is_none(repositories, tmp_path):
    theirs, ours = repositories
    canary = tmp_path / "canary"
    files = {
        "HEAD": "ref: refs/heads/main\n",
        "objects/keep": "",
        "refs/heads/keep": "",
        "config": (
            f"[core]\n\tbare = false\n\tworktree = .\n\tsshCommand = touch {canary};false\n"
            '[remote "origin"]\n\turl = ssh://nowhere/x\n[branch "main"]\n\tremote = origin\n'
        ),
    }
    for name, text in files.items():
        path = theirs / "docs" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    git(theirs, "add", "-f", "docs")
    git(theirs, "commit", "-qm", "docs")
    git(theirs, "push", "-q", "origin", "main")
    git(ours, "pull", "-q")
    assert "up to date" in await pull(ours / "docs")
    assert not canary.exists()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["FETCH_HEAD", "logs", "refs/remotes", "objects/ab"])
async def test_nothing_is_written_through_a_link_of_the_repository(repositories, tmp_path, name):
    _, ours = repositories
    mine = tmp_path / "mine"
    place = ours / ".git" / name
    if name == "FETCH_HEAD":
        mine.write_text("precious")
    else:
        mine.mkdir()
    if place.is_dir():
        shutil.rmtree(place)
    place.symlink_to(mine)
    assert f"{name} is a link" in await pull(ours)
    assert (mine.read_text() == "precious") if mine.is_file() else not [*mine.iterdir()]


@pytest.mark.slow
async def test_a_repository_of_another_folder_is_not_pulled(repositories, tmp_path):
    _, ours = repositories
    before = git(ours, "rev-parse", "HEAD")
    collection = tmp_path / "collection"
    collection.mkdir()
    (collection / ".git").write_text(f"gitdir: {ours / '.git'}\n")
    assert "which does not name it" in await pull(collection)
    assert git(ours, "rev-parse", "HEAD") == before


@pytest.mark.slow
async def test_worktrees_and_submodules_are_pulled(repositories, tmp_path):
    theirs, ours = repositories
    git(ours, "worktree", "add", "-q", "-b", "other", str(tmp_path / "tree"), "origin/main")
    git(tmp_path / "tree", "branch", "-q", "--set-upstream-to", "origin/main")
    outer = tmp_path / "outer"
    git(tmp_path, "init", "-q", str(outer))
    allowed = ("-c", "protocol.file.allow=always")
    git(outer, *allowed, "submodule", "add", "-q", f"file://{tmp_path / 'origin'}", "inner")
    commit(theirs, "a.md", "three")
    git(theirs, "push", "-q", "origin", "main")
    for folder in (tmp_path / "tree", outer / "inner"):
        said = await pull(folder)
        assert "Fast-forward" in said, said


@pytest.mark.slow
async def test_settings_that_stop_a_pull_are_named_and_not_all_of_them(repositories):
    _, ours = repositories
    for number in range(9):
        git(ours, "config", f"unknown.k{number}", "value")
    said = await pull(ours)
    assert "(unknown.k0, unknown.k1, unknown.k2, unknown.k3, unknown.k4, …)" in said
    assert "git config --unset" in said


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [
        [],
        ["--depth=1"],
        ["--filter=blob:none"],
        ["--sparse"],
        ["--filter=tree:0", "--sparse", "--recurse-submodules"],
        ["--origin=up.stream", "--single-branch", "--no-tags"],
    ],
)
async def test_what_git_clone_makes_is_pulled(repositories, tmp_path, options):
    theirs, _ = repositories
    git(tmp_path / "origin", "config", "uploadpack.allowFilter", "true")
    git(tmp_path, "clone", "-q", *options, f"file://{tmp_path / 'origin'}", "fresh")
    commit(theirs, "a.md", "three")
    git(theirs, "push", "-q", "origin", "main")
    said = await pull(tmp_path / "fresh")
    assert "Fast-forward" in said, said
    assert (tmp_path / "fresh" / "a.md").read_text() == "three"


@pytest.mark.slow
async def test_what_clients_of_git_write_into_a_repository_stops_no_pull(repositories):
    _, ours = repositories
    for name, value in {
        "branch.main.vscode-merge-base": "origin/main",
        "branch.main.github-pr-owner-number": "a#b#1",
        "remote.origin.gh-resolved": "base",
        "lfs.repositoryformatversion": "0",
        "lfs.https://example.org/a.git/info/lfs.access": "basic",
        "gui.geometry": "887x427+182+67 171 192",
        "submodule.themes/a.url": "https://example.org/a.git",
        "submodule.themes/a.update": "none",
        "submodule.active": ".",
        "http.https://github.com/.extraheader": "Authorization: Basic x",
        "core.excludesFile": "~/.ignore",
        "core.editor": "vim",
        "user.email": "a@example.org",
        "alias.st": "status",
    }.items():
        git(ours, "config", name, value)
    shutil.rmtree(ours / ".git/hooks", ignore_errors=True)
    (ours / ".git/hooks").symlink_to(ours.parent)
    assert "Fast-forward" in await pull(ours)


@pytest.mark.slow
async def test_a_program_that_the_user_names_runs(repositories, tmp_path):
    git(tmp_path, "config", "--global", "core.sshCommand", "ssh -o BatchMode=yes")
    git(tmp_path, "config", "--global", "credential.helper", "cache")
    assert "Fast-forward" in await pull(repositories[1])


@pytest.mark.slow
async def test_files_are_written_nowhere_else(repositories, tmp_path):
    _, ours = repositories
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    git(ours, "config", "core.worktree", str(elsewhere))
    assert f"writes its files to {elsewhere}" in await pull(ours)
    assert not [*elsewhere.iterdir()]


@pytest.mark.slow
async def test_another_repository_that_a_hook_names_is_not_meant(repositories, monkeypatch):
    theirs, ours = repositories
    monkeypatch.setenv("GIT_DIR", str(theirs / ".git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(theirs))
    assert "Fast-forward" in await pull(ours)
    assert (ours / "a.md").read_text() == "two"


async def test_what_is_no_real_repository_is_told(tmp_path):
    (tmp_path / ".git").mkdir()
    assert "not a git repository" in await pull(tmp_path)


@pytest.mark.slow
async def test_an_origin_that_is_gone_is_told(repositories, tmp_path):
    (tmp_path / "origin").rename(tmp_path / "elsewhere")
    said = await pull(repositories[1])
    assert said and "Fast-forward" not in said


def _git_that(folder, does):
    """A folder of programs in which git `does` something."""
    folder.mkdir()
    (folder / "git").write_text(f"#!/bin/sh\n{does}\n")
    (folder / "git").chmod(0o755)
    return f"{folder}{os.pathsep}{os.environ['PATH']}"


@pytest.mark.slow
async def test_an_answer_that_is_no_text_and_too_long_is_cut(repositories, monkeypatch, tmp_path):
    does = "printf '\\377\\n'; head -c 100000 /dev/zero | tr '\\0' x; exit 1"
    monkeypatch.setenv("PATH", _git_that(tmp_path / "bin", does))
    said = await pull(repositories[1])
    assert said.startswith("\ufffd\nx") and len(said) == 2_000


@pytest.mark.slow
async def test_git_that_does_not_end_is_ended(repositories, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", _git_that(tmp_path / "bin", "exec sleep 60"))
    monkeypatch.setattr(pulling, "_PULL_SECONDS", 0.1)
    with anyio.fail_after(PATIENCE_SECONDS):
        assert "was stopped after" in await pull(repositories[1])


@pytest.mark.slow
async def test_a_cancelled_pull_leaves_no_process(repositories, monkeypatch, tmp_path):
    numbers = tmp_path / "numbers"
    does = f"sleep 60 & echo $$ $! > {numbers}.new; mv {numbers}.new {numbers}; exec sleep 60"
    monkeypatch.setenv("PATH", _git_that(tmp_path / "bin", does))
    with anyio.fail_after(PATIENCE_SECONDS):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(pull, repositories[1])
            await eventually(numbers.exists)
            git, started_by_git = (psutil.Process(int(n)) for n in numbers.read_text().split())
            tasks.cancel_scope.cancel()
    assert not git.is_running()
    await eventually(lambda: is_gone(started_by_git))


@pytest.mark.slow
async def test_a_pull_cancelled_at_its_start_leaves_no_process(repositories, monkeypatch):
    made, open_process = [], anyio.open_process

    async def cancelled(*arguments, **options):
        tasks.cancel_scope.cancel()
        made.append(await open_process(*arguments, **options))
        return made[-1]

    monkeypatch.setattr(anyio, "open_process", cancelled)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(pull, repositories[1])
    assert made[0].returncode is not None


@pytest.mark.slow
async def test_git_has_no_terminal_to_ask_at(repositories, monkeypatch, tmp_path):
    does = 'echo "prompt=$GIT_TERMINAL_PROMPT"; cat; ps -o sid= -p $$; echo $$'
    monkeypatch.setenv("PATH", _git_that(tmp_path / "bin", does))
    said = (await pull(repositories[1])).split()
    assert said[0] == "prompt=0"
    assert said[1] == said[2]  # it leads a session of its own


def ledger_of(contents, state=INDEXED):
    ledger = Ledger()
    for key, content in contents.items():
        ledger.put(FileRecord(key, (1, 2, 3), content, 1, state, ""), 0)
    return ledger


async def test_an_update_counts_what_came_changed_stayed_and_went():
    before = seen(ledger_of({"a/1": "x", "a/2": "x", "a/3": "x", "a/4": "x", "b/1": "x"}), "a")
    now = ledger_of({"a/1": "x", "a/2": "x", "a/3": "y", "a/5": "x", "b/2": "x"})
    found = update_of(Collection("a", Path("/a")), before, now, "said")
    assert (found.new, found.updated, found.unchanged, found.removed) == (1, 1, 2, 1)
    assert found.pulled == "said"


async def test_what_is_skipped_is_no_document():
    assert seen(ledger_of({"a/1": "x"}, SKIPPED), "a") == {}
