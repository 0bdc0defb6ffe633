"""A store from somebody else runs nothing, and leads nowhere: no setting, no hook, no link."""

import json
import os
import shutil
import subprocess
import sys

import pytest
from stores import (
    OWN,
    answered,
    done,
    files_of,
    git,
    notes_of,
    serving,
    writer_of,
    wrote,
)
from writing import put

from vector_index_mcp.notes.refusal import Refusal

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(sys.platform == "win32", reason="uses links and scripts"),
]

P = {"project_id": "p"}
MAIN = "projects/p/main.md"
HOOKS = (
    "applypatch-msg pre-applypatch post-applypatch pre-commit pre-merge-commit prepare-commit-msg "
    "commit-msg post-commit pre-rebase post-checkout post-merge pre-push pre-receive update "
    "proc-receive post-receive post-update reference-transaction push-to-checkout pre-auto-gc "
    "post-rewrite sendemail-validate fsmonitor-watchman post-index-change"
).split()
COMMANDS = "cat-file config fast-import log ls-files ls-tree merge-base rev-list update-index"
PROGRAMS = (
    "core.fsmonitor", "core.sshCommand", "core.gitProxy", "core.pager", "core.editor",
    "core.askPass", "core.alternateRefsCommand", "credential.helper", "diff.external",
    "diff.x.textconv", "diff.x.command", "merge.x.driver", "filter.x.clean", "filter.x.smudge",
    "filter.x.process", "gpg.program", "gpg.ssh.program", "gpg.x509.program",
    "gc.recentObjectsHook", "uploadpack.packObjectsHook", "sequence.editor", "pager.log",
    "interactive.diffFilter", "trailer.x.command", "remote.origin.uploadpack",
    "remote.origin.receivepack", "remote.origin.vcs",
)  # fmt: skip
SWITCHES = {
    "commit.gpgSign": "true", "log.showSignature": "true", "core.untrackedCache": "true",
    "gc.auto": "1", "maintenance.auto": "true",
    "core.autocrlf": "true", "core.commitGraph": "true", "core.logAllRefUpdates": "always",
    "core.bare": "false", "extensions.worktreeConfig": "true", "core.ignoreCase": "true",
    "core.precomposeUnicode": "true", "core.sparseCheckout": "true", "core.preloadIndex": "true",
    "user.name": "Mallory", "user.email": "mallory@example.org",
}  # fmt: skip


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with a store, and one elsewhere."""
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    with writer_of(tmp_path) as writer:
        wrote(writer, {MAIN: "one", "projects/p/knowledge/a.md": "## A\n\none\n"})
        writer.index.refresh()
    put(tmp_path, "elsewhere/a.md", "mine")
    return tmp_path


@pytest.fixture
def store(folder):
    return folder / "store"


# -- programs ----------------------------------------------------------------------------------


def script(folder, name):
    """A program that leaves a mark, by its name, when it is run."""
    program = folder / "programs" / name
    put(folder, f"programs/{name}", f'#!/bin/sh\necho "{name}" >> "{folder}/marks"\ncat\n')
    program.chmod(0o755)
    return str(program)


def marks(folder):
    """What was run."""
    path = folder / "marks"
    found = set(path.read_text(encoding="utf-8").split()) if path.exists() else set()
    path.unlink(missing_ok=True)
    return found


def setting(file, name, value):
    subprocess.run(["git", "config", "--file", file, name, value], check=True)


def arm(folder, store, attributes="filter=x diff=x merge=x"):
    """Make everything in the store run something, wherever git would look for that."""
    settings = {name: script(folder, name) for name in PROGRAMS}
    settings |= {f"alias.{name}": f"!{script(folder, name)}" for name in COMMANDS.split()}
    settings |= SWITCHES | {"core.hooksPath": str(folder / "programs")}
    settings |= {"core.attributesFile": str(folder / "attributes")}
    put(folder, "attributes", f"* {attributes}\n")
    for name in HOOKS:
        script(folder, name)
        shutil.copy(folder / "programs" / name, store / ".git/hooks" / name)
    for name, value in settings.items():
        for file in ("config", "config.worktree", "more"):
            setting(store / ".git" / file, name, value)
    setting(store / ".git/config", "include.path", "more")
    for place in (".gitattributes", ".git/info/attributes", "projects/.gitattributes"):
        put(store, place, f"* {attributes} text=auto\n")


async def everything_is_done(folder, store):
    """Every way in which the program has to do with git."""
    async with serving(notes_of(folder)) as client:
        old = (await done(client, "get_project_main", **P))["revision"]
        await done(client, "update_project_main", **P, content="two\r\n")
        given = {**P, "content": "no", "revision": old}
        assert (
            "-one" in (await answered(client, "update_project_main", **given))["context"]["changes"]
        )
        put(store, "projects/p/by-hand.md", "by hand\r\n")
        assert (await done(client, "sync_storage"))["files_committed"] == 1
        await done(client, "create_todo", **P, description="d", tasks=["t"])
        await done(client, "delete_knowledge_file", **P, filename="a.md")
        await done(client, "get_storage_status")


@pytest.mark.slow
def test_what_is_armed_goes_off_when_somebody_uses_git_there(folder, store):
    arm(folder, store)
    put(store, MAIN, "changed")
    run(store, "status")
    run(store, "add", "--all")
    disarm_filters(folder, store)  # which do not answer as they should, so that git goes no further
    run(store, "add", "--all")
    run(store, "commit", "-m", "x")
    armed = {"core.fsmonitor", "filter.x.process", "pre-commit", "commit-msg", "gpg.program"}
    assert armed <= marks(folder)


def run(store, *command):
    subprocess.run(["git", *command], cwd=store, capture_output=True, check=False)


def disarm_filters(folder, store):
    for place in (".gitattributes", ".git/info/attributes", "projects/.gitattributes"):
        (store / place).unlink()
    (folder / "attributes").unlink()


@pytest.mark.slow
async def test_no_setting_and_no_hook_of_a_store_runs_anything(folder, store):
    arm(folder, store, "diff=x merge=x")  # a filter stops more than it runs, see below
    before = (store / ".git/config").read_bytes()
    await everything_is_done(folder, store)
    assert marks(folder) == set()
    assert (store / ".git/config").read_bytes() == before
    disarmed(store)
    # `text=auto` alone has an effect: LF for CRLF, without a program.
    assert git(store, "cat-file", "-s", f"HEAD:{MAIN}") == "4"
    assert git(store, "cat-file", "-s", "HEAD:projects/p/by-hand.md") == "8"
    authors = git(store, "log", "--format=%an").splitlines()
    assert "Mallory" not in authors
    git(store, "fsck", "--strict")


@pytest.mark.slow
@pytest.mark.parametrize("is_required", ["true", "false"])
async def test_a_filter_is_not_run_either(folder, store, is_required):
    arm(folder, store)
    setting(store / ".git/config", "filter.x.required", is_required)
    before = git(store, "rev-parse", "HEAD")
    async with serving(notes_of(folder)) as client:
        put(store, "projects/p/by-hand.md", "by hand")
        said = await answered(client, "update_project_main", **P, content="two")
        assert "through a filter" in said["error"]
        await done(client, "sync_storage")
    assert marks(folder) == set()
    disarmed(store)
    assert git(store, "diff", "--name-only", before, "HEAD", "--", "projects") == ""


def disarmed(store):
    """Have git itself usable there again."""
    for name in ("config", "config.worktree", "more"):
        (store / ".git" / name).write_text("", encoding="utf-8")


@pytest.mark.slow
@pytest.mark.parametrize("how", ["config", "commondir", "gitfile in objects", "environment"])
async def test_another_folder_is_not_taken_for_the_stores(folder, store, monkeypatch, how):
    other = folder / "elsewhere"
    git(other, "init", "--quiet")
    git(other, "add", "--all")
    git(other, "commit", "--quiet", "-m", "theirs")
    before = git(other, "log", "--format=%H"), git(other, "ls-files", "--stage")
    if how == "config":
        setting(store / ".git/config", "core.worktree", str(other))
    elif how == "commondir":
        put(store, ".git/commondir", str(other / ".git"))
    elif how == "gitfile in objects":
        put(store, ".git/objects/info/alternates", f"{other}/.git/objects\n")
    else:
        for name in ("GIT_DIR", "GIT_INDEX_FILE", "GIT_WORK_TREE", "GIT_OBJECT_DIRECTORY"):
            place = {"GIT_INDEX_FILE": "/index", "GIT_OBJECT_DIRECTORY": "/objects"}
            is_tree = name == "GIT_WORK_TREE"
            monkeypatch.setenv(name, f"{other}{'' if is_tree else '/.git'}{place.get(name, '')}")
    await everything_is_done(folder, store)
    assert (git(other, "log", "--format=%H"), git(other, "ls-files", "--stage")) == before
    assert {path for path in files_of(other) if not path.startswith(".git")} == {"a.md"}


# -- links in the files ------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    "path",
    ["projects", "projects/p", "projects/p/knowledge", "projects/p/TODO", MAIN, "index.json"],
)
async def test_a_link_among_the_files_is_not_followed(folder, store, path):
    elsewhere = folder / "elsewhere"
    for name in ("main.md", "knowledge/a.md", "p/main.md", "p/knowledge/a.md", "1/index.json"):
        put(elsewhere, name, "mine")
    put(elsewhere, "TASK-001-mine.json", "{}")
    before = files_of(elsewhere)
    place = store / path
    if place.exists():
        (shutil.rmtree if place.is_dir() else os.unlink)(place)
    place.parent.mkdir(parents=True, exist_ok=True)
    is_file = path.endswith((".md", ".json"))
    place.symlink_to(elsewhere / "a.md" if is_file else elsewhere)
    async with serving(notes_of(folder)) as client:
        calls = [
            ("get_project_main", {}),
            ("update_project_main", {"content": "x"}),
            ("add_project_section", {"section_header": "## S", "content": "x"}),
            ("get_knowledge_file", {"filename": "a.md"}),
            ("update_chapter", {"filename": "a.md", "chapter_title": "A", "new_content": "x"}),
            ("create_knowledge_file", {
                "filename": "new", "title": "t", "introduction": "i", "keywords": ["k"],
                "chapters": [],
            }),
            ("search_knowledge", {"query": "mine", "all_projects": True}),
            ("create_todo", {"description": "x"}),
            ("add_todo_task", {"todo_number": 1, "title": "x"}),
            ("list_todos", {}),
            ("delete_knowledge_file", {"filename": "a.md"}),
            ("delete_todo", {"todo_number": 1}),
            ("sync_storage", {}),
            ("delete_project", {}),
        ]  # fmt: skip
        said = [await answered(client, tool, **P | arguments) for tool, arguments in calls]
    assert "mine" not in json.dumps([answer for answer in said if answer["success"]])
    assert files_of(elsewhere) == before
    assert "mine" not in git(store, "log", "-p", "--all")
    git(store, "fsck", "--strict")


# -- links in what is git's --------------------------------------------------------------------


def linked(store, path, elsewhere, *, moved=True):
    """Replace something in the store by a link to a folder or file elsewhere."""
    place = store / ".git" / path
    target = elsewhere / "target"
    if moved and place.exists():
        shutil.move(place, target)
    elif place.is_dir():
        shutil.rmtree(place)
        target.mkdir()
    else:
        place.unlink(missing_ok=True)
    place.symlink_to(target)


def index_of_another(store, elsewhere):
    git(elsewhere, "init", "--quiet")
    git(elsewhere, "add", "--all")
    (store / ".git/index").unlink()
    (store / ".git/index").symlink_to(elsewhere / ".git/index")


def objects_elsewhere(store, elsewhere):
    for number in range(256):
        place = store / ".git/objects" / f"{number:02x}"
        if place.exists():
            shutil.move(place, elsewhere / place.name)
        else:
            (elsewhere / place.name).mkdir()
        place.symlink_to(elsewhere / place.name)


def part(path, *, moved=True):
    def link(store, elsewhere):
        linked(store, path, elsewhere, moved=moved)

    return link


LINKS = {
    "HEAD": part("HEAD"),
    "objects": part("objects"),
    "refs": part("refs"),
    "heads": part("refs/heads"),
    "branch": part("refs/heads/main"),
    "branch that is not there": part("refs/heads/main", moved=False),
    "own": part("vector-index-mcp", moved=False),
    "lock": part("vector-index-mcp/lock", moved=False),
    "heads that are not there": part("refs/heads", moved=False),
    "index that is not there": part("index", moved=False),
    "index of another": index_of_another,
    "objects one by one": objects_elsewhere,
}


@pytest.mark.slow
@pytest.mark.parametrize("what", LINKS)
async def test_a_link_in_the_repository_is_not_written_through(folder, store, what):
    elsewhere = folder / "elsewhere"
    LINKS[what](store, elsewhere)
    before = everything(elsewhere)
    text = (store / MAIN).read_text(encoding="utf-8")
    with writer_of(folder) as writer:
        try:
            wrote(writer, {MAIN: "two"})
            text = "two"
            writer.index.refresh()
        except Refusal:
            pass
    assert everything(elsewhere) == before
    assert (store / MAIN).read_text(encoding="utf-8") == text


def everything(folder):
    return {str(p): p.read_bytes() if p.is_file() else "" for p in sorted(folder.rglob("*"))}


@pytest.mark.slow
async def test_a_lock_of_ours_is_no_way_to_empty_a_file(folder, store):
    (store / OWN / "lock").unlink()
    (store / OWN / "lock").symlink_to(folder / "elsewhere/a.md")
    with writer_of(folder) as writer, pytest.raises(Refusal):
        wrote(writer, {MAIN: "two"})
    assert (folder / "elsewhere/a.md").read_text(encoding="utf-8") == "mine"
    assert (store / MAIN).read_text(encoding="utf-8") == "one"
