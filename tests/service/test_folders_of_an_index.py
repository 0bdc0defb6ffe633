"""A live index of several folders: each comes, goes and moves for itself."""

import errno
import os
import shutil
import sys
import threading
from contextlib import AsyncExitStack, asynccontextmanager

import anyio
import pytest
from fakes import FakeEmbedder
from serving import Gate, codebase_of, contents, differences, without_time
from waiting import PATIENCE_SECONDS, eventually
from writing import write

from vector_index_mcp.codebase.remedies import REMEDIES
from vector_index_mcp.engine.models.cache import EmbeddingCache
from vector_index_mcp.engine.ranking.query import Query
from vector_index_mcp.engine.ranking.search import search
from vector_index_mcp.errors import ProjectError
from vector_index_mcp.files import beneath
from vector_index_mcp.files.folder import Folder, Folders, Reading, Selection
from vector_index_mcp.indexing import keeper
from vector_index_mcp.indexing.answering.asking import ask
from vector_index_mcp.indexing.live import Live
from vector_index_mcp.indexing.options import Options
from vector_index_mcp.indexing.place import Place
from vector_index_mcp.indexing.preparing.recipe import Recipe, chunker_of
from vector_index_mcp.indexing.role import Role
from vector_index_mcp.indexing.service import LiveIndex
from vector_index_mcp.indexing.state import State
from vector_index_mcp.indexing.writing import rebuild
from vector_index_mcp.processes import detached

pytestmark = pytest.mark.anyio

NOTES = ("notes/one.md", "notes/three.md")
SECRET = "password = 'tR4nsp0rt9f8e7d6c'\n"


@pytest.fixture
def embedder():
    return FakeEmbedder()


@pytest.fixture
def docs(tmp_path):
    write(tmp_path / "docs", {"one.md": "# Apple\n", "deep/two.md": "# Banana\n"})
    return Folder(tmp_path / "docs", "docs")


@pytest.fixture
def notes(tmp_path):
    write(tmp_path / "notes", {"one.md": "# Cherry\n", "three.md": "# Date\n"})
    return Folder(tmp_path / "notes", "notes")


def index_of(folders, embedder, beside, place="index", *, owner="", uri="", chunk_chars=1_200):
    options = Options(
        recipe=Recipe(chunk_chars),
        quiet_seconds=0.01,
        longest_seconds=0.1,
        rescan_seconds=3_600.0,
        state_folder=beside / "state",
        remedies=REMEDIES,
    )
    where = Place(uri or str(beside / place), owner or f"folders of {place}")
    cache = EmbeddingCache(beside / "cache", 100_000_000)
    return LiveIndex(folders, where, options, embedder, cache)


async def settled(index):
    """Wait until nothing is left to be done."""

    async def is_settled():
        return index.indexer is not None and not index.progress.is_busy

    await eventually(is_settled)


@asynccontextmanager
async def running(index):
    async with index.running():
        run = await index.catching_up()
        with anyio.fail_after(PATIENCE_SECONDS):
            await run.finished.wait()
        await settled(index)
        yield index


@pytest.fixture
async def index(docs, notes, embedder, tmp_path):
    """A live index of both folders, complete."""
    async with running(index_of([docs, notes], embedder, tmp_path)) as index:
        yield index


async def fresh(folders, tmp_path):
    """What an index of the same folders holds that is built from scratch."""
    (tmp_path / "elsewhere").mkdir(exist_ok=True)
    place = f"index{len([*(tmp_path / 'elsewhere').iterdir()])}"
    other = index_of(folders, FakeEmbedder(), tmp_path / "elsewhere", place)
    async with running(other):
        pass
    return without_time(await contents(other.uri))


async def holds(index, *keys):
    async def is_so():
        return set(index.ledger.keys()) == set(keys)

    await eventually(is_so)
    await settled(index)


async def is_fresh(index, folders, tmp_path):
    expected = await fresh(folders, tmp_path)
    assert differences(without_time(await contents(index.uri)), expected) == []


ALL = ("docs/one.md", "docs/deep/two.md", "notes/one.md", "notes/three.md")


async def test_a_file_s_key_is_its_folder_s_name_and_its_path(index, docs, notes, tmp_path):
    assert set(index.ledger.keys()) == set(ALL)
    await is_fresh(index, [docs, notes], tmp_path)


async def test_each_folder_is_followed(index, docs, notes, tmp_path):
    write(docs.path, {"new.md": "# Elder\n", "one.md": "# Fig\n"})
    (notes.path / "three.md").unlink()

    await holds(index, *ALL[:3], "docs/new.md")
    await is_fresh(index, [docs, notes], tmp_path)


async def test_a_folder_may_join(index, docs, notes, tmp_path):
    write(tmp_path / "more", {"a.md": "# Grape\n"})
    more = Folder(tmp_path / "more", "more")

    index.add_folder(more)
    await holds(index, *ALL, "more/a.md")
    write(more.path, {"b.md": "# Honeydew\n"})
    await holds(index, *ALL, "more/a.md", "more/b.md")

    await is_fresh(index, [docs, notes, more], tmp_path)


async def test_what_joins_a_run_as_it_ends_is_a_part_of_it(index, tmp_path, monkeypatch):
    write(tmp_path / "more", {"a.md": "# Grape\n"})
    joined, check = [], Live.check_index

    async def add_at_the_end(live, *, each_file=False):
        await check(live, each_file=each_file)
        runs = index.indexer.runs
        if runs.current is not None and not runs.is_walk_due and not joined:
            index.add_folder(Folder(tmp_path / "more", "more"))
            joined.append(await index.trigger(force_reindex=False))

    monkeypatch.setattr(Live, "check_index", add_at_the_end)

    run = await index.trigger(force_reindex=False)
    with anyio.fail_after(PATIENCE_SECONDS):
        await run.finished.wait()

    assert joined == [run]
    assert "more/a.md" in set(index.ledger.keys())


async def test_a_folder_that_leaves_is_forgotten_and_no_other(index, docs, notes, tmp_path):
    index.remove_folder("docs")
    await holds(index, *ALL[2:])
    write(docs.path, {"unseen.md": "# Kiwi\n"})
    write(notes.path, {"seen.md": "# Lemon\n"})

    await holds(index, *ALL[2:], "notes/seen.md")
    await is_fresh(index, [notes], tmp_path)


async def test_a_renamed_folder_is_neither_read_nor_embedded_again(
    index, docs, notes, embedder, tmp_path, monkeypatch
):
    texts, asked = len(embedder.texts), []
    prepare = index.pipeline.crew.prepare_promptly

    async def noted(tasks):
        asked.extend(task.key for task in tasks)
        return await prepare(tasks)

    monkeypatch.setattr(index.pipeline.crew, "prepare_promptly", noted)

    index.rename_folder("docs", "handbook")
    await holds(index, "handbook/one.md", "handbook/deep/two.md", *ALL[2:])

    assert (len(embedder.texts), asked) == (texts, [])
    handbook = Folder(docs.path, "handbook")
    await is_fresh(index, [handbook, notes], tmp_path)
    write(docs.path, {"later.md": "# Mango\n"})
    await holds(index, "handbook/one.md", "handbook/deep/two.md", "handbook/later.md", *ALL[2:])
    await is_fresh(index, [handbook, notes], tmp_path)


async def test_nothing_of_a_removed_folder_stays_under_its_name_if_another_one_takes_that(
    index, docs, notes, tmp_path
):
    (docs.path / "one.md").write_bytes(b"\0\1\2")
    run = await index.trigger(force_reindex=False)
    await run.finished.wait()

    index.remove_folder("notes")
    index.rename_folder("docs", "notes")
    await holds(index, "notes/one.md", "notes/deep/two.md")

    await is_fresh(index, [Folder(docs.path, "notes")], tmp_path)


async def test_a_folder_out_of_reach_keeps_its_rows_while_the_other_goes_on(
    index, docs, notes, tmp_path
):
    unplugged = docs.path.rename(tmp_path / "unplugged")

    async def is_reported():
        return (await index.status()).absent

    assert "is gone" in (await eventually(is_reported))["docs"]
    write(notes.path, {"meanwhile.md": "# Nectarine\n"})
    await holds(index, *ALL, "notes/meanwhile.md")
    assert index.state.current is State.WATCHING

    write(unplugged, {"one.md": "# Orange\n"})
    (unplugged / "deep/two.md").unlink()
    unplugged.rename(docs.path)

    await holds(index, "docs/one.md", *ALL[2:], "notes/meanwhile.md")
    assert (await index.status()).absent == {}
    write(docs.path, {"after.md": "# Papaya\n"})
    await holds(index, "docs/one.md", "docs/after.md", *ALL[2:], "notes/meanwhile.md")
    await is_fresh(index, [docs, notes], tmp_path)


@pytest.mark.parametrize("code", [errno.EACCES, errno.EIO])
async def test_a_folder_that_cannot_be_listed_is_named_and_not_looked_at_for_ever(
    docs, notes, embedder, tmp_path, monkeypatch, code
):
    listed = beneath.entries

    def entries(root, folder):
        if (root, folder) == (notes.path, ""):
            raise OSError(code, os.strerror(code))
        return listed(root, folder)

    monkeypatch.setattr(beneath, "entries", entries)
    monkeypatch.setattr(keeper, "_LOSS_SECONDS", 0.01)
    checks, looks = [], []
    async with running(index_of([docs, notes], embedder, tmp_path)) as index:
        problem_of, look_again = index.looks.problem_of, index.indexer.look_again

        async def counted(folder):
            checks.append(folder)
            return await problem_of(folder)

        def noted(keys):
            looks.append(keys)
            look_again(keys)

        monkeypatch.setattr(index.looks, "problem_of", counted)
        monkeypatch.setattr(index.indexer, "look_again", noted)
        await eventually(lambda: len(checks) > 100)
        assert len(looks) <= 2
        said = (await index.status()).absent["notes"]
    assert f"the folder 'notes' at {notes.path} cannot be read ({os.strerror(code)}); " in said


async def test_a_folder_in_a_folder_that_cannot_be_listed_is_named_at_once_and_for_as_long(
    index, docs, monkeypatch
):
    listed, closed = beneath.entries, {"private"}

    def entries(root, folder):
        if root == docs.path and folder in closed:
            raise PermissionError(errno.EACCES, "Permission denied")
        return listed(root, folder)

    async def named(*keys):
        async def is_so():
            return (await index.status()).unreadable == [*keys]

        await eventually(is_so)

    monkeypatch.setattr(beneath, "entries", entries)
    write(docs.path, {"private/secret.md": "# Elderberry\n"})
    await named("docs/private/")
    closed.clear()
    (docs.path / "private").chmod(0o755)
    await named()
    await holds(index, "docs/one.md", "docs/deep/two.md", "docs/private/secret.md", *NOTES)
    closed.add("private")
    (docs.path / "private").chmod(0o700)
    await named("docs/private/")
    shutil.rmtree(docs.path / "private")
    await named()


async def test_a_scan_forgets_nothing_of_a_folder_out_of_reach(index, docs, tmp_path):
    docs.path.rename(tmp_path / "unplugged")

    run = await index.trigger(force_reindex=False)
    with anyio.fail_after(PATIENCE_SECONDS):
        await run.finished.wait()

    assert (run.error, set(index.ledger.keys())) == (None, set(ALL))


async def test_a_rebuild_keeps_the_rows_of_a_folder_out_of_reach(
    index, docs, notes, embedder, tmp_path
):
    texts, unplugged = len(embedder.texts), docs.path.rename(tmp_path / "unplugged")
    before, _ = await contents(index.uri)

    run = await index.trigger(force_reindex=True)
    with anyio.fail_after(PATIENCE_SECONDS):
        await run.finished.wait()

    assert (run.error, set(index.ledger.keys())) == (None, set(ALL))
    after, _ = await contents(index.uri)
    assert [row for row in after if row.startswith("docs/")] == [
        row for row in before if row.startswith("docs/")
    ]
    write(unplugged, {"one.md": "# Tangerine\n"})
    unplugged.rename(docs.path)

    async def is_read_again():
        return not (await index.status()).absent and not index.progress.is_busy

    await eventually(is_read_again)
    await is_fresh(index, [docs, notes], tmp_path)
    assert len(embedder.texts) == texts + 1


async def test_a_rebuild_cuts_the_files_of_a_folder_out_of_reach_once_it_is_back(
    tmp_path, docs, notes, embedder
):
    write(docs.path, {"one.md": "".join(f"Line {n} of the apple.\n\n" for n in range(60))})
    async with running(index_of([docs, notes], embedder, tmp_path)):
        pass
    unplugged = docs.path.rename(tmp_path / "unplugged")

    async with running(index_of([docs, notes], embedder, tmp_path, chunk_chars=200)) as index:
        unplugged.rename(docs.path)
        await (await index.trigger(force_reindex=False)).finished.wait()

    rows, _ = await contents(index.uri)
    cut = [
        row["extracted_text_chunk"] for row in rows.values() if row["file_path"] == "docs/one.md"
    ]
    assert len(cut) > 6
    assert max(map(len, cut)) <= 200


async def test_a_start_forgets_nothing_of_a_folder_out_of_reach(tmp_path, docs, notes, embedder):
    async with running(index_of([docs, notes], embedder, tmp_path)):
        pass
    unplugged = docs.path.rename(tmp_path / "unplugged")
    async with running(index_of([docs, notes], embedder, tmp_path)) as index:
        assert set(index.ledger.keys()) == set(ALL)
        write(notes.path, {"seen.md": "# Ugli\n"})
        await holds(index, *ALL, "notes/seen.md")
        unplugged.rename(docs.path)
        write(docs.path, {"back.md": "# Vanilla\n"})
        await holds(index, *ALL, "notes/seen.md", "docs/back.md")
        await is_fresh(index, [docs, notes], tmp_path)


async def test_all_folders_out_of_reach_are_an_error(index, docs, notes, tmp_path):
    for folder in (docs, notes):
        folder.path.rename(tmp_path / f"no {folder.name}")

    async def is_error():
        return index.state.current is State.ERROR

    await eventually(is_error)
    assert set(index.ledger.keys()) == set(ALL)
    with pytest.raises(ProjectError, match="is gone"):
        await index.reopen_if_lost()


def looking():
    """The threads that look at drives."""
    return [thread for thread in threading.enumerate() if thread.name == "look"]


@pytest.fixture
def impatient(monkeypatch):
    monkeypatch.setattr(detached, "DRIVE_SECONDS", 0.5)


@pytest.fixture
def remote(drive):
    """A folder on a drive that can hang."""
    write(drive.behind / "remote", {"far.md": "# Elder\n"})
    return Folder(drive.folder / "remote", "remote")


async def files_with(index, word):
    async def no_vector():
        return None

    async def find(store, question, most):
        return await search(store, Query(question.text), no_vector, most)

    answered = await ask(index, word, find, 5)
    return {hit.chunk.key for hit in answered.hits}


@pytest.mark.long
@pytest.mark.usefixtures("impatient")
async def test_a_drive_that_hangs_stops_neither_the_service_nor_the_other_folder(
    drive, remote, docs, embedder, tmp_path
):
    async with running(index_of([remote, docs], embedder, tmp_path)) as index:
        with drive.hanging(20) as hangs:
            for _ in range(3):
                assert await files_with(index, "apple") == {"docs/one.md"}
                await anyio.sleep(1)  # the keeper looks at the folders
                await eventually(lambda: len(looking()) == 1)
                assert "does not answer" in (await index.status()).absent["remote"]
            write(docs.path, {"new.md": "# Fig\n"})
            await holds(index, "remote/far.md", "docs/one.md", "docs/deep/two.md", "docs/new.md")
            assert hangs()
        (drive.behind / "remote").rename(drive.behind / "away")

        async def is_reported():
            return "is gone" in (await index.status()).absent.get("remote", "")

        await eventually(is_reported)
        (drive.behind / "away").rename(drive.behind / "remote")
        write(drive.behind / "remote", {"back.md": "# Grape\n"})
        await holds(
            index,
            *("remote/far.md", "remote/back.md"),
            *("docs/one.md", "docs/deep/two.md", "docs/new.md"),
        )


@pytest.mark.usefixtures("impatient")
async def test_a_drive_that_hangs_is_told_and_does_not_keep_the_service_from_ending(
    drive, embedder, tmp_path
):
    write(drive.behind, {"far.py": "elder = 1\n"})
    codebase = codebase_of(drive.folder, embedder, uri=str(tmp_path / "index"))
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(codebase.running())
        await settled(codebase.index)
        with drive.hanging(20) as hangs:
            with pytest.raises(ProjectError, match="does not answer"):
                await codebase.search("elder", 5)
            assert codebase.index.indexer.pending_path_count == 0  # nobody else looks in vain
            assert "does not answer" in (await codebase.index.status()).absent[""]
            await stack.aclose()
            assert hangs()


@pytest.mark.usefixtures("impatient")
async def test_an_index_on_a_drive_that_hangs_stops_nothing_else(drive, embedder):
    write(drive.behind, {"far.py": "elder = 1\n"})
    codebase = codebase_of(drive.folder, embedder)
    async with codebase.running():
        await settled(codebase.index)
        with drive.hanging(20) as hangs:
            await eventually(lambda: len(looking()) == 2)  # one for the index, one for the project
            assert hangs()
        await eventually(lambda: not looking())
        assert codebase.state == State.WATCHING


@pytest.mark.usefixtures("impatient")
async def test_a_changed_path_on_a_drive_that_hangs_counts_as_one_to_index(
    drive, embedder, tmp_path
):
    write(drive.behind, {"far.py": "elder = 1\n"})
    codebase = codebase_of(drive.folder, embedder, uri=str(tmp_path / "index"))
    async with codebase.running():
        await settled(codebase.index)

        async def is_as_it_was():
            codebase.index.indexer.queue.touch(["far.py"])
            return await codebase.pending() == 0

        await eventually(is_as_it_was)
        with drive.hanging(20) as hangs:
            assert not await is_as_it_was()
            assert hangs()


@pytest.mark.usefixtures("impatient")
async def test_an_index_that_is_lost_while_a_drive_hangs_is_opened_again(
    drive, remote, docs, embedder, tmp_path
):
    async with running(index_of([remote, docs], embedder, tmp_path)) as index:
        live = index.indexer.live
        with drive.hanging(20) as hangs:
            (tmp_path / "index").rename(tmp_path / "moved")
            await live.lost.wait()

            async def is_let_go():
                return index.indexer is None or index.indexer.live is not live

            await eventually(is_let_go)
            assert hangs()
        await holds(index, "remote/far.md", "docs/one.md", "docs/deep/two.md")


@pytest.mark.skipif(sys.platform != "linux", reason="counts watches of inotify")
async def test_a_file_in_two_folders_has_two_keys_and_one_watch(index, docs, notes, tmp_path):
    deep = Folder(docs.path / "deep", "deep")
    watches = index.freshness._watch._observer
    before = len(watches._path_of)

    index.add_folder(deep)
    await holds(index, *ALL, "deep/two.md")
    assert len(watches._path_of) == before
    write(docs.path, {"deep/two.md": "# Quince\n", "deep/new.md": "# Raspberry\n"})

    await holds(index, *ALL, "deep/two.md", "deep/new.md", "docs/deep/new.md")
    await is_fresh(index, [docs, notes, deep], tmp_path)
    index.remove_folder("docs")
    await holds(index, *ALL[2:], "deep/two.md", "deep/new.md")
    write(docs.path, {"deep/last.md": "# Strawberry\n"})
    await holds(index, *ALL[2:], "deep/two.md", "deep/new.md", "deep/last.md")


async def test_an_inner_folder_is_followed_where_the_outer_one_ignores_it(tmp_path, embedder):
    rules = {".gitignore": "build/\n"}
    write(tmp_path / "outer", rules | {"a.md": "# A\n", "build/inner/b.md": "# B\n"})
    outer = Folder(tmp_path / "outer", "outer")
    inner = Folder(tmp_path / "outer/build/inner", "inner")
    seen = ["outer/.gitignore", "outer/a.md", "inner/b.md"]
    async with running(index_of([outer, inner], embedder, tmp_path)) as index:
        await holds(index, *seen)
        write(inner.path, {"c.md": "# C\n", "deep/d.md": "# D\n"})
        seen += ["inner/c.md", "inner/deep/d.md"]
        await holds(index, *seen)
        write(outer.path, {".gitignore": "nothing\n"})
        doubled = [f"outer/build/{key}" for key in seen if key.startswith("inner/")]
        await holds(index, *seen, *doubled)
        write(outer.path, rules)
        await holds(index, *seen)
        write(inner.path, {"deep/e.md": "# E\n"})
        await holds(index, *seen, "inner/deep/e.md")


async def test_only_what_matches_a_mask_belongs_to_a_folder(tmp_path, embedder):
    write(tmp_path / "docs", {"a.md": "# A\n", "a.py": "a = 1\n", "deep/b.md": "# B\n"})
    docs = Folder(tmp_path / "docs", "docs", Selection(mask="**/*.md"))
    async with running(index_of([docs], embedder, tmp_path)) as index:
        await holds(index, "docs/a.md", "docs/deep/b.md")
        write(docs.path, {"c.txt": "C\n", "c.md": "# C\n"})
        await holds(index, "docs/a.md", "docs/deep/b.md", "docs/c.md")


@pytest.mark.parametrize("masks", [True, False])
async def test_how_a_folder_is_read_is_its_own(tmp_path, embedder, masks):
    write(tmp_path / "docs", {"a.md": SECRET})
    docs = Folder(tmp_path / "docs", "docs", reading=Reading(masks_credentials=masks))
    async with running(index_of([docs], embedder, tmp_path)) as index:
        uri = index.uri
    rows, _ = await contents(uri)
    assert ("tR4nsp0rt" in rows["docs/a.md::0"]["extracted_text_chunk"]) is not masks


async def test_a_folder_that_is_read_otherwise_than_before_is_read_again(
    tmp_path, docs, notes, embedder
):
    write(docs.path, {"a.md": SECRET})
    unmasked = Folder(docs.path, "docs", reading=Reading(masks_credentials=False))
    async with running(index_of([unmasked, notes], embedder, tmp_path)):
        pass
    again = index_of([docs, notes], embedder, tmp_path)
    async with running(again):
        pass
    rows, _ = await contents(again.uri)
    assert "tR4nsp0rt" not in str(rows)
    assert without_time(await contents(again.uri)) == await fresh([docs, notes], tmp_path)


async def test_a_folder_that_is_read_otherwise_while_all_is_built_anew_is_read_again(
    tmp_path, docs, embedder, monkeypatch
):
    monkeypatch.setattr(rebuild, "FILES_PER_BATCH", 1)
    write(docs.path, {f"{name}.md": SECRET for name in "abcd"})
    unmasked = Folder(docs.path, "docs", reading=Reading(masks_credentials=False))
    index = index_of([unmasked], embedder, tmp_path)
    rebuilding = Gate(index, lambda store: store.generation == 1)
    async with running(index):
        run = await index.trigger(force_reindex=True)
        await rebuilding.wait()
        index.remove_folder("docs")
        index.add_folder(docs)
        rebuilding.open()
        await run.finished.wait()
        await settled(index)
    rows, _ = await contents(index.uri)
    assert len(rows) == 6
    assert "tR4nsp0rt" not in str(rows)


@pytest.mark.parametrize("change", ["left", "renamed"])
async def test_what_became_of_folders_while_nobody_looked_is_found_at_the_next_start(
    tmp_path, docs, notes, embedder, change
):
    async with running(index_of([docs, notes], embedder, tmp_path)):
        pass
    texts = len(embedder.texts)
    folders = [notes] if change == "left" else [Folder(docs.path, "handbook"), notes]
    again = index_of(folders, embedder, tmp_path)
    async with running(again):
        pass
    assert len(embedder.texts) == texts
    assert without_time(await contents(again.uri)) == await fresh(folders, tmp_path)


def test_what_a_codebase_s_index_says_of_its_chunks_is_what_it_always_said(tmp_path):
    """So that an index of the version before is opened, and nothing in it read again."""
    chunker = chunker_of(Recipe(1_200), Folders([Folder(tmp_path)]))
    assert chunker.endswith(" chars=1200 bytes=1000000")
    assert Folder(tmp_path).key_of("a/b.py") == "a/b.py"


@pytest.mark.parametrize("name", ["", "a/b", ".", "..", "tab\t", "docs"])
async def test_names_that_keys_could_not_be_told_apart_by_are_refused(index, tmp_path, name):
    with pytest.raises(ProjectError):
        index.add_folder(Folder(tmp_path, name))
    with pytest.raises(ProjectError):
        index.rename_folder("notes", name)
    assert [folder.name for folder in index.folders] == ["docs", "notes"]


async def test_somebody_else_s_index_is_not_adopted(tmp_path, docs, embedder):
    async with running(index_of([docs], embedder, tmp_path)) as index:
        uri = index.uri
    stranger = index_of([docs], embedder, tmp_path, owner="a stranger", uri=uri)
    async with stranger.running(Role.VISITOR):
        await stranger.catching_up()
        assert "belongs to" in stranger.state.error


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere names are Unicode")
async def test_a_name_that_is_no_unicode_follows_its_folder_s_new_name(index, tmp_path, caplog):
    (tmp_path / "docs" / os.fsdecode(b"\xff.md")).write_text("# Elder\n", "utf-8")
    await holds(index, *ALL, "docs/\udcff.md")
    live, store = index.indexer.live, index.indexer.live.index.store
    index.rename_folder("docs", "papers")
    await holds(index, *(key.replace("docs/", "papers/") for key in (*ALL, "docs/\udcff.md")))
    assert index.ledger.get("papers/\udcff.md").state == "skipped"
    assert index.indexer.live is live
    assert live.index.store is store
    assert "damaged" not in caplog.text
