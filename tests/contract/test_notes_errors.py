"""Every error code of the contract, provoked for real; and an error means that nothing changed.

SEARCH_ERROR is that of an index, which is not served here: see
`e2e/test_notes_by_meaning_for_real.py`.
"""

import json
import re
import shutil
import subprocess
from pathlib import Path
from random import Random
from string import ascii_letters as LETTERS

import pytest
from stores import answered, done, git, log, notes_of, serving, state_of
from waiting import eventually

from vector_index_mcp.notes.refusal import Code
from vector_index_mcp.notes.texts.reading import Shelf

pytestmark = pytest.mark.anyio

P = {"project_id": "My Project"}
F = {**P, "filename": "api.md"}
CHAPTER = {**F, "chapter_title": "New", "content": "c"}
SECTION = {**P, "section_header": "## New", "content": "c"}
TODO = {**P, "todo_number": 1}
FILE = {**P, "title": "t", "introduction": "i", "keywords": ["k"], "chapters": []}
CHANGED = {**F, "chapter_title": "A", "new_content": "other"}
MAIN = {**P, "content": "other"}
FOLDER = "projects/my-project"
BRANCH = ".git/refs/heads/main"

WISHES = [
    ("INVALID_INPUT", "add_chapter", {**CHAPTER, "position": "after"}),
    ("INVALID_INPUT", "add_chapter", {**CHAPTER, "chapter_title": "two\nlines"}),
    ("INVALID_INPUT", "add_project_section", {**SECTION, "position": "before"}),
    ("INVALID_INPUT", "get_chapter", F),
    ("INVALID_INPUT", "get_chapter", {**F, "chapter_index": 2}),
    ("NOT_FOUND", "update_chapter", {**CHANGED, "revision": "abcdef"}),
    ("NOT_FOUND", "update_project_main", {**MAIN, "revision": "abcdef"}),
    ("NOT_FOUND", "delete_knowledge_file", {**F, "revision": "abcdef"}),
    ("INVALID_FILENAME", "get_knowledge_file", {**P, "filename": "ü" * 252 + ".md"}),
    ("INVALID_FILENAME", "delete_knowledge_file", {**P, "filename": "ü" * 252 + ".md"}),
    ("INVALID_CONTENT", "update_chapter", {**CHANGED, "new_content": "```"}),
    ("PROJECT_NOT_FOUND", "update_project_section", {
        "project_id": "ghost", "section_header": "## A", "new_content": "",
    }),
    ("PROJECT_NOT_FOUND", "get_knowledge_file", {**F, "project_id": "ghost"}),
    ("PROJECT_NOT_FOUND", "complete_todo_task", {
        "project_id": "ghost", "todo_number": 1, "task_number": 1,
    }),
    ("PROJECT_NOT_FOUND", "delete_project", {"project_id": "ghost"}),
    ("DOCUMENT_NOT_FOUND", "get_knowledge_file", {**P, "filename": "ghost.md"}),
    ("DOCUMENT_NOT_FOUND", "delete_knowledge_file", {**P, "filename": "ghost.md"}),
    ("DOCUMENT_NOT_FOUND", "add_chapter", {**CHAPTER, "filename": "ghost.md"}),
    ("CHAPTER_NOT_FOUND", "get_chapter", {**F, "chapter_title": "ghost"}),
    ("CHAPTER_NOT_FOUND", "remove_chapter", {**F, "chapter_title": "a"}),
    ("CHAPTER_NOT_FOUND", "add_chapter", {
        **CHAPTER, "position": "after", "reference_chapter": "ghost",
    }),
    ("SECTION_NOT_FOUND", "remove_project_section", {**P, "section_header": "## ghost"}),
    ("SECTION_NOT_FOUND", "add_project_section", {
        **SECTION, "position": "after", "reference_header": "## ghost",
    }),
    ("FILE_ALREADY_EXISTS", "create_knowledge_file", {**FILE, "filename": "API"}),
    ("FILE_ALREADY_EXISTS", "add_chapter", {**CHAPTER, "chapter_title": "A"}),
    ("FILE_ALREADY_EXISTS", "add_project_section", {**SECTION, "section_header": "## Setup"}),
    ("INVALID_SEARCH_QUERY", "search_knowledge", {**P, "query": " \t "}),
    ("TODO_NOT_FOUND", "get_todo_tasks", {**P, "todo_number": 2}),
    ("TODO_NOT_FOUND", "add_todo_task", {**P, "todo_number": 2, "title": "t"}),
    ("TODO_NOT_FOUND", "add_todo_task", {"project_id": "ghost", "todo_number": 1, "title": "t"}),
    ("TODO_NOT_FOUND", "delete_todo", {**P, "todo_number": 2}),
    ("TODO_TASK_NOT_FOUND", "complete_todo_task", {**TODO, "task_number": 2}),
    ("TODO_TASK_NOT_FOUND", "remove_todo_task", {**TODO, "task_number": 2}),
]  # fmt: skip
"""What nothing is wrong with but the wish: code, tool, arguments."""


# -- faults ----------------------------------------------------------------------------------


def latin_1(store):
    (store / FOLDER / "knowledge/api.md").write_bytes("## Größe\n".encode("latin-1"))


def main_in_latin_1(store):
    (store / FOLDER / "main.md").write_bytes("## Größe\n".encode("latin-1"))


def task_in_pieces(store):
    [task] = (store / FOLDER / "TODO/1").glob("TASK-*")
    task.write_text("{", encoding="utf-8")


def leads_elsewhere(store):
    index = {"projects": {"My Project": "../x"}}
    (store / "index.json").write_text(json.dumps(index), encoding="utf-8")
    (store / "x").mkdir()


def link_for_folder(store):
    place = store / FOLDER / "knowledge"
    place.symlink_to(place.rename(store.parent / "elsewhere"))


def file_for_folder(store):
    place = store / FOLDER / "knowledge"
    shutil.rmtree(place)
    place.write_text("mine", encoding="utf-8")


def folder_for_index(store):
    (store / "index.json").unlink()
    (store / "index.json").mkdir()


def broken_index(store):
    (store / "index.json").write_text("{", encoding="utf-8")


def detached(store):
    git(store, "checkout", "--quiet", "--detach")


def merging(store):
    (store / ".git/MERGE_HEAD").write_text(git(store, "rev-parse", "HEAD"), encoding="utf-8")


def rebasing(store):
    (store / ".git/rebase-merge").mkdir()


def garbled_branch(store):
    (store / BRANCH).write_text("garbage", encoding="utf-8")


def locked_branch(store):
    (store / f"{BRANCH}.lock").touch()


def git_elsewhere(store):
    place = (store / ".git").rename(store.parent / "gits")
    (store / ".git").write_text(f"gitdir: {place}\n", encoding="utf-8")


def git_by_a_link(store):
    (store / ".git").symlink_to((store / ".git").rename(store.parent / "gits"))


FAULTS = [
    ("INVALID_CONTENT", latin_1, "get_knowledge_file", F),
    ("INVALID_CONTENT", latin_1, "update_chapter", CHANGED),
    ("INVALID_CONTENT", main_in_latin_1, "get_project_main", P),
    ("INVALID_CONTENT", main_in_latin_1, "update_project_main", MAIN),
    ("INVALID_CONTENT", task_in_pieces, "complete_todo_task", {**TODO, "task_number": 1}),
    ("INVALID_PROJECT_ID", leads_elsewhere, "get_project_main", P),
    ("INVALID_PROJECT_ID", leads_elsewhere, "update_project_main", MAIN),
    ("INVALID_PROJECT_ID", leads_elsewhere, "delete_project", P),
    ("INVALID_PATH", link_for_folder, "create_knowledge_file", {**FILE, "filename": "x"}),
    ("INVALID_PATH", file_for_folder, "create_knowledge_file", {**FILE, "filename": "x"}),
    ("INVALID_PATH", folder_for_index, "get_project_main", P),
    ("INVALID_PATH", git_elsewhere, "update_project_main", MAIN),
    ("INVALID_PATH", git_by_a_link, "update_project_main", MAIN),
    ("FILE_SYSTEM_ERROR", broken_index, "update_project_main", {
        "project_id": "new", "content": "",
    }),
    ("PROJECT_DELETE_FAILED", folder_for_index, "delete_project", P),
    ("GIT_ERROR", detached, "update_project_main", MAIN),
    ("GIT_ERROR", merging, "delete_project", P),
    ("GIT_ERROR", rebasing, "create_todo", {**P, "description": "d"}),
    ("GIT_COMMAND_FAILED", garbled_branch, "update_project_main", MAIN),
    ("GIT_COMMAND_FAILED", locked_branch, "delete_project", P),
    ("GIT_COMMAND_FAILED", locked_branch, "create_knowledge_file", {**FILE, "filename": "x"}),
    ("GIT_COMMAND_FAILED", locked_branch, "create_todo", {**P, "description": "d", "tasks": []}),
    ("GIT_COMMAND_FAILED", locked_branch, "update_project_main", {
        "project_id": "new", "content": "",
    }),
]  # fmt: skip
"""What is wrong with the store before it is served: code, fault, tool, arguments."""


# -- a store and its client ------------------------------------------------------------------


@pytest.fixture(scope="module")
async def made(tmp_path_factory):
    """A store with a project that has everything."""
    folder = tmp_path_factory.mktemp("made")
    async with serving(notes_of(folder)) as client:
        await done(client, "update_project_main", **P, content="# My\n\n## Setup\n\nrun it\n")
        chapters = [{"title": title, "content": f"of {title}"} for title in "AB"]
        await done(
            client, "create_knowledge_file", **FILE | {"filename": "api", "chapters": chapters}
        )
        await done(client, "create_todo", **P, description="first", tasks=["one"])
    return folder / "store"


@pytest.fixture
def store(made, tmp_path):
    """A copy of it."""
    return Path(shutil.copytree(made, tmp_path / "store", symlinks=True))


def mount(*arguments):
    """Whether the system does it."""
    ran = subprocess.run(["mount", *map(str, arguments)], capture_output=True, check=False)
    return ran.returncode == 0


def unmount(place):
    subprocess.run(["umount", "--lazy", place], check=True)


async def opened(client):
    """Wait until nothing happens to the store that nobody asks for."""
    await answered(client, "sync_storage")


async def refused(client, store, code, tool, arguments):
    """Have a call refused; returns what is said."""
    before = state_of(store)
    answer = await answered(client, tool, **arguments)
    assert state_of(store) == before
    assert answer.keys() == {"success", "error", "code", "context"}
    assert (answer["success"], answer["code"]) == (False, code), answer["error"]
    context = answer["context"]
    assert re.fullmatch("[0-9a-f]{32}", context["traceId"])
    assert re.fullmatch(r"\d{4}(-\d\d){2}T(\d\d:){2}\d\d\.\d{3}Z", context["timestamp"])
    assert context["project_id"] == arguments["project_id"]
    if "filename" in arguments and tool != "create_knowledge_file":
        assert context["filename"] == arguments["filename"]
    return answer


# -- the tests -------------------------------------------------------------------------------


def test_every_code_is_provoked_here():
    provoked = {code for code, *_ in [*WISHES, *FAULTS]}
    elsewhere = {"ACCESS_DENIED", "INTERNAL_ERROR", "UNKNOWN_ERROR"}  # by the tests below
    assert provoked | elsewhere == set(Code) - {"SEARCH_ERROR"}
    assert len(Code) == 22


@pytest.fixture(scope="module")
async def client_of_made(made):
    async with serving(notes_of(made.parent)) as client:
        await opened(client)
        yield client


@pytest.mark.parametrize(("code", "tool", "arguments"), WISHES)
async def test_a_wish_that_cannot_be_met_is_refused(client_of_made, made, code, tool, arguments):
    answer = await refused(client_of_made, made, code, tool, arguments)
    last = json.loads((made / "activity.log").read_text(encoding="utf-8").splitlines()[-1])
    assert (last["errorCode"], last["success"]) == (code, False)
    assert last["traceId"] == answer["context"]["traceId"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("code", "fault", "tool", "arguments"),
    FAULTS,
    ids=[f"{fault.__name__}-{tool}" for _, fault, tool, _ in FAULTS],
)
async def test_a_fault_of_the_store_is_told(store, tmp_path, code, fault, tool, arguments):
    fault(store)
    async with serving(notes_of(tmp_path)) as client:
        await opened(client)
        await refused(client, store, code, tool, arguments)


@pytest.mark.parametrize("fault", [detached, merging, rebasing, garbled_branch, git_elsewhere])
async def test_what_is_written_can_be_read_while_git_says_no(store, tmp_path, fault):
    fault(store)
    async with serving(notes_of(tmp_path)) as client:
        assert (await done(client, "get_project_main", **P))["exists"]
        assert (await done(client, "get_chapter", **F, chapter_index=1))["title"] == "B"
        assert (await done(client, "search_knowledge", **P, query="of"))["total_matches"] == 2
        assert (await done(client, "list_todos", **P))["todos"]
        assert (await done(client, "get_storage_status"))["status_details"] != "Working tree clean"


@pytest.mark.slow
async def test_a_stale_revision_is_told_what_has_changed(store, tmp_path):
    async with serving(notes_of(tmp_path)) as client:
        old = (await done(client, "get_project_main", **P))["revision"]
        new = (await done(client, "update_project_main", **MAIN))["revision"]
        arguments = {**P, "content": "mine", "revision": old}
        answer = await refused(client, store, "INVALID_INPUT", "update_project_main", arguments)
        context = answer["context"]
        assert (context["revision"], context["current_revision"]) == (old, new)
        assert "-run it" in context["changes"]
        assert "+other" in context["changes"]
        await done(client, "update_project_main", **arguments | {"revision": new})
        logged = (store / "activity.log").read_text(encoding="utf-8")
        assert "run it" not in logged


async def test_what_is_asked_and_ignored_is_told(store, tmp_path):
    """Else an agent takes a date or a dependency for kept that no to-do has."""
    async with serving(notes_of(tmp_path)) as client:
        asked = {**P, "description": "d", "tasks": [{"title": "one", "needs": [3]}], "due": "2026"}
        answer = await done(client, "create_todo", **asked)
    assert answer["note"] == "Unknown arguments were ignored: 'due', 'tasks.0.needs'"


@pytest.mark.slow
async def test_a_read_only_disk_is_told(made, small_disk, tmp_path):
    store = Path(shutil.copytree(made, small_disk / "store", symlinks=True))
    async with serving(notes_of(tmp_path, store)) as client:
        await done(client, "update_project_main", **MAIN)
        # Something may be written behind the answer still, and then the disk is in use.
        await eventually(lambda: mount("-o", "remount,ro", small_disk))
        for tool, arguments in [
            ("update_project_main", {**P, "content": "mine"}),
            ("create_knowledge_file", {**FILE, "filename": "x"}),
            ("delete_knowledge_file", F),
        ]:
            await refused(client, store, "ACCESS_DENIED", tool, arguments)
        assert (await done(client, "get_project_main", **P))["content"] == "other"
        assert mount("-o", "remount,rw", small_disk)
        await done(client, "delete_knowledge_file", **F)


@pytest.mark.long
async def test_a_full_disk_is_told(made, small_disk, tmp_path):
    store = Path(shutil.copytree(made, small_disk / "store", symlinks=True))
    too_large, large = ("".join(Random(0).choices(LETTERS, k=k)) for k in (9_000_000, 1_500_000))
    async with serving(notes_of(tmp_path, store)) as client:
        await opened(client)
        given = {**P, "content": too_large}
        await refused(client, store, "FILE_SYSTEM_ERROR", "update_project_main", given)
        ballast = small_disk / "ballast"
        ballast.write_bytes(bytes(shutil.disk_usage(small_disk).free - 2_200_000))
        given = {**P, "content": large}  # there is room for this file, and none for its history
        await refused(client, store, "GIT_COMMAND_FAILED", "update_project_main", given)
        ballast.unlink()
        await done(client, "update_project_main", **given)
        assert (await done(client, "get_project_main", **P))["content"] == large
    git(store, "fsck", "--strict")


@pytest.mark.slow
async def test_a_project_that_cannot_be_moved_away_stays(store, tmp_path):
    place = store / FOLDER
    if not mount("--bind", place, place):
        pytest.skip("mounting a folder is not permitted here")
    try:
        async with serving(notes_of(tmp_path)) as client:
            await opened(client)
            await refused(client, store, "PROJECT_DELETE_FAILED", "delete_project", P)
    finally:
        unmount(place)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("code", "program"), [("GIT_ERROR", None), ("INTERNAL_ERROR", b"\0 no program")]
)
async def test_a_git_that_cannot_be_started_is_told(store, tmp_path, monkeypatch, code, program):
    folder = tmp_path / "bin"
    folder.mkdir()
    if program is not None:
        (folder / "git").write_bytes(program)
        (folder / "git").chmod(0o755)
    async with serving(notes_of(tmp_path)) as client:
        await opened(client)
        with monkeypatch.context() as without_git:
            without_git.setenv("PATH", str(folder))
            answer = await refused(client, store, code, "update_project_main", MAIN)
            assert "git" in answer["error"]
            assert (await done(client, "get_project_main", **P))["exists"]
        await done(client, "update_project_main", **MAIN)
        assert log(store)[0][1] == "Update knowledge for My Project: Updated main.md"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("code", "error"),
    [
        ("UNKNOWN_ERROR", RuntimeError("a surprise")),
        ("UNKNOWN_ERROR", KeyError("a surprise")),
        ("INTERNAL_ERROR", MemoryError("a surprise")),
    ],
    ids=["RuntimeError", "KeyError", "MemoryError"],
)
async def test_what_nobody_foresaw_is_told_and_the_session_goes_on(
    store, tmp_path, monkeypatch, code, error
):
    def fail(*_):
        raise error

    async with serving(notes_of(tmp_path)) as client:
        await opened(client)
        with monkeypatch.context() as broken:
            broken.setattr(Shelf, "document", fail)
            answer = await refused(client, store, code, "get_knowledge_file", F)
            assert "a surprise" in answer["error"]
            await refused(client, store, code, "update_chapter", CHANGED)
        await done(client, "update_chapter", **CHANGED)


async def test_a_resource_that_is_not_there_says_so(store, tmp_path):
    (store / FOLDER / "main.md").unlink()
    async with serving(notes_of(tmp_path)) as client:
        read = await client.read_resource("knowledge://projects/My%20Project/main")
        assert read.contents[0].text == "Project My Project has no main.md yet"


@pytest.mark.parametrize(
    "name",
    [
        "ghost.md",
        "..%2Fmain.md",
        "%2Fetc%2Fpasswd",
        "%00.md",
    ],
)
async def test_a_resource_that_cannot_be_there_says_so(client_of_made, name):
    read = await client_of_made.read_resource(f"knowledge://projects/My%20Project/chapters/{name}")
    assert "not found in project My Project" in read.contents[0].text
