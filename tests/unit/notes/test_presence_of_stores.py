"""A store that vanishes is missed: no empty one takes its place, and it goes on when it is back."""

import json
import pkgutil
import shutil
from contextlib import suppress

import pytest
from stores import answered, done, git, log, notes_of, opened, serving, writer_of, wrote
from writing import put

from vector_index_mcp.notes.refusal import Code, Refusal
from vector_index_mcp.notes.store import applying

pytestmark = pytest.mark.anyio

P = {"project_id": "p"}
MAIN = "projects/p/main.md"


def away(store):
    return store.with_name("away")


READS = {
    "get_project_main": P,
    "get_knowledge_file": {**P, "filename": "a.md"},
    "search_knowledge": {**P, "query": "x"},
    "list_todos": P,
}
WRITES = {"update_project_main": {**P, "content": "y"}, "sync_storage": {}}


@pytest.mark.slow
@pytest.mark.parametrize("remains", ["nothing", "an empty folder", "another folder"])
async def test_a_store_that_was_moved_away_is_missed_until_it_is_back(tmp_path, store, remains):
    async with serving(notes_of(tmp_path)) as client:
        await done(client, "update_project_main", **P, content="x")
        store.rename(away(store))
        if remains != "nothing":
            store.mkdir()
        if remains == "another folder":
            put(store, "letter.txt", "x")
        for tool, given in {**READS, **WRITES}.items():
            answer = await answered(client, tool, **given)
            assert (answer["success"], answer["code"]) == (False, Code.FILE_SYSTEM_ERROR), tool
            assert f"the notes in {store} have vanished" in answer["error"]
        status = await done(client, "get_storage_status")
        assert "have vanished" in status["status_details"]
        left = {"nothing": None, "an empty folder": [], "another folder": ["letter.txt"]}[remains]
        assert ([path.name for path in store.iterdir()] if store.exists() else None) == left
        if store.exists():
            shutil.rmtree(store)
        away(store).rename(store)
        assert (await done(client, "get_project_main", **P))["content"] == "x"
        await done(client, "update_project_main", **P, content="y")
    assert (store / MAIN).read_text(encoding="utf-8") == "y"
    assert git(store, "status", "--porcelain") == ""


@pytest.mark.slow
async def test_its_resources_are_missed_as_well(tmp_path, store):
    async with serving(notes_of(tmp_path)) as client:
        await done(client, "update_project_main", **P, content="x")
        store.rename(away(store))
        read = await client.read_resource("knowledge://projects/p/main")
        assert "have vanished" in read.contents[0].text


@pytest.mark.slow
def test_a_store_that_was_deleted_is_begun_anew(tmp_path, store):
    with writer_of(tmp_path) as writer:
        wrote(writer, {MAIN: "x"})
        while store.exists():  # the writer may remove its mark at the same time
            shutil.rmtree(store, ignore_errors=True)
        writer.presence.check()
        wrote(writer, {MAIN: "y"}, message="Y")
    assert [subject for _, subject in log(store)] == ["Y", "Initial commit"]


STEPS = (
    "place.is_broad", "repository.started",
    "place._is_store", "opening.beneath.opened", "opening.LineEnds",
    "byhand.ByHand.changed", "applying.apply", "applying.Applied.finish", "history.id_of",
    "history.move", "git_index.GitIndex.moving", "index_lock.IndexLock._taken",
    "presence.beneath.open_file", "repository.Repository.prepare", "repository.Repository.branch",
    "repository.Repository.commit_of", "repository.Repository.run", "turns.filelock.FileLock",
    "turns.lock_in", "writer.without_pruning",
)  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("is_behind", [False, True])
@pytest.mark.parametrize("step", STEPS)
def test_whenever_a_store_is_moved_away_none_is_made_in_its_place(
    tmp_path, store, monkeypatch, step, is_behind
):
    place, _, name = f"vector_index_mcp.notes.store.{step}".rpartition(".")
    do = getattr(pkgutil.resolve_name(place), name)

    def move_away(*arguments, **options):
        if is_behind:
            result = do(*arguments, **options)
        if store.exists() and not away(store).exists():
            store.rename(away(store))
        return result if is_behind else do(*arguments, **options)

    with writer_of(tmp_path) as writer:
        wrote(writer, {MAIN: "x"})
        with monkeypatch.context() as meanwhile:
            meanwhile.setattr(f"{place}.{name}", move_away)
            for _ in range(2):
                with suppress(Refusal):
                    wrote(writer, {MAIN: "y"})
        if away(store).exists():
            with pytest.raises(Refusal, match="have vanished"):
                wrote(writer, {MAIN: "z"})
            assert not store.exists()
            away(store).rename(store)
        wrote(writer, {MAIN: "back"})
    assert git(store, "show", f"HEAD:{MAIN}") == "back"
    git(store, "fsck", "--strict")


@pytest.mark.parametrize("is_behind", [False, True])
def test_what_a_change_leaves_to_tidy_up_makes_nothing_in_an_empty_folder_in_its_place(
    tmp_path, store, monkeypatch, is_behind
):
    finish = applying.Applied.finish

    def move_away(applied):
        if is_behind:
            finish(applied)
        store.rename(away(store))
        store.mkdir()
        if not is_behind:
            finish(applied)

    with writer_of(tmp_path) as writer:
        opened(writer)
        monkeypatch.setattr(applying.Applied, "finish", move_away)
        wrote(writer, {MAIN: "x"})
        assert list(store.iterdir()) == []
    assert list(store.iterdir()) == []


@pytest.mark.slow
def test_git_init_in_its_place_begins_empty_notes(tmp_path, store):
    with writer_of(tmp_path) as writer:
        wrote(writer, {MAIN: "x"})
        store.rename(away(store))
        store.mkdir()
        with pytest.raises(Refusal, match="run `git init` in that folder"):
            wrote(writer, {MAIN: "y"})
        git(store, "init", "--quiet", "-b", "main")
        wrote(writer, {MAIN: "y"})
    assert (store / MAIN).read_text(encoding="utf-8") == "y"


@pytest.mark.slow
@pytest.mark.parametrize("is_there", [True, False])
def test_a_store_whose_disk_is_not_mounted_is_missed_by_the_next_service(tmp_path, store, is_there):
    with writer_of(tmp_path) as writer:
        wrote(writer, {MAIN: "x"})
    device = tmp_path / "state/git/device"
    assert device.read_text(encoding="ascii") == str(store.stat().st_dev)
    device.write_text("999999999", encoding="ascii")  # where it was, another disk is mounted
    store.rename(away(store))
    if is_there:
        store.mkdir()
    with writer_of(tmp_path) as writer:
        with pytest.raises(Refusal, match="its disk is not mounted"):
            wrote(writer, {MAIN: "y"})
        assert store.exists() == is_there
        if is_there:
            store.rmdir()
        away(store).rename(store)
        opened(writer)
    assert device.read_text(encoding="ascii") == str(store.stat().st_dev)


@pytest.mark.slow
@pytest.mark.parametrize("text", ["", "x", "9" * 1_000, json.dumps({})])
def test_what_makes_no_sense_as_a_device_is_ignored(tmp_path, store, text):
    with writer_of(tmp_path) as writer:
        wrote(writer, {MAIN: "x"})
    (tmp_path / "state/git/device").write_text(text, encoding="ascii")
    shutil.rmtree(store)
    with writer_of(tmp_path) as writer:
        if text.startswith("9"):
            with pytest.raises(Refusal, match="have vanished"):
                wrote(writer, {MAIN: "y"})
        else:
            wrote(writer, {MAIN: "y"})
