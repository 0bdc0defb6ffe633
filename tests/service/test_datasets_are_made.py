"""Datasets are made of folders, get more texts, and are deleted; nothing else is touched."""

import os
import random
import shutil
import threading
from pathlib import Path
from secrets import token_hex

import anyio
import pytest
from fakes import FakeEmbedder
from filelock import FileLock
from shelves import DIMENSION, MODEL, index_of, manifest, order, put, running, write
from waiting import eventually

from vector_index_mcp.datasets import keeping, making, snapshot, workshop
from vector_index_mcp.datasets.arguments import asked
from vector_index_mcp.datasets.making import About
from vector_index_mcp.datasets.manifest import said_in
from vector_index_mcp.datasets.workshop import Order
from vector_index_mcp.errors import BusyError, SettingsError, UnknownError, VectorIndexError
from vector_index_mcp.indexing.role import Role
from vector_index_mcp.serving.loading import index_of_texts
from vector_index_mcp.settings import Settings

pytestmark = [pytest.mark.long, pytest.mark.anyio]

SHIPS, TREES = "# Ships\n\nA ship sails on the sea.\n", "# Trees\n\nA tree has leaves.\n"


@pytest.fixture
def root(tmp_path):
    root = tmp_path / "datasets"
    root.mkdir()
    return root


@pytest.fixture
def source(tmp_path):
    return texts_in(tmp_path / "texts", ships=SHIPS, trees=TREES)


@pytest.fixture
def embedder():
    return FakeEmbedder(MODEL, DIMENSION)


def texts_in(folder, **texts):
    folder.mkdir(exist_ok=True)
    for name, text in texts.items():
        (folder / f"{name}.md").write_text(text, encoding="utf-8")
    return folder


def maker(tmp_path, embedder):
    return index_of(tmp_path / "beside", embedder)


def serving(root, tmp_path, embedder):
    return running(root, embedder, index_of=maker(tmp_path, embedder))


async def found(service, words, dataset="made"):
    given = asked({"dataset": dataset, "query": words, "topK": 10})
    return [result.path for result in (await service.search(given)).results]


async def test_what_is_made_is_served_at_once(root, source, tmp_path, embedder):
    async with serving(root, tmp_path, embedder) as service:
        made = await service.make(order(source))
        assert (made.documents, made.chunks, made.model) == (2, 2, MODEL)
        assert (await found(service, "ship sails"))[0] == "ships.md"
    assert not (tmp_path / "beside/texts").exists()  # its index is not needed any more


@pytest.mark.parametrize("text", ["", " \n\t\n", "\ufeff", "\u200b\n", "---\ntitle: Empty\n---\n"])
async def test_texts_without_a_visible_character_make_no_dataset(root, tmp_path, embedder, text):
    empty = texts_in(tmp_path / "texts", one=text, two=text)
    async with serving(root, tmp_path, embedder) as service:
        with pytest.raises(VectorIndexError, match="No text content available to index"):
            await service.make(order(empty))
    assert [*root.iterdir()] == []


async def test_what_could_not_be_taken_is_counted(root, source, tmp_path, embedder):
    texts_in(source, photo="\0\1\2" * 99)
    async with serving(root, tmp_path, embedder) as service:
        made = await service.make(order(source))
    assert (made.documents, made.skipped) == (2, {"binary": 1})
    assert making.facts_about(made)["skipped"] == {"binary": 1}


async def test_an_empty_text_beside_others_is_left_out(root, source, tmp_path, embedder):
    texts_in(source, empty="\n")
    async with serving(root, tmp_path, embedder) as service:
        made = await service.make(order(source))
        assert (made.documents, made.chunks, made.left_out) == (2, 2, 0)
        more = texts_in(tmp_path / "more", trees="", cars="# Cars\n\nRoads.\n")
        made = await service.make(order(more, is_appended=True))
        assert (made.documents, made.chunks) == (2, 2)
        assert sorted(await found(service, "roads")) == ["cars.md", "ships.md"]
        blank = texts_in(tmp_path / "blank", ships=" ")
        with pytest.raises(VectorIndexError, match="No text content available to index"):
            await service.make(order(blank, is_appended=True))
        assert sorted(await found(service, "roads")) == ["cars.md", "ships.md"]


async def test_a_disk_that_fills_up_leaves_no_dataset_of_some_of_the_texts(
    root, source, tmp_path, embedder, small_disk
):
    noise = random.Random(1)
    for name in range(60):
        words = " ".join(f"{noise.getrandbits(48):x}" for _ in range(10_000))
        texts_in(source, **{f"noise{name}": f"# Noise\n\n{words}\n"})
    index_there = index_of(small_disk / "beside", embedder)
    async with running(root, embedder, index_of=index_there) as service:
        with pytest.raises(VectorIndexError, match="the disk is full"):
            await service.make(order(source))
    assert [*root.iterdir()] == []


async def test_a_killed_process_of_the_same_number_is_in_nobodys_way(
    root, source, tmp_path, embedder
):
    (root / f".made.{os.getpid()}.part/index").mkdir(parents=True)
    async with serving(root, tmp_path, embedder) as service:
        assert (await service.make(order(source))).documents == 2
    assert [path.name for path in root.iterdir()] == ["made"]


async def test_no_other_task_waits_while_a_table_is_removed(
    root, source, tmp_path, embedder, monkeypatch
):
    threads, remove = [], shutil.rmtree

    def removed(folder, *given, **named):
        if root in Path(folder).parents:
            threads.append(threading.current_thread())
        remove(folder, *given, **named)

    monkeypatch.setattr(shutil, "rmtree", removed)
    (root / f".made.{os.getpid()}.part/index").mkdir(parents=True)
    async with serving(root, tmp_path, embedder) as service:
        await service.make(order(source))
        made = len(threads)
        await service.make(order(source, is_appended=True))
    assert 0 < made < len(threads)
    assert threading.main_thread() not in threads


@pytest.mark.parametrize("is_appended", [False, True])
async def test_work_that_is_cancelled_leaves_nothing(
    root, source, tmp_path, embedder, monkeypatch, is_appended
):
    async with serving(root, tmp_path, embedder) as service:
        if is_appended:
            await service.make(order(source))
        before = sorted(root.rglob("*"))
        has_begun = anyio.Event()

        async def fill(*_):
            has_begun.set()
            await anyio.sleep_forever()

        monkeypatch.setattr(making, "fill", fill)
        job = await service.workshop.begin(order(source, is_appended=is_appended))
        await has_begun.wait()
        assert sorted(root.rglob("*")) != before
        service.workshop.cancel(job.number)
        await job.ended.wait()
        assert sorted(root.rglob("*")) == before


async def test_more_texts_are_added_and_those_of_the_same_paths_replaced(
    root, source, tmp_path, embedder
):
    async with serving(root, tmp_path, embedder) as service:
        await service.make(order(source))
        more = texts_in(tmp_path / "more", ships="# Boats\n\nRowing.\n", cars="# Cars\n\nRoads.\n")
        made = await service.make(order(more, is_appended=True))
        assert (made.documents, made.chunks) == (3, 3)
        assert sorted(await found(service, "rowing")) == ["cars.md", "ships.md", "trees.md"]
        assert (await found(service, "rowing"))[0] == "ships.md"
        texts = (await service.search(asked({"dataset": "made", "query": "sails"}))).results
        assert not any("sails" in result.snippet for result in texts)
    said = said_in(root / "made/manifest.json")
    assert (said["documentCount"], said["chunkCount"], said["name"]) == (3, 3, "made")
    assert sorted(path.name for path in (root / "made").iterdir()) == [
        "index-2", "manifest.json", "metadata.json",
    ]  # fmt: skip


async def test_a_dataset_holds_nothing_of_a_text_that_was_replaced(root, tmp_path, embedder):
    trees = {f"tree_{n}": f"# Tree\n\nIt has {n} leaves.\n" for n in range(60)}
    secrets = " ".join(token_hex(5) for _ in range(200))
    ships = f"# Ships\n\nxylophone7481 {secrets}\n"
    source = texts_in(tmp_path / "texts", ships=ships, **trees)
    async with serving(root, tmp_path, embedder) as service:
        await service.make(order(source))
        assert b"xylophone7481" in all_bytes(root)
        assert bytes_of_words(root) > 200 * 10
        more = texts_in(tmp_path / "more", ships="# Ships\n\nquagmire5372\n")
        await service.make(order(more, is_appended=True))
    assert b"quagmire5372" in all_bytes(root)
    assert b"xylophone7481" not in all_bytes(root)
    assert bytes_of_words(root) < 200 * 10


def bytes_of_words(folder):
    """The size of what words are found by, where they are packed, so that no byte shows them."""
    return sum(path.stat().st_size for path in folder.rglob("part_*_tokens.lance"))


def all_bytes(folder):
    return b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


async def test_what_is_added_to_is_left_as_it_was_until_it_is_done(
    root, source, tmp_path, embedder
):
    """A table that shares its files with the new one: they are never written to."""
    async with serving(root, tmp_path, embedder) as service:
        await service.make(order(source))
    kept = tmp_path / "kept"
    assert snapshot.link(root / "made/index", kept)
    before = {path: path.read_bytes() for path in kept.rglob("*") if path.is_file()}
    async with serving(root, tmp_path, embedder) as service:
        more = texts_in(tmp_path / "more", ships="# Boats\n\nRowing.\n")
        await service.make(order(more, is_appended=True))
    assert {path: path.read_bytes() for path in kept.rglob("*") if path.is_file()} == before


async def test_texts_of_another_model_are_not_added(root, source, tmp_path, embedder):
    async with serving(root, tmp_path, embedder) as service:
        await service.make(order(source))
    other = FakeEmbedder("other", DIMENSION)
    async with serving(root, tmp_path, other) as service:
        with pytest.raises(VectorIndexError, match="made with the model fake"):
            await service.make(order(source, is_appended=True))
    assert sorted(path.name for path in (root / "made").iterdir()) == [
        "index", "manifest.json", "metadata.json",
    ]  # fmt: skip


async def test_only_what_was_made_here_is_added_to(root, source, tmp_path, embedder):
    await put(root, "foreign")
    async with serving(root, tmp_path, embedder) as service:
        with pytest.raises(VectorIndexError, match="was not made by this program"):
            await service.make(order(source, "foreign", is_appended=True))
        with pytest.raises(SettingsError, match="does not exist; leave out --append"):
            await service.make(order(source, "ghost", is_appended=True))


async def test_what_is_being_made_is_shown_and_can_be_cancelled(root, source, tmp_path, embedder):
    embedder.hold()
    async with serving(root, tmp_path, embedder) as service:
        job = await service.workshop.begin(order(source))
        await eventually(lambda: job.what == "embedding chunks")
        assert (job.total, service.state, service.is_busy) == (2, "MAKING", True)
        service.workshop.cancel(job.number)
        await job.ended.wait()
        assert (job.error, job.made, service.is_busy) == ("cancelled", None, False)
        embedder.release()
        assert (await service.make(order(source))).chunks == 2
    assert [path.name for path in root.iterdir()] == ["made"]


async def test_one_is_made_after_the_other_and_not_too_many_wait(root, source, tmp_path, embedder):
    embedder.hold()
    async with serving(root, tmp_path, embedder) as service:
        jobs = [await service.workshop.begin(order(source, f"made-{n}")) for n in range(8)]
        with pytest.raises(BusyError, match="8 datasets are being made"):
            await service.workshop.begin(order(source, "one-more"))
        await eventually(lambda: jobs[0].what == "embedding chunks")
        assert {job.what for job in jobs[1:]} == {"waiting"}
        embedder.release()
        for job in jobs:
            await job.ended.wait()
        assert [job.error for job in jobs] == [""] * 8


@pytest.mark.parametrize("folder", ["", "relative", "/no/such/folder", "/", "~nobody-here/x", "\0"])
def test_a_dataset_is_made_of_a_folder_that_is_there_and_not_of_everything(folder):
    with pytest.raises(SettingsError, match="folder"):
        workshop.folder_of(folder, allow_broad=False)


@pytest.mark.parametrize("name", ["", "  ", "\ud800", "n" * 1_000])
@pytest.mark.parametrize("text", ["  ", "\ud800 text", "t" * 3_000, "\U0001f600" * 2_000])
async def test_whatever_is_said_of_a_dataset_it_can_be_served(
    root, source, tmp_path, embedder, name, text
):
    about = About.of("made", "\udcff", "r" * 900, name=name, description=text, license_=text)
    async with serving(root, tmp_path, embedder) as service:
        await service.make(Order(source, about))
        assert await found(service, "sails")


async def test_a_manifest_that_would_be_too_large_leaves_the_dataset_as_it_was(
    root, source, tmp_path, embedder
):
    async with serving(root, tmp_path, embedder) as service:
        await service.make(order(source))
        path = root / "made/manifest.json"
        write(path, said_in(path) | {"deep": [[]] * 2_000})
        before = sorted(path.parent.iterdir())
        with pytest.raises(VectorIndexError, match="its manifest would have"):
            await service.make(order(source, is_appended=True))
        assert sorted(path.parent.iterdir()) == before
        assert await found(service, "sails")


async def test_a_project_may_have_a_folder_called_index(root, source, tmp_path, embedder):
    (root.parent / "index").mkdir()
    (root.parent / "metadata.json").write_text("{}")
    async with serving(root, tmp_path, embedder) as service:
        await service.make(order(source))
        assert await found(service, "sails")


async def test_what_an_append_that_broke_off_has_left_goes_with_the_next(
    root, source, tmp_path, embedder
):
    async with serving(root, tmp_path, embedder) as service:
        await service.make(order(source))
        for name in ("index-7", ".index-9.123.part", ".index-9.456.part"):
            assert snapshot.link(root / "made/index", root / "made" / name)
        os.utime(root / "made/.index-9.123.part", (0, 0))
        await service.make(order(source, is_appended=True))
        names = sorted(path.name for path in (root / "made").iterdir())
        a_process_may_be_writing = ".index-9.456.part"
        assert names == [a_process_may_be_writing, "index-2", "manifest.json", "metadata.json"]
        assert snapshot.link(root / "made/index-2", root / "made/index-3")
        assert await service.delete("made") is None
    assert [*root.iterdir()] == []


async def test_of_those_who_add_to_a_dataset_at_once_one_does_and_the_others_are_told(
    root, source, tmp_path, embedder
):
    async def add(name):
        more = texts_in(tmp_path / name, **{name: f"# The {name}\n\nRoads.\n"})
        async with serving(root, tmp_path / name, embedder) as service:
            try:
                await service.make(order(more, is_appended=True))
            except VectorIndexError as error:
                assert "has changed meanwhile" in str(error)
            else:
                added.append(f"{name}.md")

    async with serving(root, tmp_path, embedder) as service:
        await service.make(order(source))
        for number in range(5):
            added = []
            async with anyio.create_task_group() as tasks:
                for name in (f"one{number}", f"two{number}"):
                    tasks.start_soon(add, name)
            assert added
            await service.registry.hurry()
            assert {*added} <= {*await found(service, "roads")}


async def test_a_dataset_that_is_deleted_while_it_is_added_to_stays_deleted(
    root, source, tmp_path, embedder
):
    async with serving(root, tmp_path, embedder) as service:
        await service.make(order(source))
        embedder.hold()
        more = texts_in(tmp_path / "more", cars="# Cars\n\nRoads.\n")
        job = await service.workshop.begin(order(more, is_appended=True))
        await eventually(lambda: job.what == "embedding chunks")
        delete(root, "made")
        embedder.release()
        await job.ended.wait()
        assert "cannot be added to" in job.error
    assert [*root.iterdir()] == []


async def test_another_process_that_makes_one_of_the_same_texts_is_not_disturbed(
    root, source, tmp_path, embedder
):
    make = maker(tmp_path, embedder)
    place = make(order(source), root).uri
    with FileLock(f"{place}.lock"):
        async with serving(root, tmp_path, embedder) as service:
            with pytest.raises(VectorIndexError, match="another process is making a dataset"):
                await service.make(order(source))


async def test_no_index_of_a_job_stays_however_it_ends(root, source, tmp_path, embedder):
    blank = texts_in(tmp_path / "blank", blank=" ")
    async with serving(root, tmp_path, embedder) as service:
        await service.make(order(source))
        assert indexes_in(tmp_path) == []
        with pytest.raises(VectorIndexError, match="No text content"):
            await service.make(order(blank, "other"))
        assert indexes_in(tmp_path) == []
        embedder.hold()
        new = texts_in(tmp_path / "new", new="# New\n\nNobody has embedded it.\n")
        job = await service.workshop.begin(order(new, "new"))
        await eventually(lambda: job.what == "embedding chunks")
        assert indexes_in(tmp_path) == ["new", "new.lock"]
        service.workshop.cancel(job.number)
        await job.ended.wait()
        assert indexes_in(tmp_path) == []


async def test_an_index_that_a_killed_process_has_left_goes_with_the_next_job(
    root, source, tmp_path, embedder
):
    for name in ("killed", "killed.4711.part", "working"):
        write(tmp_path / "beside" / name / "chunks.lance", b"texts of a person")
    write(tmp_path / "beside/killed.lock", b"")
    write(tmp_path / "beside/stuck.4711.part", b"no folder, so it is not removed")
    write(tmp_path / "beside/stuck.lock", b"")
    with FileLock(tmp_path / "beside/working.lock"):
        async with serving(root, tmp_path, embedder) as service:
            await service.make(order(source))
        # A lock stays as long as it leads to something.
        left = ["stuck.4711.part", "stuck.lock", "working", "working.lock"]
        assert indexes_in(tmp_path) == left


def indexes_in(tmp_path):
    """What lies where the indexes of texts do, but for the caches and states beside them."""
    names = {path.name for path in (tmp_path / "beside").iterdir()}
    return sorted(names - {"cache", "state"})


async def test_many_small_texts_make_few_files(root, tmp_path, embedder):
    texts = {f"text{number}": f"# Text {number}\n\nIt is small.\n" for number in range(500)}
    source = texts_in(tmp_path / "texts", **texts)
    async with serving(root, tmp_path, embedder) as service:
        made = await service.make(order(source))
        assert made.documents == 500
    assert len([*(root / "made").rglob("*")]) < 100


async def test_a_folder_that_holds_the_datasets_is_made_one_without_them(tmp_path):
    settings = Settings(embedding_model="m", embedding_cache_dir=str(tmp_path / "cache"))
    source = texts_in(tmp_path / "project", ships=SHIPS)
    root = source / "datasets"
    live = index_of_texts(order(source), root, settings)
    write(root / "other/README.md", b"# Other\n")
    write(source / "docs/datasets/more.md", b"# More\n")
    async with live.running(Role.VISITOR):
        run = await live.trigger(force_reindex=False)
        await run.finished.wait()
        async with live.reading() as (index, _):
            keys = {record.key for record in await index.store.records()}
    assert keys == {"ships.md", "docs/datasets/more.md"}


# -- a table that is served is our own -----------------------------------------------------------


async def test_a_table_that_is_deleted_under_searches_answers_until_it_is_noticed(
    root, source, tmp_path, embedder
):
    async with serving(root, tmp_path, embedder) as service:
        await service.make(order(source))
        shutil.rmtree(root / "made/index")
        assert (await found(service, "ship sails"))[0] == "ships.md"


async def test_where_files_have_one_name_only_a_table_is_served_where_it_lies(
    root, source, tmp_path, embedder, monkeypatch
):
    def refuse(*_):
        raise OSError("this file system knows no second names")

    monkeypatch.setattr(os, "link", refuse)
    async with serving(root, tmp_path, embedder) as service:
        await service.make(order(source))
        assert (await found(service, "ship sails"))[0] == "ships.md"


def test_a_link_in_a_table_leads_nowhere(tmp_path):
    (tmp_path / "secret").write_text("secret")
    table = tmp_path / "table"
    table.mkdir()
    (table / "dataset.json").write_text("{}")
    (table / "led").symlink_to(tmp_path / "secret")
    (table / "folder").symlink_to(tmp_path)
    assert snapshot.link(table, tmp_path / "kept")
    assert [path.name for path in (tmp_path / "kept").iterdir()] == ["dataset.json"]


# -- deleting ------------------------------------------------------------------------------------


def delete(root, id_):
    return keeping.delete(keeping.manifest_of(root, id_), root, root.parent)


async def test_a_dataset_is_deleted_with_its_folder(root, source, tmp_path, embedder):
    await put(root, "foreign")
    async with serving(root, tmp_path, embedder) as service:
        await service.make(order(source))
        assert await service.delete("made") is None
        assert [each.manifest.id for each in (await service.listed())[0]] == ["foreign"]
        with pytest.raises(UnknownError, match="Dataset 'made' does not exist"):
            await service.delete("made")
    assert delete(root, "foreign") is None
    assert [*root.iterdir()] == []


async def test_files_that_are_not_of_the_dataset_stay(root):
    folder = await put(root)
    mine = [folder / "thesis.md", folder / "index/mine.txt"]
    for file in mine:
        file.write_text("mine")
    assert delete(root, "sample") == folder
    assert sorted(path for path in folder.rglob("*") if path.is_file()) == sorted(mine)


@pytest.mark.parametrize("index", [".", "..", "mine"])
async def test_a_manifest_that_names_a_folder_of_somebodys_files_deletes_none(root, index):
    folder = root / "sample"
    write(folder / "metadata.json", {})
    write(folder / "manifest.json", manifest(index=index))
    place = folder / index
    write(place / "dataset.json", {})
    (place / "thesis.md").write_text("mine")
    (place / "pictures").mkdir()
    (place / "pictures/one.png").write_text("mine")
    delete(root, "sample")
    assert (place / "thesis.md").read_text() == "mine"
    assert (place / "pictures/one.png").read_text() == "mine"


async def test_texts_that_are_a_folder_are_none_and_their_files_stay(root):
    folder = await put(root)
    write(folder / "docs/thesis.md", b"mine")
    write(folder / "manifest.json", manifest(metadata="docs"))
    async with running(root) as service:
        [error] = (await service.listed())[1]
        assert "Metadata file is no file" in error.error
    delete(root, "sample")
    assert (folder / "docs/thesis.md").read_text() == "mine"


async def test_a_dataset_above_others_takes_none_of_theirs_along(root):
    inner = await put(root, "inner")
    metadata, index = "inner/metadata.json", "inner/index/docs.index"
    write(root / "manifest.json", manifest("outer", metadata=metadata, index=index))
    before = sorted(inner.rglob("*"))
    delete(root, "outer")
    assert sorted(inner.rglob("*")) == before
    async with running(root) as service:
        assert await found(service, "disk", "inner")


async def test_a_dataset_that_is_kept_elsewhere_is_only_taken_off_the_shelf(root, tmp_path):
    kept = await put(tmp_path / "kept")
    (root / "sample").symlink_to(kept)
    before = sorted(kept.rglob("*"))
    assert delete(root, "sample") is None
    assert not (root / "sample").is_symlink()
    assert sorted(kept.rglob("*")) == before


# -- asked by many -------------------------------------------------------------------------------


async def test_ten_ask_while_the_dataset_is_replaced_again_and_again(root, tmp_path, embedder):
    """No error, and each answer is of one of the versions, whole."""
    versions = [
        texts_in(tmp_path / f"v{n}", **{f"{n}{c}": f"# Ship {n}\n\nIt sails.\n" for c in "abc"})
        for n in range(4)
    ]
    answers = []

    async def ask(service, done):
        while not done.is_set():
            answers.append(await found(service, "ship sails"))
            await anyio.sleep(0.1)

    async with serving(root, tmp_path, embedder) as service:
        await service.make(order(versions[0]))
        done = anyio.Event()
        async with anyio.create_task_group() as tasks:
            for _ in range(10):
                tasks.start_soon(ask, service, done)
            for version in versions[1:]:
                with_it = order(version, f"new-{version.name}")
                await service.make(with_it)
                new = root / with_it.about.id
                said = said_in(new / "manifest.json") | {"id": "made"}
                write(new / "manifest.json", said)
                (root / "made").rename(root / ".old")
                new.rename(root / "made")
                shutil.rmtree(root / ".old")
                await eventually(lambda n=version.name: answers[-1][0].startswith(n[1:]))
            done.set()
    names = [{path[0] for path in answer} for answer in answers]
    assert all(len(version) == 1 for version in names), names
    assert all(len(answer) == 3 for answer in answers)
    assert set().union(*names) == set("0123")
