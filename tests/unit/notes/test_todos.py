"""To-do lists in JSON and in Markdown; what cannot be read of them is named, and left alone."""

import json
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st
from writing import put, write

from vector_index_mcp.notes.refusal import Code, Refusal
from vector_index_mcp.notes.store.disk import Disk
from vector_index_mcp.notes.texts import matter, todos

MOMENT = "2024-05-06T07:08:09.010Z"
FOLDER = "projects/p/TODO"
MARKDOWN = (
    "---\ncompleted: {done}\ncreated: '2024-01-01T00:00:00.000Z'\n"
    "updated: '2024-01-01T00:00:00.000Z'\n---\n# {title}\n\n{content}\n"
)
"""As the original program wrote tasks."""


@pytest.fixture
def moment(monkeypatch):
    monkeypatch.setattr(matter, "now", lambda: MOMENT)


@pytest.fixture
def disk(tmp_path):
    return Disk(tmp_path)


def lay(disk, files):
    """Write the files of lists."""
    write(disk.root / FOLDER, {path: as_text(content) for path, content in files.items()})


def as_text(content):
    return content if isinstance(content, str) else json.dumps(content)


def kept(disk, files):
    """Write what a change gives."""
    for path, data in files.items():
        put(disk.root, path, data.decode())


def markdown(title, done=False, content=""):
    return MARKDOWN.format(done=str(done).lower(), title=title, content=content)


def tasks_of(todo):
    return [(task.number, task.title, task.content, task.completed) for task in todo.tasks]


# -- lists -------------------------------------------------------------------------------------


def test_a_list_is_written_in_its_form(disk, moment):
    files = todos.new_list(FOLDER, 3, "Grün", [("Do it!", ""), ("Two", "with\ncontent")])
    assert {path: json.loads(data) for path, data in files.items()} == {
        f"{FOLDER}/3/index.json": {"created": MOMENT, "description": "Grün"},
        f"{FOLDER}/3/TASK-001-do-it.json": {
            "title": "Do it!", "completed": False, "created": MOMENT, "updated": MOMENT,
        },
        f"{FOLDER}/3/TASK-002-two.json": {
            "title": "Two", "content": "with\ncontent", "completed": False, "created": MOMENT,
            "updated": MOMENT,
        },
    }  # fmt: skip
    assert all(data.endswith(b"}\n") and b"\n  " in data for data in files.values())
    assert "Grün".encode() in files[f"{FOLDER}/3/index.json"]


@given(st.text(), st.lists(st.tuples(st.text(), st.text()), max_size=5))
def test_a_list_is_read_as_it_was_written(description, tasks):
    with TemporaryDirectory() as folder:
        disk = Disk(Path(folder))
        kept(disk, todos.new_list(FOLDER, 7, description, tasks))
        [todo] = todos.lists(disk, FOLDER)
        assert (todo.number, todo.description, todo.problems) == (7, description, [])
        assert tasks_of(todo) == [(n, *task, False) for n, task in enumerate(tasks, 1)]


def test_lists_are_folders_with_numbers(disk):
    for name in ("2", "10", "1", "0", "03", "x", "-4", "1.5"):
        lay(disk, {f"{name}/index.json": {"description": name}})
    put(disk.root, f"{FOLDER}/5")
    (disk.root / FOLDER / "6").symlink_to(disk.root / FOLDER / "1")
    assert todos.numbers(disk, FOLDER) == [1, 2, 10]
    assert [todo.description for todo in todos.lists(disk, FOLDER)] == ["1", "2", "10"]
    assert todos.numbers(disk, "nowhere") == []
    for number in (3, 5, 6):
        with pytest.raises(Refusal) as refused:
            todos.one(disk, FOLDER, number)
        assert refused.value.code is Code.TODO_NOT_FOUND


def test_a_list_is_done_when_all_its_tasks_are(disk):
    lay(disk, {"1/index.json": {}, "2/index.json": {}})
    lay(disk, {"2/TASK-001-a.json": {"title": "a", "completed": True}})
    lay(disk, {"2/TASK-002-b.md": markdown("b", done=True)})
    first, second = todos.lists(disk, FOLDER)
    assert (first.completed, second.completed, second.completed_count) == (False, True, 2)
    lay(disk, {"2/TASK-003-c.json": {"title": "c", "completed": "true"}})
    assert not todos.one(disk, FOLDER, 2).completed


# -- tasks -------------------------------------------------------------------------------------


def test_tasks_of_both_forms_are_read_in_the_order_of_their_numbers(disk):
    lay(
        disk,
        {
            "1/index.json": {"description": "d", "created": "then"},
            "1/TASK-010-j.json": {"title": "ten", "content": "c", "completed": True},
            "1/TASK-002-m.md": markdown("two", content="more\n\n# even more"),
            "1/TASK-003.md": markdown("three", done=True),
            "1/TASK-1-d.json": {"description": "one"},
            "1/TASK-004-plain.md": "just a line\nand another",
            "1/TASK-x-no.md": "no",
            "1/TASK-005-no.txt": "no",
            "1/notes.md": "no",
            "1/.TASK-006-no.json": "{}",
        },
    )
    todo = todos.one(disk, FOLDER, 1)
    assert (todo.description, todo.created, todo.problems) == ("d", "then", [])
    assert tasks_of(todo) == [
        (1, "one", "", False),
        (2, "two", "more\n\n# even more", False),
        (3, "three", "", True),
        (4, "just a line", "and another", False),
        (10, "ten", "c", True),
    ]
    assert todos.next_number(todo) == 11
    assert todo.task(10).title == "ten"
    with pytest.raises(Refusal) as refused:
        todo.task(5)
    assert refused.value.code is Code.TODO_TASK_NOT_FOUND


def test_a_task_done_keeps_what_else_its_file_says(disk, moment):
    said = {
        "mine": [1, {"a": None}],
        "title": "t",
        "completed": False,
        "Größe": "ß",
        "updated": "x",
    }
    lay(disk, {"1/index.json": {}, "1/TASK-001-t.json": said})
    todo = todos.one(disk, FOLDER, 1)
    kept(disk, todos.completed(disk, todo.task(1)))
    path = disk.root / FOLDER / "1/TASK-001-t.json"
    after = json.loads(path.read_text(encoding="utf-8"))
    assert after == {**said, "completed": True, "updated": MOMENT}
    assert list(after) == list(said)
    assert todos.one(disk, FOLDER, 1).task(1).completed


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (markdown("t", content="completed: false"), {"completed: false": "completed: true"}),
        (markdown("t").replace("completed: false", "completed:   no # yet"), None),
        (
            "---\nmine: 1\n---\n# t\n",
            {"---\n# t": f"completed: true\nupdated: '{MOMENT}'\n---\n# t"},
        ),
        ("# t\n", {"# t": f"---\ncompleted: true\nupdated: '{MOMENT}'\n---\n# t"}),
    ],
)
def test_a_task_in_markdown_done_differs_in_two_lines(disk, moment, before, after):
    lay(disk, {"1/index.json": {}, "1/TASK-001-t.md": before})
    files = todos.completed(disk, todos.one(disk, FOLDER, 1).task(1))
    kept(disk, files)
    [text] = [data.decode() for data in files.values()]
    expected = before.replace("updated: '2024-01-01T00:00:00.000Z'", f"updated: '{MOMENT}'")
    for old, new in (after or {"completed:   no # yet": "completed: true"}).items():
        expected = expected.replace(old, new, 1)
    assert text == expected
    assert todos.one(disk, FOLDER, 1).task(1).completed


def test_a_task_from_windows_is_done_as_well(disk):
    before = markdown("t", content="text").replace("\n", "\r\n")
    (disk.root / FOLDER / "1").mkdir(parents=True)
    (disk.root / FOLDER / "1/TASK-001-t.md").write_bytes(before.encode())
    task = todos.one(disk, FOLDER, 1).task(1)
    assert (task.title, task.content) == ("t", "text")
    [data] = todos.completed(disk, task).values()
    assert b"completed: true\r\n" in data
    assert data.count(b"\r\n") == before.count("\r\n")


# -- what cannot be read -----------------------------------------------------------------------

BROKEN = {
    "TASK-002-b.json": b"{",
    "TASK-003-c.json": b"[]",
    "TASK-004-d.json": "{}ü".encode("latin-1"),
    "TASK-005-e.md": "# Größe".encode("latin-1"),
    "TASK-006-f.json": b'{"a": ' * 100_000,
    "TASK-007-g.json": b"",
}


def test_what_cannot_be_read_is_named_and_left_alone(disk):
    lay(disk, {"1/TASK-001-a.json": {"title": "a"}, "2/index.json": "{"})
    for name, data in BROKEN.items():
        (disk.root / FOLDER / "1" / name).write_bytes(data)
    (disk.root / FOLDER / "1/TASK-008-h.json").mkdir()
    first, second = todos.lists(disk, FOLDER)
    assert (first.description, first.problem) == ("", f"{FOLDER}/1/index.json is missing")
    assert second.problem.startswith(f"{FOLDER}/2/index.json cannot be read")
    named = [problem for problem in first.problems if "index.json" not in problem]
    for name, problem in zip([*BROKEN, "TASK-008-h.json"], named, strict=True):
        assert problem.startswith(f"{FOLDER}/1/{name}")
    assert first.task(1).title == "a"
    assert todos.next_number(first) == 9
    for number in range(2, 9):
        with pytest.raises(Refusal) as refused:
            first.task(number)
        assert refused.value.code is Code.INVALID_CONTENT
    for name, data in BROKEN.items():
        assert (disk.root / FOLDER / "1" / name).read_bytes() == data


def test_what_has_another_type_counts_as_not_said(disk):
    lay(disk, {"1/index.json": {"description": 3, "created": None}})
    lay(
        disk, {"1/TASK-001-a.json": {"title": 1, "content": [], "completed": 1, "description": "d"}}
    )
    todo = todos.one(disk, FOLDER, 1)
    assert (todo.description, todo.created, tasks_of(todo)) == ("", "", [(1, "d", "", False)])


@pytest.mark.parametrize("line", ["title: is it completed: yet", "last_completed: never"])
def test_only_the_key_itself_says_that_a_task_is_done(disk, line):
    text = f"---\n{line}\ncompleted: false\n---\n# t\n"
    lay(disk, {"1/index.json": {}, "1/TASK-001-t.md": text})
    kept(disk, todos.completed(disk, todos.one(disk, FOLDER, 1).task(1)))
    assert todos.one(disk, FOLDER, 1).task(1).completed
    assert line in (disk.root / FOLDER / "1/TASK-001-t.md").read_text(encoding="utf-8")


def test_a_number_has_plain_digits(disk):
    lay(disk, {"1\u0662/index.json": {"description": "d"}})
    assert todos.numbers(disk, FOLDER) == []
