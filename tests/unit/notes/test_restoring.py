"""A project as it was, put back: exactly that, nothing else, nothing lost, and undone in turn."""

import json
from dataclasses import replace

import pytest
from kept import kept_by_hand, kept_copy, kept_in
from stores import committed, log, state_of
from waiting import PATIENCE_SECONDS

from vector_index_mcp.errors import SettingsError, UnknownError
from vector_index_mcp.notes.limits import LARGEST_FILE_BYTES
from vector_index_mcp.notes.past.pieces import ALL, MAIN_TEXT, document, piece_of
from vector_index_mcp.notes.past.restoring import Fate, Wanted, before_deletion, plan_of, restoring
from vector_index_mcp.notes.past.states import Past
from vector_index_mcp.notes.refusal import Refusal

ABOUT = "that day"


def previewed(kept, commit, project="shop", piece=ALL):
    """What would be restored, and of what."""
    past, wanted = Past(kept.store.repository, commit), Wanted(project, piece, commit)
    return restoring(kept.store.disk, kept.tree, kept.by_hand, past, wanted), past, wanted


def restored(kept, commit, project="shop", piece=ALL):
    """What has been restored; as it was shown before."""
    found, past, wanted = previewed(kept, commit, project, piece)
    return done(kept, found, past, wanted)


def done(kept, found, past, wanted):
    asked = kept.writer.ask(lambda: plan_of(found, kept.writer, past, wanted, ABOUT))
    asked.result(PATIENCE_SECONDS)
    return found


def index_of(kept):
    return json.loads((kept.home / "index.json").read_text(encoding="utf-8"))["projects"]


def filled(kept):
    """A project with everything in it, beside another one."""
    kept.main("shop", "one")
    kept.document("shop", "setup", "one")
    kept.document("shop", "gone", "one")
    kept.todo("shop", "list", "first", "second")
    kept.main("other", "other")
    return kept.head


def changed(kept):
    """That project, with changes of every kind."""
    kept.main("shop", "two")
    kept.chapter("shop", "setup", "two")
    kept.call("delete_knowledge_file", project_id="shop", filename="gone.md")
    kept.document("shop", "new", "two")
    kept.call("complete_todo_task", project_id="shop", todo_number=1, task_number=1)
    kept.call("add_todo_task", project_id="shop", todo_number=1, title="third")
    kept.todo("shop", "another list", "task")
    kept.main("other", "changed")
    return kept.head


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """The folder of a store with that project; the commit before the changes, and its files."""
    folder = tmp_path_factory.mktemp("written")
    with kept_in(folder) as kept:
        then = filled(kept)
        files = kept.texts
        changed(kept)
    return folder, then, files


@pytest.fixture
def shop(written, tmp_path):
    """A copy of that store, and the commit."""
    folder, then, _ = written
    with kept_copy(folder, tmp_path) as kept:
        yield kept, then


# -- what comes back -------------------------------------------------------------------------


@pytest.mark.slow
def test_a_project_is_exactly_as_it_was_and_so_after_undoing_that(kept):
    then = filled(kept)
    old = kept.texts
    now = changed(kept)
    new = kept.texts

    restored(kept, then)
    assert kept.texts == old | {"projects/other/main.md": b"changed"}

    restored(kept, now)
    assert kept.texts == new


@pytest.mark.slow
def test_it_is_told_what_becomes_of_each_file(shop):
    kept, then = shop
    found, _, _ = previewed(kept, then)
    assert found.fates == (
        ("TODO/1/TASK-001-first.json", Fate.CHANGES),
        ("TODO/1/TASK-003-third.json", Fate.GOES_AWAY),
        ("TODO/2/TASK-001-task.json", Fate.GOES_AWAY),
        ("TODO/2/index.json", Fate.GOES_AWAY),
        ("knowledge/gone.md", Fate.COMES_BACK),
        ("knowledge/new.md", Fate.GOES_AWAY),
        ("knowledge/setup.md", Fate.CHANGES),
        ("main.md", Fate.CHANGES),
    )


@pytest.mark.slow
def test_restoring_is_one_commit(shop):
    kept, then = shop
    before = len(log(kept.home))
    restored(kept, then)
    told = log(kept.home)
    assert len(told) == before + 1
    assert told[0][1] == f"Update knowledge for shop: Restored as of {ABOUT}"
    assert kept.person("diff", "--name-only", then, "HEAD", "--", "projects/shop") == ""


@pytest.mark.slow
def test_a_project_that_held_nothing_then_does_not_come_back(kept):
    kept.todo("shop", "list", "first")
    kept.call("delete_todo", project_id="shop", todo_number=1)
    then = kept.head
    kept.main("shop", "one")
    kept.call("delete_project", project_id="shop")
    before = kept.texts
    with pytest.raises(UnknownError, match="project shop held nothing then; `vector-index-mcp"):
        restored(kept, then)
    assert kept.texts == before


@pytest.mark.slow
def test_what_is_as_it_was_needs_no_restoring(kept):
    found, _, _ = previewed(kept, filled(kept))
    assert not found.is_needed
    assert found.fates == ()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "paths"),
    [
        (["main.md"], {"main.md"}),
        (["setup"], {"knowledge/setup.md"}),
        (["gone"], {"knowledge/gone.md"}),
        (["new"], {"knowledge/new.md"}),
        (["todo", "1"], {"TODO/1/TASK-001-first.json", "TODO/1/TASK-003-third.json"}),
        (["todo", "2"], {"TODO/2/TASK-001-task.json", "TODO/2/index.json"}),
    ],
)
def test_a_piece_comes_back_alone(written, shop, words, paths):
    _, then, old = written
    kept, _ = shop
    new = kept.texts
    restored(kept, then, piece=piece_of(words))
    found = kept.texts
    for path in old.keys() | new.keys():
        source = old if path.removeprefix("projects/shop/") in paths else new
        assert found.get(path) == source.get(path), path


@pytest.mark.slow
def test_a_to_do_list_that_goes_away_leaves_no_folder(shop):
    kept, then = shop
    restored(kept, then)
    assert [path.name for path in (kept.home / "projects/shop/TODO").iterdir()] == ["1"]


# -- whole projects --------------------------------------------------------------------------


@pytest.mark.slow
def test_a_deleted_project_comes_back_with_its_entry_and_its_folder(kept):
    kept.main("My Shop", "one")
    kept.document("My Shop", "setup")
    then = kept.head
    old = kept.texts
    kept.call("delete_project", project_id="My Shop")
    assert index_of(kept) == {}

    found = restored(kept, then, "My Shop")

    assert found.comes
    assert index_of(kept) == {"My Shop": "my-shop"}
    texts = {path: data for path, data in kept.texts.items() if path != "index.json"}
    assert texts == {path: data for path, data in old.items() if path != "index.json"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("deletes", "piece"),
    [
        ("delete_project", ALL),
        ("delete_project", MAIN_TEXT),
        ("delete_knowledge_file", document("setup.md")),
        ("delete_todo", piece_of(["todo", "1"])),
    ],
)
def test_what_is_deleted_comes_back_without_a_time(kept, deletes, piece):
    filled(kept)
    kept.main("shop", "last")
    old = {path: data for path, data in kept.texts.items() if piece.holds(path[14:])}
    names = {"filename": "setup.md"} if "knowledge" in deletes else {}
    names |= {"todo_number": 1} if "todo" in deletes else {}
    kept.call(deletes, project_id="shop", **names)
    kept.main("other", "later")

    restored(kept, before_deletion(kept.store, kept.head, "shop", piece), piece=piece)

    shop = {path: data for path, data in kept.texts.items() if path.startswith("projects/shop/")}
    assert {path: data for path, data in shop.items() if piece.holds(path[14:])} == {
        path: data for path, data in old.items() if path.startswith("projects/shop/")
    }


@pytest.mark.slow
def test_what_is_there_is_only_restored_to_a_time_and_what_never_was_not_at_all(shop):
    kept, _ = shop
    for piece in (ALL, MAIN_TEXT, document("new.md")):
        with pytest.raises(SettingsError, match="is not deleted; say with --to"):
            before_deletion(kept.store, kept.head, "shop", piece)
    for project, piece in (("ghost", ALL), ("shop", document("ghost.md"))):
        with pytest.raises(UnknownError, match="there never was"):
            before_deletion(kept.store, kept.head, project, piece)


@pytest.mark.slow
def test_its_folder_is_that_of_the_time_and_not_that_of_its_name(tmp_path):
    with kept_by_hand(tmp_path) as kept:
        entry = '{"kept": 1, "projects": {"shop": "a-folder"}}'
        then = kept.commit({"index.json": entry, "projects/a-folder/main.md": "one"})
        kept.commit({"index.json": '{"kept": 2, "projects": {}}'}, ["projects/a-folder/main.md"])
        restored(kept, then)
        assert json.loads(committed(kept.home, "index.json")) == {
            "kept": 2,
            "projects": {"shop": "a-folder"},
        }
        assert committed(kept.home, "projects/a-folder/main.md") == "one"


@pytest.mark.slow
def test_a_deleted_project_gets_a_new_folder_if_its_old_one_is_anothers_now(kept):
    kept.main("a b", "first")
    then = kept.head
    kept.call("delete_project", project_id="a b")
    kept.main("A-B", "second")
    assert index_of(kept) == {"A-B": "a-b"}

    restored(kept, then, "a b")

    assert index_of(kept) == {"A-B": "a-b", "a b": "a-b-1"}
    assert (kept.home / "projects/a-b/main.md").read_text(encoding="utf-8") == "second"
    assert (kept.home / "projects/a-b-1/main.md").read_text(encoding="utf-8") == "first"


@pytest.mark.slow
def test_a_folder_without_an_entry_is_anothers_too(kept):
    kept.main("a b", "first")
    then = kept.head
    kept.call("delete_project", project_id="a b")
    kept.main("a-b", "another's")
    kept.put("projects/a-b-1/main.md", "copied here")
    restored(kept, then, "a b")
    assert index_of(kept) == {"a-b": "a-b", "a b": "a-b-2"}
    assert (kept.home / "projects/a-b-1/main.md").read_text(encoding="utf-8") == "copied here"


@pytest.mark.slow
def test_a_folder_that_only_an_entry_names_is_anothers_too(kept):
    kept.main("a b", "first")
    then = kept.head
    kept.call("delete_project", project_id="a b")
    kept.change({"index.json": json.dumps({"projects": {"empty": "a-b"}})})
    restored(kept, then, "a b")
    assert index_of(kept) == {"empty": "a-b", "a b": "a-b-1"}


@pytest.mark.slow
def test_a_project_that_was_not_there_then_goes_away_and_comes_back(kept):
    kept.main("other", "x")
    before = kept.head
    kept.main("shop", "one")
    kept.todo("shop", "list", "task")
    there = kept.head
    files = kept.texts

    found = restored(kept, before)
    assert found.goes
    assert index_of(kept) == {"other": "other"}
    assert not (kept.home / "projects/shop").exists()

    restored(kept, there)
    assert {p for p in kept.texts if "shop" in p} == {p for p in files if "shop" in p}
    assert index_of(kept) == {"other": "other", "shop": "shop"}


@pytest.mark.slow
def test_a_document_of_a_deleted_project_comes_back_alone(kept):
    then = filled(kept)
    kept.call("delete_project", project_id="shop")
    restored(kept, then, piece=document("setup.md"))
    assert index_of(kept) == {"other": "other", "shop": "shop"}
    assert {p for p in kept.texts if p.startswith("projects/shop/")} == {
        "projects/shop/knowledge/setup.md"
    }


@pytest.mark.slow
def test_a_project_that_moved_is_restored_where_it_lies_now(tmp_path):
    with kept_by_hand(tmp_path) as kept:
        entry = '{"projects": {"shop": "%s"}}'
        then = kept.commit({"index.json": entry % "old", "projects/old/main.md": "one"})
        kept.commit(
            {"index.json": entry % "new", "projects/new/main.md": "two"}, ["projects/old/main.md"]
        )
        restored(kept, then)
        assert index_of(kept) == {"shop": "new"}
        assert committed(kept.home, "projects/new/main.md") == "one"
        assert not (kept.home / "projects/old/main.md").exists()


# -- nothing is lost -------------------------------------------------------------------------


@pytest.mark.slow
def test_what_a_person_has_edited_is_in_the_history_before_it_is_replaced(kept):
    then = filled(kept)
    kept.put("projects/shop/main.md", "edited by hand")
    kept.put("projects/shop/knowledge/by-hand.md", "written by hand")
    restored(kept, then)
    assert (kept.home / "projects/shop/main.md").read_text(encoding="utf-8") == "one"
    assert committed(kept.home, "projects/shop/main.md", "HEAD~1") == "edited by hand"
    assert committed(kept.home, "projects/shop/knowledge/by-hand.md", "HEAD~1") == "written by hand"


@pytest.mark.slow
def test_what_is_ignored_and_stands_in_the_way_is_in_the_history_before(kept):
    kept.document("shop", "setup", "one")
    then = kept.head
    kept.call("delete_knowledge_file", project_id="shop", filename="setup.md")
    kept.put(".gitignore", "setup.md\n")
    kept.put("projects/shop/knowledge/setup.md", "ignored")
    found = restored(kept, then)
    assert found.fates == (("knowledge/setup.md", Fate.CHANGES),)
    assert committed(kept.home, "projects/shop/knowledge/setup.md", "HEAD~1") == "ignored"


@pytest.mark.slow
def test_what_editors_leave_behind_stays(shop):
    kept, then = shop
    kept.put("projects/shop/knowledge/.DS_Store", "junk")
    found = restored(kept, then)
    assert not any(".DS_Store" in path for path, _ in found.fates)
    assert (kept.home / "projects/shop/knowledge/.DS_Store").exists()


@pytest.mark.parametrize("path", ["main.md", "knowledge/new.md", "TODO/2/large"])
def test_what_the_history_cannot_keep_is_not_replaced(shop, path):
    kept, then = shop
    place = kept.home / "projects/shop" / path
    with place.open("wb") as file:
        file.truncate(LARGEST_FILE_BYTES + 1)
    with pytest.raises(Refusal, match="bytes"):
        restored(kept, then)
    assert place.stat().st_size == LARGEST_FILE_BYTES + 1


def test_a_link_in_the_way_is_not_followed(shop, tmp_path):
    kept, then = shop
    (tmp_path / "outside.md").write_text("mine", encoding="utf-8")
    place = kept.home / "projects/shop/main.md"
    place.unlink()
    place.symlink_to(tmp_path / "outside.md")
    with pytest.raises(Refusal, match="link"):
        restored(kept, then, piece=MAIN_TEXT)
    assert (tmp_path / "outside.md").read_text(encoding="utf-8") == "mine"


# -- refusals --------------------------------------------------------------------------------


@pytest.mark.slow
def test_what_has_changed_since_it_was_shown_is_not_restored(shop):
    kept, then = shop
    found, past, wanted = previewed(kept, then)
    kept.document("shop", "newer")
    before = state_of(kept.home)
    with pytest.raises(Refusal, match="since the preview"):
        done(kept, found, past, wanted)
    assert state_of(kept.home) == before


@pytest.mark.slow
def test_a_change_of_another_project_meanwhile_hinders_nobody(kept):
    then = filled(kept)
    kept.call("delete_project", project_id="shop")
    found, past, wanted = previewed(kept, then)
    kept.main("third", "x")
    done(kept, found, past, wanted)
    assert index_of(kept) == {"other": "other", "third": "third", "shop": "shop"}


@pytest.mark.slow
def test_projects_in_the_same_folder_are_not_restored(kept):
    then = filled(kept)
    kept.change({"index.json": json.dumps({"projects": {"shop": "shop", "twin": "shop"}})})
    with pytest.raises(Refusal, match="shop and twin have the same folder"):
        restored(kept, then)


def test_nothing_is_restored_while_the_index_cannot_be_understood(shop):
    kept, then = shop
    kept.put("index.json", "{")
    with pytest.raises(Refusal, match=r"index\.json cannot be read.*--repair"):
        restored(kept, then)


def test_a_project_is_not_looked_for_in_an_index_that_could_not_be_understood(tmp_path):
    with kept_by_hand(tmp_path) as kept:
        then = kept.commit({"index.json": "{", "projects/a-folder/main.md": "one"})
        kept.commit({"index.json": '{"projects": {}}'}, ["projects/a-folder/main.md"])
        with pytest.raises(SettingsError, match="choose another --to"):
            restored(kept, then)


@pytest.mark.slow
def test_a_project_that_is_there_is_looked_for_where_it_is(tmp_path):
    with kept_by_hand(tmp_path) as kept:
        then = kept.commit({"index.json": "{", "projects/a-folder/main.md": "one"})
        entry = '{"projects": {"shop": "a-folder"}}'
        kept.commit({"index.json": entry, "projects/a-folder/main.md": "two"})
        restored(kept, then)
        assert committed(kept.home, "projects/a-folder/main.md") == "one"
        assert index_of(kept) == {"shop": "a-folder"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("project", "piece", "said"),
    [
        ("shoq", ALL, "there is no project shoq now, and there was none then"),
        ("shop", document("x.md"), r"has no x\.md now, and had none then"),
    ],
)
def test_what_never_was_is_not_restored(kept, project, piece, said):
    then = filled(kept)
    with pytest.raises(UnknownError, match=said):
        restored(kept, then, project, piece)


def test_a_preview_is_compared_by_what_a_person_has_seen(shop):
    kept, then = shop
    found, _, _ = previewed(kept, then)
    assert found == replace(found, puts={})
    assert found != replace(found, fates=found.fates[1:])
