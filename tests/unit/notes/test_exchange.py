"""A project as a folder of Markdown and back, and foreign folders, which are distrusted."""

import json
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st
from stores import log, state_of
from waiting import PATIENCE_SECONDS

from vector_index_mcp.errors import SettingsError, UnknownError
from vector_index_mcp.notes import checklists, exchange
from vector_index_mcp.notes.checklists import Checklist, Item
from vector_index_mcp.notes.refusal import Refusal
from vector_index_mcp.notes.texts import todos

ODD_NAMES = ["-n.md", ":(glob)x.md", "*.md", "a\nb.md", "Über uns.md", ".hidden.md", "UPPER.md"]


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()
    return folder


def fill(folder, **files):
    """Write files, whose paths have __ for /."""
    for path, text in files.items():
        put(folder, path.replace("__", "/") + ".md", text)


def put(folder, path, text="x"):
    place = folder / path
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(text if isinstance(text, bytes) else text.encode())


def exported(kept, project, folder):
    found = exchange.exported(kept.store, project)
    exchange.write(found.files, folder)
    return found


def imported(kept, folder, project="copy", *, replaces=False):
    found = exchange.folder_of(folder)
    asked = kept.writer.ask(
        lambda: exchange.importing(kept.store, project, found, replaces=replaces)
    )
    asked.result(PATIENCE_SECONDS)
    return found


def documents(kept, project):
    below = f"projects/{project}/"
    return {
        path.removeprefix(below): data
        for path, data in kept.texts.items()
        if path.startswith(below) and "/TODO/" not in path
    }


def lists(kept, project):
    found = todos.lists(kept.store.disk, f"projects/{project}/TODO")
    return [(todo.number, checklists.checklist_of(todo)) for todo in found]


# -- there and back --------------------------------------------------------------------------


@pytest.mark.slow
def test_what_is_exported_and_imported_is_the_same(kept, tmp_path):
    kept.main("shop", "\ufeff# Shop\r\n\r\n## Rules\r\nno line feed at the end")
    kept.document("shop", "setup")
    for name in ODD_NAMES:
        kept.put(f"projects/shop/knowledge/{name}", f"# {name}\r\n\n\n trailing \n")
    kept.todo(
        "shop", "Release 1.0", "Write notes", {"title": "Tag", "content": "git tag\n\npush\n"}
    )
    kept.call("add_todo_task", project_id="shop", todo_number=1, title="a\nb", content="- [ ] no")
    kept.call("remove_todo_task", project_id="shop", todo_number=1, task_number=1)
    kept.call("complete_todo_task", project_id="shop", todo_number=1, task_number=3)
    kept.todo("shop", "  odd\ndescription <!-- {} -->")
    kept.todo("shop", "gap")
    kept.call("delete_todo", project_id="shop", todo_number=2)

    found = exported(kept, "shop", tmp_path / "out")
    assert found.left_out == ()
    assert imported(kept, tmp_path / "out").skipped == ()

    assert documents(kept, "copy") == documents(kept, "shop")
    assert lists(kept, "copy") == lists(kept, "shop")
    assert [number for number, _ in lists(kept, "copy")] == [1, 3]
    exported(kept, "copy", tmp_path / "again")
    assert {p.name: p.read_bytes() for p in (tmp_path / "out").rglob("*.md")} == {
        p.name: p.read_bytes() for p in (tmp_path / "again").rglob("*.md")
    }


@pytest.mark.slow
def test_a_folder_is_laid_out_as_people_expect_it(kept, tmp_path):
    kept.main("shop", "# Shop\n")
    kept.put("projects/shop/knowledge/setup.md", "# Setup\n")
    kept.todo("shop", "Release", "Write", {"title": "Tag", "content": "git tag"})
    kept.call("complete_todo_task", project_id="shop", todo_number=1, task_number=1)
    exported(kept, "shop", tmp_path / "out")
    found = {str(p.relative_to(tmp_path / "out")) for p in (tmp_path / "out").rglob("*.md")}
    assert found == {"main.md", "knowledge/setup.md", "todo-1.md"}
    lines = (tmp_path / "out/todo-1.md").read_text(encoding="utf-8").split("\n")
    assert lines[3:] == ["# Release", "", "- [x] Write", "- [ ] Tag", "  git tag", ""]


_TEXT = st.text(st.sampled_from([*"ab \n\r\t-[]x#<!>{}\"\\'é\0\x85\u2028"]), max_size=12)
_MEAN = st.sampled_from(
    ["- [ ] x", '<!-- {"number": 3} -->', "a <!-- {} -->", "---", "\r\n", "x\n"]
)
_ITEMS = st.lists(
    st.tuples(st.integers(1, 30), _TEXT | _MEAN, _TEXT | _MEAN, st.booleans()),
    max_size=5,
    unique_by=lambda item: item[0],
).map(lambda found: tuple(Item(*each) for each in sorted(found)))


@given(_TEXT | _MEAN, st.sampled_from(["", "2026-11-17T13:00:00.000Z"]), _ITEMS)
def test_any_to_do_list_is_read_as_it_was_written(description, created, items):
    checklist = Checklist(description, created, items)
    assert checklists.read(checklists.written(checklist)) == checklist


def test_what_json_can_say_and_no_text_is_exported(kept, tmp_path):
    kept.todo("shop", "list", "task")
    [path] = (kept.home / "projects/shop/TODO/1").glob("TASK*")
    path.write_text('{"title": "\\ud800", "content": "\\ud800"}', encoding="utf-8")
    exported(kept, "shop", tmp_path / "out")
    assert "\\ud800" in (tmp_path / "out/todo-1.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "text",
    [
        "# T\n\n- [ ] one\n\n- [X] two\n\n  more\n\n\n- [x] three\n",
        "# T\r\n\r\n* [ ] one\r\n+ [x] two\r\n  more\r\n- [x] three\r\n",
    ],
)
def test_task_lists_are_read_as_people_write_them(text):
    assert checklists.read(text) == Checklist(
        "T",
        "",
        (Item(1, "one", "", False), Item(2, "two", "more", True), Item(3, "three", "", True)),
    )


@pytest.mark.parametrize(
    "text",
    [
        "", "- [ ] one\n", "# T\n\nprose\n\n- [ ] one\n", "# T\n- [ ] one\nprose\n", "# T\n  x\n",
        "---\ntitle: x\n---\n# T\n- [ ] one\n", "# T\n- [ ] one\n## More\n", "# T\n- [y] one\n",
    ],
)  # fmt: skip
def test_a_text_that_says_more_than_tasks_is_no_to_do_list(text):
    assert checklists.read(text) is None


def test_numbers_that_are_none_become_the_next(kept):
    notes = ['{"number": 1}', '{"number": -3}', '{"number": "x"}', "{broken}", '{"number": 9}']
    text = "# T\n" + "".join(f"- [ ] t <!-- {note} -->\n" for note in ['{"number": 1}', *notes])
    found = checklists.read(text)
    assert [item.number for item in found.items] == [1, 2, 3, 4, 5, 9]


# -- out -------------------------------------------------------------------------------------


def test_nothing_is_written_into_a_folder_that_holds_something(kept, folder):
    kept.main("shop", "x")
    put(folder, ".hidden", "mine")
    with pytest.raises(SettingsError, match="not empty"):
        exported(kept, "shop", folder)
    with pytest.raises(SettingsError, match="is no folder"):
        exported(kept, "shop", folder / ".hidden")
    (folder / "dangling").symlink_to(folder / "nowhere")
    with pytest.raises(SettingsError, match="is no folder"):
        exported(kept, "shop", folder / "dangling")
    assert sorted(path.name for path in folder.iterdir()) == [".hidden", "dangling"]


def test_a_new_folder_is_made_and_an_empty_one_taken(kept, folder):
    kept.main("shop", "x")
    exported(kept, "shop", folder)
    exported(kept, "shop", folder.parent / "new/deep")
    assert (folder.parent / "new/deep/main.md").read_bytes() == b"x"


@pytest.mark.slow
def test_what_cannot_be_read_is_named_and_the_rest_exported(kept, tmp_path):
    kept.document("shop", "setup")
    kept.put("projects/shop/knowledge/bytes.md", b"\xff")
    kept.todo("shop", "list", "one", "two")
    first, _ = sorted((kept.home / "projects/shop/TODO/1").glob("TASK*"))
    first.write_text("{", encoding="utf-8")
    kept.put("outside.md", "x")
    (kept.home / "projects/shop/main.md").symlink_to(kept.home / "outside.md")
    found = exported(kept, "shop", tmp_path / "out")
    assert len(found.left_out) == 2
    assert "main.md" in found.left_out[0]
    assert "TASK-001" in found.left_out[1]
    assert (tmp_path / "out/knowledge/bytes.md").read_bytes() == b"\xff"
    assert (tmp_path / "out/todo-1.md").read_text(encoding="utf-8").count("- [ ]") == 1


def test_a_project_that_is_not_there_is_not_exported(kept, tmp_path):
    with pytest.raises(UnknownError, match="notes list"):
        exported(kept, "shop", tmp_path / "out")
    assert not (tmp_path / "out").exists()


# -- in --------------------------------------------------------------------------------------


@pytest.mark.slow
def test_any_folder_of_markdown_becomes_a_project(kept, folder):
    files = {
        "CLAUDE.md": "# Rules\n",
        "README.md": "# Read me\n",
        "docs/Set Up.md": "# Set up\n",
        "docs/deep/er/a_b.MD": "# Deep\n",
        "knowledge/Kept.md": "# Kept\n",
        "knowledge/sub/x.md": "# Sub\n",
        "todo-1.md": "# Tasks\n\n- [ ] one\n",
        "todo-2.md": "# Not only tasks\n\nprose\n",
        "notes.txt": "no Markdown",
    }
    for path, text in files.items():
        put(folder, path, text)
    assert imported(kept, folder).skipped == ()
    assert documents(kept, "copy") == {
        "main.md": b"# Rules\n",
        "knowledge/readme.md": b"# Read me\n",
        "knowledge/docs-set-up.md": b"# Set up\n",
        "knowledge/docs-deep-er-ab.md": b"# Deep\n",
        "knowledge/Kept.md": b"# Kept\n",
        "knowledge/sub-x.md": b"# Sub\n",
        "knowledge/todo-2.md": b"# Not only tasks\n\nprose\n",
    }
    [(number, found)] = lists(kept, "copy")
    assert (number, found.description, found.items[0].title) == (1, "Tasks", "one")
    assert log(kept.home)[0][1] == "Update knowledge for copy: Imported 7 texts and 1 to-do list"
    assert len(log(kept.home)) == 2


@pytest.mark.parametrize(
    ("names", "main"),
    [
        (["README.md", "AGENTS.md", "CLAUDE.md", "main.md"], "main.md"),
        (["README.md", "AGENTS.md", "CLAUDE.md"], "CLAUDE.md"),
        (["README.md", "AGENTS.md"], "AGENTS.md"),
        (["Readme.md", "other.md"], "Readme.md"),
        (["other.md", "docs/main.md"], ""),
    ],
)
def test_the_main_text_is_the_first_of_those_it_may_be(folder, names, main):
    for name in names:
        put(folder, name, name)
    found = exchange.folder_of(folder)
    assert found.main == (main.encode() if main else None)
    assert sorted(found.documents.values()) == sorted(n.encode() for n in names if n != main)


def test_documents_that_would_have_the_same_name_get_two(folder):
    fill(folder, a_b="1", ab="2", knowledge__ab="3")
    found = exchange.folder_of(folder).documents
    assert found == {"ab.md": b"3", "ab-1.md": b"1", "ab-2.md": b"2"}


def test_long_names_that_begin_alike_get_numbers(folder):
    put(folder, f"{'a' * 240}.md", "0")
    for n in range(3):
        put(folder, f"{n}/{'a' * 210}.md", str(n))
    names = list(exchange.folder_of(folder).documents)
    assert len(names) == len(set(names)) == 4


def test_a_folder_that_is_nested_too_deep_is_refused(folder):
    put(folder, f"{'a/' * 31}deep.md")
    with pytest.raises(SettingsError, match="more than 30 deep"):
        exchange.folder_of(folder)


def test_names_that_no_document_can_have_are_changed(folder):
    put(folder, "knowledge/ spaces .md", "1")
    put(folder, "knowledge/a..b.md", "2")
    put(folder, os.fsdecode(b"knowledge/\xff.md"), "3")
    assert set(exchange.folder_of(folder).documents) == {"spaces.md", "ab.md", "untitled.md"}


def test_links_are_not_followed_and_what_is_hidden_is_not_read(folder, tmp_path):
    put(tmp_path, "outside/secret.md", "secret")
    (folder / "link.md").symlink_to(tmp_path / "outside/secret.md")
    (folder / "linked").symlink_to(tmp_path / "outside")
    (folder / "loop").symlink_to(folder)
    put(folder, ".git/description.md")
    put(folder, ".venv/x.md")
    put(folder, ".obsidian.md")
    put(folder, "a.md", "mine")
    assert exchange.folder_of(folder).documents == {"a.md": b"mine"}


def test_a_folder_that_is_named_by_a_link_is_that_folder(folder, tmp_path):
    put(folder, "a.md", "mine")
    (tmp_path / "link").symlink_to(folder)
    assert exchange.folder_of(tmp_path / "link").documents == {"a.md": b"mine"}


def test_what_is_no_text_or_too_large_is_named_and_left_out(folder):
    put(folder, "good.md", "x")
    put(folder, "bytes.md", b"\xff")
    put(folder, "null.md", "a\0b")
    with (folder / "large.md").open("wb") as file:
        file.truncate(10_000_001)
    os.mkfifo(folder / "pipe.md")
    found = exchange.folder_of(folder)
    assert set(found.documents) == {"good.md"}
    assert found.skipped == (
        "bytes.md: it is not in UTF-8",
        "large.md: it has more than 10 MB",
        "null.md: it holds null bytes",
    )


@pytest.mark.slow
def test_a_folder_of_too_many_files_is_refused(folder):
    for number in range(2_001):
        put(folder, f"{number}.md")
    with pytest.raises(SettingsError, match="more than 2,000"):
        exchange.folder_of(folder)
    (folder / "0.md").unlink()
    assert len(exchange.folder_of(folder).documents) == 2_000


def test_a_folder_with_too_much_in_all_is_refused(folder):
    for number in range(21):
        with (folder / f"{number}.md").open("wb") as file:
            file.truncate(10_000_000)
    with pytest.raises(SettingsError, match="more than 200 MB"):
        exchange.folder_of(folder)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda folder: folder / "nowhere", "is no folder"),
        (lambda folder: put(folder, "a.md") or folder / "a.md", "is no folder"),
        (lambda folder: folder, "holds no Markdown"),
    ],
)
def test_what_cannot_be_imported_is_refused(folder, make, said):
    with pytest.raises(SettingsError, match=said):
        exchange.folder_of(make(folder))


@pytest.mark.parametrize("name", ["", "..", ".hidden", "a/b", "x" * 101, " x", 'a"b'])
def test_a_project_cannot_be_called_anything(name):
    with pytest.raises(SettingsError, match="--project NAME"):
        exchange.check_project(name)


@pytest.mark.slow
def test_a_name_that_is_taken_is_refused_and_nothing_is_changed(kept, folder):
    kept.document("shop", "setup")
    kept.todo("shop", "list")
    fill(folder, knowledge__setup="new", knowledge__other="x", main="x")
    put(folder, "todo-1.md", "# T\n")
    before = state_of(kept.home)
    with pytest.raises(Refusal, match=r"has this already: TODO/1, knowledge/setup\.md; --replace"):
        imported(kept, folder, "shop")
    assert state_of(kept.home) == before


@pytest.mark.slow
def test_what_has_the_same_name_is_replaced_if_that_is_wanted(kept, folder):
    kept.document("shop", "setup")
    kept.document("shop", "other")
    kept.todo("shop", "old", "one", "two", "three")
    kept.todo("shop", "another")
    other = documents(kept, "shop")["knowledge/other.md"]
    fill(folder, knowledge__setup="new", main="main")
    put(folder, "todo-1.md", "# New\n\n- [x] only\n")
    imported(kept, folder, "shop", replaces=True)
    assert documents(kept, "shop") == {
        "main.md": b"main", "knowledge/setup.md": b"new", "knowledge/other.md": other,
    }  # fmt: skip
    (_, new), (_, another) = lists(kept, "shop")
    assert new.description == "New"
    assert [(item.title, item.completed) for item in new.items] == [("only", True)]
    assert another.description == "another"
    assert json.loads(kept.texts["index.json"])["projects"] == {"shop": "shop"}


@pytest.mark.slow
def test_what_is_imported_anew_touches_no_other_project(kept, folder):
    kept.main("other", "x")
    before = kept.texts
    fill(folder, a="new")
    imported(kept, folder, "copy")
    after = kept.texts
    assert {p: after[p] for p in before if p != "index.json"} == {
        p: before[p] for p in before if p != "index.json"
    }
    assert json.loads(after["index.json"])["projects"] == {"other": "other", "copy": "copy"}
