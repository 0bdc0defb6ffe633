"""Line ends that git has converted are no edit, and no edit changes those of other lines."""

import os
import subprocess
import threading
from contextlib import contextmanager

import pytest
from kept import Kept, kept_in
from stores import answered, asked, done, git, notes_of, opened, pushed, serving, writer_of, wrote
from writing import put

from vector_index_mcp.notes.past.pieces import ALL
from vector_index_mcp.notes.past.restoring import Wanted, plan_of, restoring
from vector_index_mcp.notes.past.states import Past
from vector_index_mcp.notes.store.line_ends import has_only_crlf, with_crlf

pytestmark = pytest.mark.anyio

MAIN = "projects/a/main.md"
API = "projects/a/knowledge/api.md"
TASK = "projects/a/TODO/1/TASK-001-t.json"
TEXTS = {
    "index.json": '{\n  "projects": {\n    "a": "a"\n  }\n}\n',
    MAIN: "# a\n\nOne\n\n## Rules\n\nNone.\n",
    API: "---\ntitle: API\n---\n\nAbout.\n\n## Auth\n\nBasic.\n\n## Limits\n\nNo.\n",
    "projects/a/TODO/1/index.json": '{\n  "description": "d"\n}\n',
    TASK: '{\n  "title": "t",\n  "completed": false\n}\n',
}
CHAPTER = {"project_id": "a", "filename": "api.md", "chapter_title": "Auth"}


@pytest.fixture(autouse=True)
def no_settings(monkeypatch):
    """Nobody at this machine has settings of git."""
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")


def origin_of(folder, texts, attributes=""):
    """A repository as another machine has pushed it."""
    return pushed(folder / "origin", {**texts, ".gitattributes": attributes})


def clone_of(folder, origin, *options):
    store = folder / "store"
    git(folder, "clone", "--quiet", *options, f"file://{origin}", str(store))
    return store


@pytest.fixture
def windows(tmp_path):
    """A clone as Git for Windows makes it."""
    store = clone_of(tmp_path, origin_of(tmp_path, TEXTS), "-c", "core.autocrlf=true")
    assert has_only_crlf((store / MAIN).read_bytes())
    return store


@pytest.fixture
def crlf(tmp_path):
    """A clone of a store whose files have CRLF in the history, too."""
    texts = {path: with_crlf(text.encode()).decode() for path, text in TEXTS.items()}
    store = clone_of(tmp_path, origin_of(tmp_path, texts))
    assert has_only_crlf(kept_now(store, MAIN))
    return store


def kept_now(store, path):
    """What the last commit has at a path, every byte."""
    ran = subprocess.run(
        ["git", "cat-file", "blob", f"HEAD:{path}"], cwd=store, capture_output=True, check=True
    )
    return ran.stdout


@contextmanager
def held(writer):
    """The time in which the writer begins nothing new, so that requests become one batch."""
    over = threading.Event()
    writer.alone(over.wait)
    yield
    over.set()


def changed_lines(store, path, since="HEAD^{/Theirs}"):
    """How many lines the commits since then have added and removed."""
    added, removed, _ = git(store, "diff", "--numstat", since, "HEAD", "--", path).split("\t")
    return int(added), int(removed)


# -- what a person saves -----------------------------------------------------------------------


@pytest.mark.slow
def test_what_git_has_converted_is_no_edit(windows, tmp_path):
    with writer_of(tmp_path) as writer:
        opened(writer)
        assert writer.alone(writer.take_over_by_hand).result() == 0
    assert git(windows, "diff", "--stat", "origin/main", "HEAD", "--", "projects") == ""
    assert git(windows, "status", "--porcelain", "projects") == ""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b"# a\r\n\r\nTwo\r\n", b"# a\n\nTwo\n"),
        (with_crlf(TEXTS[MAIN].encode()).replace(b"\r\n", b"\n", 1), None),  # git calls it clean
        (b"# a\r\n\nTwo\r\n", b"# a\n\nTwo\n"),
        (b"# a\r\r\n\r\nOne\r\n", b"# a\r\r\n\r\nOne\r\n"),
        (b"# a\r\n\0\r\n", b"# a\r\n\0\r\n"),
        (b"", b""),
    ],
)
def test_an_edit_keeps_the_line_ends_of_the_history(windows, tmp_path, text, expected):
    with writer_of(tmp_path) as writer:
        opened(writer)
        (windows / MAIN).write_bytes(text)
        count = writer.alone(writer.take_over_by_hand).result()
        assert count == (expected is not None)
        assert writer.alone(writer.take_over_by_hand).result() == 0
    assert kept_now(windows, MAIN) == (TEXTS[MAIN].encode() if expected is None else expected)
    assert (windows / MAIN).read_bytes() == text


@pytest.mark.slow
def test_a_file_that_always_had_such_line_ends_keeps_them(tmp_path):
    with kept_in(tmp_path) as kept:
        kept.change({"projects/p/main.md": "one\r\n"})
        kept.put("projects/p/main.md", b"two\r\n")
        kept.put("projects/p/new.md", b"new\r\n")
        assert kept.by_hand.changed(kept.tree) == {
            "projects/p/main.md": b"two\r\n",
            "projects/p/new.md": b"new\r\n",
        }


ATTRIBUTES = ["", "*.md text", "*.md text=auto", "*.md -text", "*.md eol=crlf", "*.md text eol=lf"]
ENDS = {
    "crlf": "x\r\n",
    "mixed": "x\r\ny\n",
    "only ends": "one\r\ntwo\n",
    "old": "x\ry\r\n",
    "lf": "x\n",
    "binary": "x\0\r\n",
    "control characters": "\x01\x02\r\n",
    "one in 128": "x" * 128 + "\x7f\r\n",
    "one in 127": "x" * 127 + "\x7f\r\n",
    "colours": "\x1b[0m\f\b\t\r\n",
    "dos": "x\r\n\x1a",
}


@pytest.mark.slow
@pytest.mark.parametrize("attributes", ATTRIBUTES)
@pytest.mark.parametrize("setting", ["true", "input", "false"])
@pytest.mark.parametrize("has_crlf", [False, True])
def test_what_is_kept_is_what_git_would_keep(tmp_path, attributes, setting, has_crlf):
    """Edits and new files; git itself has added the same to a copy of the store."""
    old = "one\r\ntwo\r\n" if has_crlf else "one\ntwo\n"
    edited = {f"projects/a/{name}.md": text for name, text in ENDS.items()}
    origin = origin_of(tmp_path, dict.fromkeys(edited, old), "* -text\n")
    put(origin, ".gitattributes", f"{attributes}\n")
    git(origin, "commit", "--quiet", "-m", "Attributes", ".gitattributes")
    option = f"core.autocrlf={setting}"
    store = clone_of(tmp_path, origin, "-c", option)
    copy = tmp_path / "copy"
    git(tmp_path, "clone", "--quiet", "-c", option, f"file://{origin}", "copy")
    new = {f"projects/a/new-{name}.md": text for name, text in ENDS.items()}
    for path, text in {**edited, **new}.items():
        put(store, path, text)
        put(copy, path, text)
    git(copy, "add", "--all")
    git(copy, "commit", "--quiet", "-m", "By git")
    with writer_of(tmp_path) as writer:
        opened(writer)
    for path, text in {**edited, **new}.items():
        expected = kept_now(copy, path)
        if has_only_crlf(text.encode()) and not attributes and path in edited and not has_crlf:
            # also without a setting: it may be another machine's
            expected = text.replace("\r\n", "\n").encode()
        assert (path, kept_now(store, path)) == (path, expected)


# -- what an agent changes ---------------------------------------------------------------------


async def change_everything(client):
    """Every kind of change, with texts as agents write them."""
    await done(client, "update_chapter", **CHAPTER, new_content="OAuth.\n\nTwo lines.")
    rules = {"section_header": "## Rules", "new_content": "Some.\nMore.\n"}
    await done(client, "update_project_section", project_id="a", **rules)
    await done(client, "complete_todo_task", project_id="a", todo_number=1, task_number=1)
    await done(client, "update_project_main", project_id="b", content="# b\n")


CHANGED = {"index.json": (3, 2), MAIN: (2, 1), API: (4, 1), TASK: (2, 1)}
"""How many lines of each file this adds and removes."""


@pytest.mark.slow
async def test_in_a_converted_clone_only_the_changed_lines_change(windows, tmp_path):
    async with serving(notes_of(tmp_path)) as client:
        await change_everything(client)
    for path, expected in CHANGED.items():
        assert b"\r" not in kept_now(windows, path)
        assert has_only_crlf((windows / path).read_bytes())
        assert changed_lines(windows, path) == expected
    assert git(windows, "status", "--porcelain") == ""


@pytest.mark.slow
async def test_with_crlf_in_the_history_only_the_changed_lines_change(crlf, tmp_path):
    async with serving(notes_of(tmp_path)) as client:
        await change_everything(client)
    for path, expected in CHANGED.items():
        assert has_only_crlf(kept_now(crlf, path))
        assert kept_now(crlf, path) == (crlf / path).read_bytes()
        assert changed_lines(crlf, path) == expected
    assert git(crlf, "status", "--porcelain") == ""


@pytest.mark.slow
@pytest.mark.parametrize("name", ["windows", "crlf"])
async def test_a_whole_text_keeps_the_line_ends_of_its_file(request, tmp_path, name):
    store = request.getfixturevalue(name)
    text = TEXTS[MAIN].replace("None.", "Some.")
    async with serving(notes_of(tmp_path)) as client:
        said = await done(client, "update_project_main", project_id="a", content=text)
        read = await done(client, "get_project_main", project_id="a")
        assert read["revision"] == said["revision"]
        await done(client, "update_project_main", project_id="a", content="x\n", **said_of(said))
    assert changed_lines(store, MAIN, "HEAD~1") == (1, 7)
    assert git(store, "diff", "--numstat", "HEAD~2", "HEAD~1").split("\t")[:2] == ["1", "1"]


def said_of(answer):
    return {"revision": answer["revision"]}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["windows", "crlf"])
async def test_a_revision_before_is_known(request, tmp_path, name):
    request.getfixturevalue(name)
    async with serving(notes_of(tmp_path)) as client:
        old = await done(client, "get_project_main", project_id="a")
        await done(client, "update_project_main", project_id="a", content="new\n")
        said = await answered(
            client, "update_project_main", project_id="a", content="x", **said_of(old)
        )
    assert "-One" in said["context"]["changes"]


@pytest.mark.slow
def test_git_is_not_asked_where_the_history_tells_as_much(windows, tmp_path, monkeypatch):
    with writer_of(tmp_path) as writer:
        kept = Kept(tmp_path, writer)
        kept.main("a", "one\n")
        commands, run = [], writer.repository.run
        monkeypatch.setattr(
            writer.repository,
            "run",
            lambda *given, **named: commands.append(given) or run(*given, **named),
        )
        kept.main("a", "two\n")
        kept.put(MAIN, b"three\r\n")
        kept.main("a", "four\n")
        words = {word for command in commands for word in command}
        assert not words & {"check-attr", "core.autocrlf"}
        assert kept_now(windows, MAIN) == b"four\n"


@pytest.mark.slow
def test_changes_in_one_batch_keep_them_as_well(windows, tmp_path):
    with writer_of(tmp_path) as writer:
        opened(writer)
        with held(writer):
            futures = [asked(writer, {MAIN: text}) for text in ("one\n", "one\ntwo\n")]
        for future in futures:
            future.result()
    assert kept_now(windows, MAIN) == b"one\ntwo\n"
    assert git(windows, "cat-file", "blob", f"HEAD~1:{MAIN}") == "one"
    assert (windows / MAIN).read_bytes() == b"one\r\ntwo\r\n"


@pytest.mark.slow
def test_an_edit_by_hand_before_it_is_a_commit_of_its_own(windows, tmp_path):
    with writer_of(tmp_path) as writer:
        opened(writer)
        (windows / MAIN).write_bytes(b"by hand\r\nx\r\n")
        wrote(writer, {MAIN: "by hand\ny\n"})
    assert git(windows, "log", "--format=%s", "-2") == f"Changed\nEdited by hand: {MAIN}"
    assert git(windows, "cat-file", "blob", f"HEAD~1:{MAIN}") == "by hand\nx"
    assert kept_now(windows, MAIN) == b"by hand\ny\n"


@pytest.mark.slow
def test_the_lines_that_gitignore_lacks_are_added_in_its_line_ends(tmp_path):
    store = clone_of(
        tmp_path,
        origin_of(tmp_path, {**TEXTS, ".gitignore": "mine\n"}),
        "-c",
        "core.autocrlf=true",
    )
    with writer_of(tmp_path) as writer:
        opened(writer)
    assert has_only_crlf((store / ".gitignore").read_bytes())
    assert b"\r" not in kept_now(store, ".gitignore")


# -- what comes from elsewhere, and from the past ----------------------------------------------


@pytest.mark.slow
async def test_what_comes_from_a_remote_gets_the_line_ends_of_its_file(windows, tmp_path):
    origin = tmp_path / "origin"
    async with serving(notes_of(tmp_path)) as client:
        await done(client, "sync_storage")
        git(origin, "reset", "--quiet", "--hard")
        put(origin, MAIN, "theirs\n")
        git(origin, "commit", "--quiet", "-am", "Theirs again")
        await done(client, "sync_storage")
    assert (windows / MAIN).read_bytes() == b"theirs\r\n"
    assert git(windows, "status", "--porcelain") == ""


@pytest.mark.slow
def test_restoring_changes_what_differs_and_nothing_else(windows, tmp_path):
    with writer_of(tmp_path) as writer:
        kept = Kept(tmp_path, writer)
        opened(writer)
        before = kept.head
        kept.main("a", "new\n")
        past = Past(kept.store.repository, before)
        wanted = Wanted("a", ALL, before)
        found = restoring(kept.store.disk, kept.tree, kept.by_hand, past, wanted)
        assert [path for path, _ in found.fates] == ["main.md"]
        writer.ask(lambda: plan_of(found, writer, past, wanted, "then")).result()
        assert has_only_crlf((windows / MAIN).read_bytes())
        assert kept_now(windows, MAIN) == TEXTS[MAIN].encode()


@pytest.mark.slow
def test_restoring_brings_back_line_ends_as_well(crlf, tmp_path):
    with writer_of(tmp_path) as writer:
        kept = Kept(tmp_path, writer)
        opened(writer)
        before = kept.head
        kept.put(MAIN, TEXTS[MAIN])
        opened(writer)
        writer.alone(writer.take_over_by_hand).result()
        assert b"\r" not in kept_now(crlf, MAIN)
        past = Past(kept.store.repository, before)
        wanted = Wanted("a", ALL, before)
        found = restoring(kept.store.disk, kept.tree, kept.by_hand, past, wanted)
        writer.ask(lambda: plan_of(found, writer, past, wanted, "then")).result()
        assert has_only_crlf(kept_now(crlf, MAIN))
        assert not restoring(kept.store.disk, kept.tree, kept.by_hand, past, wanted).is_needed
