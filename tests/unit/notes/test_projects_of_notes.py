"""Which projects there are, whatever people have done to `index.json` and to the folders."""

import json
import os
import sys

import pytest
from stores import answered, done, notes_of, serving, spoken_to
from writing import put

from vector_index_mcp.notes.refusal import Code, Refusal
from vector_index_mcp.notes.store.disk import Disk
from vector_index_mcp.notes.texts.projects import Projects, existing

HOSTILE = [
    "../x", "..", ".", "", "/etc", "/", "a/b", "a/../..", "a\\b", "a\0b", "a\nb", "x" * 256, 5,
    None, [], {"a": "b"},
]  # fmt: skip
BROKEN = ["{", "[]", "5", "null", "", '{"projects": []}', '{"a": ' * 10_000, "\ufeff{}"]


@pytest.fixture
def disk(tmp_path):
    """An empty store beside a folder that is none of its own."""
    (tmp_path / "store").mkdir()
    (tmp_path / "x").mkdir()
    return Disk(tmp_path / "store")


def index(disk, content):
    put(disk.root, "index.json", content if isinstance(content, str) else json.dumps(content))


def folders(disk, *names):
    for name in names:
        (disk.root / "projects" / name).mkdir(parents=True)


def found(disk, project):
    """The folder of a project."""
    project = Projects(disk).find(project)
    return project and project.folder


def created(disk, project):
    """The folder of a project, entered if need be, and what `index.json` says then."""
    new, puts = Projects(disk).with_project(project)
    return new.folder, {path: json.loads(data) for path, data in puts.items()}


def refusal(do, *arguments):
    with pytest.raises(Refusal) as refused:
        do(*arguments)
    return refused.value.code


# -- found -------------------------------------------------------------------------------------


def test_a_project_lies_where_the_index_says(disk):
    index(disk, {"projects": {"My App": "app", "Ünï": "Größe X"}})
    assert found(disk, "My App") == "projects/app"
    assert found(disk, "Ünï") == "projects/Größe X"
    assert found(disk, "my app") is None
    project = Projects(disk).find("My App")
    assert project.main == "projects/app/main.md"
    assert project.document("a.md") == "projects/app/knowledge/a.md"
    assert project.todos == "projects/app/TODO"


def test_a_folder_that_nobody_names_is_a_project_of_its_name(disk):
    index(disk, {"projects": {"My App": "my-app"}})
    folders(disk, "my-app", "other-app", "Größe")
    assert found(disk, "other-app") == "projects/other-app"
    assert found(disk, "Other App") == "projects/other-app"
    assert found(disk, "Größe") == "projects/Größe"
    # This one is somebody else's.
    assert found(disk, "my-app") is None
    assert [(p.id, p.folder) for p in Projects(disk).all()] == [
        ("My App", "projects/my-app"),
        ("Größe", "projects/Größe"),
        ("other-app", "projects/other-app"),
    ]


def test_links_files_and_hidden_folders_are_no_projects(disk, tmp_path):
    folders(disk, ".hidden", "real")
    put(disk.root, "projects/file")
    (disk.root / "projects/link").symlink_to(tmp_path / "x")
    assert [p.id for p in Projects(disk).all()] == ["real"]
    assert [found(disk, name) for name in ("link", "file")] == [None, None]


def test_nothing_is_there_without_a_store(disk):
    assert found(disk, "a") is None
    assert list(Projects(disk).all()) == []
    assert refusal(existing, disk, "a") is Code.PROJECT_NOT_FOUND


@pytest.mark.skipif(sys.platform != "linux", reason="only there are names any bytes")
@pytest.mark.anyio
async def test_names_that_are_no_text_have_addresses_as_all_others(tmp_path):
    place = tmp_path / "store"
    put(place, os.fsdecode(b"projects/caf\xe9/main.md"), "of a folder")
    put(place, "projects/app/main.md", "of an entry")
    put(place, "index.json", r'{"projects": {"\ud800": "app"}}')
    async with spoken_to(notes_of(tmp_path)) as ask:
        listed = (await ask("resources/list"))["result"]["resources"]
        read = [(await ask("resources/read", uri=each["uri"]))["result"] for each in listed]
        assert [each["contents"][0]["text"] for each in read] == ["of an entry", "of a folder"]
        answer = await ask("resources/read", uri="knowledge://projects/caf%E9/main")
        assert "not found" in answer["error"]["message"]


@pytest.mark.usefixtures("one_case")
def test_another_spelling_is_another_project_where_case_does_not_count(disk):
    index(disk, {"projects": {"MyApp": "myapp"}})
    folders(disk, "myapp", "Byhand")
    assert [found(disk, name) for name in ("MYAPP", "byhand", "BYHAND")] == [None] * 3
    assert [found(disk, name) for name in ("MyApp", "Byhand")] == [
        "projects/myapp", "projects/Byhand",
    ]  # fmt: skip
    assert created(disk, "MYAPP")[0] == "projects/myapp-1"
    assert created(disk, "byhand")[0] == "projects/byhand-1"


# -- entries that lead elsewhere ---------------------------------------------------------------


@pytest.mark.parametrize("entry", HOSTILE, ids=repr)
def test_an_entry_that_is_no_name_of_a_folder_is_never_followed(disk, entry):
    index(disk, {"projects": {"p": entry, "q": "q"}})
    folders(disk, "p", "a")
    assert refusal(found, disk, "p") is Code.INVALID_PROJECT_ID
    assert refusal(created, disk, "p") is Code.INVALID_PROJECT_ID
    assert Projects(disk).unusable == ["p"]
    assert "projects/q" in [p.folder for p in Projects(disk).all()]
    assert all(p.folder.count("/") == 1 and ".." not in p.folder for p in Projects(disk).all())


@pytest.mark.parametrize("project", [name for name in HOSTILE if isinstance(name, str)], ids=repr)
def test_a_project_that_is_called_so_gets_a_folder_of_the_store(disk, project):
    assert found(disk, project) is None
    folder, puts = created(disk, project)
    name = folder.removeprefix("projects/")
    assert folder == f"projects/{name}"
    assert set(name) <= set("abcdefghijklmnopqrstuvwxyz0123456789-")
    assert puts == {"index.json": {"projects": {project: name}}}


# -- an index that cannot be understood --------------------------------------------------------


@pytest.mark.parametrize("text", BROKEN, ids=range(len(BROKEN)))
def test_a_broken_index_hides_no_folder_and_is_not_replaced(disk, text):
    index(disk, text)
    folders(disk, "app")
    assert "index.json" in Projects(disk).problem
    assert found(disk, "app") == "projects/app"
    assert refusal(created, disk, "app") is Code.FILE_SYSTEM_ERROR
    assert refusal(created, disk, "new") is Code.FILE_SYSTEM_ERROR
    assert Projects(disk).without_project("app") == {}


def test_an_index_in_another_encoding_is_told(disk):
    (disk.root / "index.json").write_bytes('{"projects": {"ü": "u"}}'.encode("latin-1"))
    assert "UTF-8" in Projects(disk).problem
    assert refusal(created, disk, "new") is Code.FILE_SYSTEM_ERROR


def test_an_index_that_is_no_file_is_told(disk):
    (disk.root / "index.json").mkdir()
    assert refusal(Projects, disk) is Code.INVALID_PATH


def test_a_broken_index_leads_no_project_into_the_folder_of_another(disk):
    folders(disk, "my-app", "my-app-1")
    index(disk, {"projects": {"my app": "my-app", "My App": "my-app-1"}})
    assert found(disk, "My App") == "projects/my-app-1"
    index(disk, '{"projects": {"my app": "my-app", "My App": "my-app-1"}')
    assert refusal(created, disk, "My App") is Code.FILE_SYSTEM_ERROR


def test_nor_one_that_is_called_as_that_folder(disk):
    folders(disk, "foo", "foo-1")
    index(disk, {"projects": {"Foo!": "foo", "foo": "foo-1"}})
    assert found(disk, "foo") == "projects/foo-1"
    index(disk, '{"projects": {"Foo!": "foo", "foo": "foo-1",}}')
    assert Projects(disk).find("foo") is None
    assert refusal(created, disk, "foo") is Code.FILE_SYSTEM_ERROR


def test_nor_one_whose_slug_is_that_folder(disk):
    folders(disk, "c", "untitled")
    index(disk, "<<<<<<< HEAD\n")
    assert found(disk, "c") == "projects/c"
    assert [found(disk, name) for name in ("C", "C++", "中文")] == [None] * 3


def test_a_name_of_which_nothing_is_left_takes_no_folder_that_nobody_names(disk):
    folders(disk, "untitled")
    assert [found(disk, name) for name in ("中文", "日本", "untitled")] == [
        None, None, "projects/untitled",
    ]  # fmt: skip
    assert created(disk, "中文")[0] == "projects/untitled-1"


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("update_project_main", {"content": "x"}),
        ("add_project_section", {"section_header": "## B", "content": "x"}),
        ("delete_knowledge_file", {"filename": "a.md"}),
        ("add_chapter", {"filename": "a.md", "chapter_title": "B", "content": "x"}),
        ("create_todo", {"description": "x"}),
        ("add_todo_task", {"todo_number": 1, "title": "x"}),
        ("delete_todo", {"todo_number": 1}),
    ],
)
def test_nothing_is_written_while_nobody_knows_whose_folder_it_is(kept, tool, arguments):
    texts = {
        "projects/c/main.md": "## A\n",
        "projects/c/knowledge/a.md": "## A\n",
        "projects/c/TODO/1/index.json": "{}",
    }
    for path, text in texts.items():
        kept.put(path, text)
    kept.put("index.json", "<<<<<<< HEAD\n")
    before = kept.texts
    with pytest.raises(Refusal, match="index.json cannot be read") as refused:
        kept.call(tool, project_id="c", **arguments)
    assert refused.value.code is Code.FILE_SYSTEM_ERROR
    assert {path: kept.texts[path] for path in before} == before


@pytest.mark.anyio
async def test_what_a_broken_index_hides_is_told(tmp_path):
    put(tmp_path / "store", "projects/c/main.md", "of C")
    put(tmp_path / "store", "index.json", "{")
    async with serving(notes_of(tmp_path)) as client:
        assert (await done(client, "get_project_main", project_id="c"))["content"] == "of C"
        answer = await done(client, "get_project_main", project_id="C++")
        assert (answer["exists"], answer["content"]) == (False, "")
        assert "index.json cannot be read" in answer["note"]
        answer = await answered(client, "list_chapters", project_id="C++", filename="a.md")
        assert answer["code"] == Code.PROJECT_NOT_FOUND
        assert "index.json cannot be read" in answer["error"]


# -- made and given up -------------------------------------------------------------------------


def test_projects_of_one_slug_get_numbers(disk):
    expected = {}
    for number, project in enumerate(["My App", "my app", "MY-APP", "my_app"]):
        name = f"my-app-{number}" if number else "my-app"
        name = {"my_app": "myapp"}.get(project, name)
        folder, puts = created(disk, project)
        expected[project] = name
        assert (folder, puts) == (f"projects/{name}", {"index.json": {"projects": expected}})
        index(disk, puts["index.json"])


def test_a_folder_that_is_there_is_not_given_to_another(disk):
    folders(disk, "my-app-1")
    index(disk, {"projects": {"my app": "my-app"}})
    assert created(disk, "My App")[0] == "projects/my-app-2"


def test_an_unnamed_folder_is_entered_when_something_is_written(disk):
    folders(disk, "my-app")
    assert created(disk, "My App") == (
        "projects/my-app", {"index.json": {"projects": {"My App": "my-app"}}},
    )  # fmt: skip


def test_a_known_project_writes_no_index(disk):
    index(disk, {"projects": {"a": "b"}})
    assert created(disk, "a") == ("projects/b", {})


def test_what_else_the_index_says_stays(disk):
    index(disk, {"version": 3, "projects": {"a": "a", "b": "b"}, "mine": {"x": [1]}})
    _, puts = created(disk, "c")
    assert puts["index.json"] == {
        "version": 3, "projects": {"a": "a", "b": "b", "c": "c"}, "mine": {"x": [1]},
    }  # fmt: skip
    data = Projects(disk).without_project("a")["index.json"]
    assert json.loads(data) == {"version": 3, "projects": {"b": "b"}, "mine": {"x": [1]}}
    assert data.startswith(b'{\n  "version": 3,\n')
    assert Projects(disk).without_project("x") == {}


def test_entries_that_nobody_understands_stay_as_they_are(disk):
    odd = {"a": None, "b": ["x"], "c": {"folder": "c"}, "d": 5, "e": "\ud800", "f": ""}
    index(disk, {"projects": odd})
    assert created(disk, "new")[1] == {"index.json": {"projects": {**odd, "new": "new"}}}
    del odd["b"]
    without = Projects(disk).without_project("b")["index.json"]
    assert json.loads(without) == {"projects": odd}
