"""The log of calls: a line for each, never contents, and only in a store that was opened."""

import json
import os
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
from mcp import MCPError
from stores import OWN, answered, notes_of, serving

from vector_index_mcp.notes.activity import NAME, Call, Log
from vector_index_mcp.notes.store.disk import Disk

P = {"project_id": "My Project"}
F = {**P, "filename": "api.md"}
SECRET = "hunter2"
posix_only = pytest.mark.skipif(sys.platform == "win32", reason="uses links and pipes")


@pytest.fixture
def disk(tmp_path):
    """A store that was opened."""
    (tmp_path / "store" / OWN).mkdir(parents=True)
    return Disk(tmp_path / "store")


def lines_of(disk, name=NAME):
    return [json.loads(line) for line in (disk.root / name).read_bytes().splitlines()]


# -- what is said ------------------------------------------------------------------------------


def test_a_call_is_told_by_its_names(disk):
    call = Call("get_chapter", {**F, "chapter_title": "A", "chapter_index": 1, "content": SECRET})
    log = Log(disk)
    log.write(call.entry())
    log.write(call.entry("went wrong", "CHAPTER_NOT_FOUND", {"chapter_title": "A"}))
    first, second = lines_of(disk)
    named = {**F, "chapter_title": "A", "method": "get_chapter", "traceId": call.trace}
    for line in (first, second):
        assert line.pop("timestamp").endswith("Z")
        assert line.pop("duration") >= 0
    assert first == {**named, "success": True}
    assert second == {
        **named, "success": False, "error": "went wrong", "errorCode": "CHAPTER_NOT_FOUND",
        "errorContext": {"chapter_title": "A"},
    }  # fmt: skip
    assert Call("x", {}).trace != call.trace


def test_a_line_is_never_long_and_always_one(disk):
    given = {"project_id": "p" * 1_000, "filename": 5, "chapter_title": "a\nb\u2028\ud800"}
    Log(disk).write(Call("m" * 1_000, given).entry("e" * 1_000, "X"))
    assert (disk.root / NAME).read_bytes().count(b"\n") == 1
    [line] = lines_of(disk)
    assert [len(line[key]) for key in ("method", "project_id", "error")] == [300] * 3
    assert line["chapter_title"] == "a\nb\u2028?"
    assert "filename" not in line


@pytest.mark.slow
@pytest.mark.anyio
async def test_no_content_gets_into_the_log(tmp_path):
    said = f"{SECRET} said"
    file = {"title": said, "introduction": said, "keywords": [SECRET]}
    chapters = [{"title": "A", "content": said}]
    calls = [
        ("update_project_main", {**P, "content": f"## A\n\n{said}\n"}),
        ("update_project_main", {**P, "content": said, "revision": "abcd"}),
        ("update_project_main", {**P, "content": said, "revision": said}),
        ("update_project_main", {**P, "content": [said]}),
        ("update_project_main", {**P, "content": f"{said}\0"}),
        ("add_project_section", {**P, "section_header": "## B", "content": said}),
        ("update_project_section", {**P, "section_header": "## B", "new_content": said}),
        ("update_project_section", {**P, "section_header": "## A", "new_content": f"```{said}"}),
        ("create_knowledge_file", {**F, **file, "chapters": chapters}),
        ("create_knowledge_file", {**F, **file, "chapters": chapters}),
        ("create_knowledge_file", {**F, **file, "filename": "x", "chapters": chapters * 2}),
        ("update_chapter", {**F, "chapter_title": "A", "new_content": said, "new_summary": said}),
        ("update_chapter", {**F, "chapter_title": "B", "new_content": said}),
        ("add_chapter", {**F, "chapter_title": "A", "content": said}),
        ("add_chapter", {**F, "chapter_title": "B", "content": said}),
        ("get_knowledge_file", F),
        ("search_knowledge", {**P, "query": said}),
        ("create_todo", {**P, "description": said, "tasks": [said, {"title": said}]}),
        ("add_todo_task", {**P, "todo_number": 1, "title": said, "content": said}),
        ("add_todo_task", {**P, "todo_number": 2, "title": said, "content": said}),
        ("get_todo_tasks", {**P, "todo_number": 1}),
    ]
    async with serving(notes_of(tmp_path)) as client:
        wrong = 0
        for tool, arguments in calls:
            try:
                await answered(client, tool, **arguments)
            except MCPError:
                wrong += 1
    lines = lines_of(Disk(tmp_path / "store"))
    assert [line["method"] for line in lines] == [tool for tool, _ in calls]
    assert wrong == 3
    assert sum(not line["success"] for line in lines) == wrong + 7
    assert all(line["project_id"] == P["project_id"] for line in lines)
    assert SECRET not in json.dumps(lines)


# -- where it stands ---------------------------------------------------------------------------


def test_nothing_is_written_into_a_folder_that_is_no_store(tmp_path):
    (tmp_path / "folder" / ".git").mkdir(parents=True)
    Log(Disk(tmp_path / "folder")).write({"a": 1})
    Log(Disk(tmp_path / "nowhere")).write({"a": 1})
    assert [path.name for path in tmp_path.rglob("*")] == ["folder", ".git"]


def test_a_log_that_has_grown_begins_anew(disk):
    log = Log(disk)
    log.write({"line": 1})
    with (disk.root / NAME).open("r+b") as file:
        file.truncate(10_000_001)
    for number in (2, 3, 4):
        log.write({"line": number})
    assert [line["line"] for line in lines_of(disk)] == [2, 3, 4]
    earlier = (disk.root / "activity.log.1").read_bytes()
    assert earlier.startswith(b'{"line": 1}\n')
    assert len(earlier) == 10_000_001
    assert sorted(path.name for path in disk.root.glob("activity*")) == [NAME, "activity.log.1"]


def test_a_log_that_cannot_begin_anew_goes_on(disk):
    (disk.root / "activity.log.1" / "in the way").mkdir(parents=True)
    with (disk.root / NAME).open("wb") as file:
        file.truncate(10_000_001)
    for number in (1, 2):
        Log(disk).write({"line": number})
    assert (disk.root / NAME).read_bytes().endswith(b'{"line": 1}\n{"line": 2}\n')


@posix_only
@pytest.mark.parametrize("target", ["elsewhere", "missing"])
def test_a_link_in_its_place_is_not_followed(disk, tmp_path, target):
    (tmp_path / "elsewhere").write_text("mine", encoding="utf-8")
    (disk.root / NAME).symlink_to(tmp_path / target)
    Log(disk).write({"a": 1})
    assert (tmp_path / "elsewhere").read_text(encoding="utf-8") == "mine"
    assert not (tmp_path / "missing").exists()


@pytest.mark.slow
@posix_only
@pytest.mark.anyio
@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
async def test_what_cannot_be_logged_is_answered_all_the_same(tmp_path, make):
    (tmp_path / "store").mkdir()
    make(tmp_path / "store" / NAME)
    async with serving(notes_of(tmp_path)) as client:
        assert (await answered(client, "update_project_main", **P, content=""))["success"]
        assert (await answered(client, "get_project_main", **P))["exists"]


def test_lines_of_many_do_not_mix(disk):
    log, other = Log(disk), Log(disk)

    def write(number):
        (log if number % 2 else other).write({"line": number, "text": "x" * 500})

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(write, range(200)))
    assert sorted(line["line"] for line in lines_of(disk)) == list(range(200))


def test_only_its_user_can_read_it(disk):
    Log(disk).write({"a": 1})
    assert (disk.root / NAME).stat().st_mode & 0o077 == 0
