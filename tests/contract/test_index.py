"""What an index promises across starts, rebuilds, changes of model and damage."""

import json
import stat
import sys
from dataclasses import asdict
from pathlib import Path

import anyio
import lancedb
import numpy as np
import pyarrow as pa
import pytest
from documents import document
from hypothesis import example, given
from hypothesis import strategies as st

from vector_index_mcp.engine.store import Index
from vector_index_mcp.engine.store.index import Manifest, discard, manifest_of
from vector_index_mcp.engine.store.reach import is_local
from vector_index_mcp.engine.store.schema import FORMAT, READABLE_FORMATS
from vector_index_mcp.engine.types import FileRecord, ModelIdentity
from vector_index_mcp.errors import DamagedIndexError, OtherVersionError, Problem, StoreError

pytestmark = pytest.mark.anyio

MODEL = ModelIdentity("all-MiniLM-L6-v2", "ab" * 32, 4)
MANIFEST = Manifest(owner="/project", chunker="lines-1", model=MODEL)


def tables(folder):
    return {path.name for path in Path(folder).glob("*.lance")}


def below(folder):
    """Every file and folder below `folder`, by its relative path."""
    return {path.relative_to(folder).as_posix(): path for path in Path(folder).rglob("*")}


@pytest.fixture
def uri(tmp_path):
    return str(tmp_path / "index")


@pytest.fixture
async def index(uri):
    index = await Index.create(uri, MANIFEST)
    await index.store.replace([document("a", "word one"), document("b", "word two")], 1, {})
    await index.store.put_records([FileRecord("a", (1, 2, 3), "hash", 1, "indexed", "")])
    yield index
    index.close()


async def keys_found(store):
    return sorted(found.chunk.key for found in await store.matching(["word"], 10))


async def reopened(uri):
    """Open the index, look at it and close it: (manifest, keys found)."""
    index = await Index.open(uri)
    found = await keys_found(index.store)
    index.close()
    return index.manifest, found


@pytest.mark.parametrize("place", ["nowhere", "a/b/c", "empty"])
async def test_where_there_is_no_index_none_is_opened_and_none_is_made(tmp_path, place):
    (tmp_path / "empty").mkdir()
    before = below(tmp_path)
    assert await Index.open(str(tmp_path / place)) is None
    assert below(tmp_path) == before


async def test_a_folder_with_other_files_holds_no_index(tmp_path):
    (tmp_path / "notes.txt").write_text("notes", encoding="utf-8")
    assert await Index.open(str(tmp_path)) is None


@pytest.mark.parametrize("model", [None, MODEL])
async def test_an_index_opens_again_as_it_was_made(uri, model):
    manifest = Manifest(owner="/it's", chunker="lines-1:1200", generation=4, model=model)
    (await Index.create(uri, manifest)).close()
    index = await Index.open(uri)
    assert index.manifest == manifest
    assert index.store.generation == 4
    assert index.store.dimension == (model and 4)
    index.close()


async def test_an_index_hides_itself_from_git(index, uri):
    assert (Path(uri) / ".gitignore").read_text(encoding="utf-8") == "*\n"


@pytest.mark.skipif(sys.platform == "win32", reason="has other rights than modes")
async def test_an_index_is_for_its_user_alone(index, uri):
    """It has the texts of all files, and some of them may be for this user alone."""
    assert stat.S_IMODE((await anyio.Path(uri).stat()).st_mode) == 0o700


async def test_a_folder_that_was_there_is_its_owners_to_ignore(tmp_path):
    (tmp_path / "notes.txt").write_text("notes", encoding="utf-8")
    (await Index.create(str(tmp_path), MANIFEST)).close()
    assert not (tmp_path / ".gitignore").exists()


@pytest.mark.slow
async def test_creating_an_index_replaces_the_one_that_is_there(index, uri):
    other = await Index.create(uri, Manifest(owner="/other", chunker="lines-2"))
    assert await other.store.count() == 0
    other.close()
    manifest, found = await reopened(uri)
    assert (manifest.owner, manifest.model, found) == ("/other", None, [])


@pytest.mark.slow
async def test_the_old_tables_answer_while_new_ones_are_filled(index, uri):
    rebuilt = await index.begin_rebuild()
    await rebuilt.replace([document("c", "word three")], 1, {})
    assert await keys_found(index.store) == ["a", "b"]
    assert (await reopened(uri))[1] == ["a", "b"]
    await index.swap(rebuilt, "lines-2")
    assert await keys_found(index.store) == ["c"]
    manifest, found = await reopened(uri)
    assert (manifest.generation, manifest.chunker, manifest.model) == (1, "lines-2", MODEL)
    assert found == ["c"]


@pytest.mark.slow
async def test_a_search_that_began_before_the_swap_is_answered_from_the_old_tables(index):
    old = index.store
    rebuilt = await index.begin_rebuild()
    await index.swap(rebuilt, "lines-2")
    assert await keys_found(old) == ["a", "b"]
    old.close()


@pytest.mark.slow
async def test_searches_never_fail_while_rebuilds_are_swapped_in(index):
    documents = [document(str(number), "word") for number in range(20)]
    answers = []

    async def search_until(done):
        while not done.is_set():
            store = index.store
            answers.append(await keys_found(store))
            await store.nearest(np.ones(4, "f4"), 5)
            searched.set()

    done, searched = anyio.Event(), anyio.Event()
    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(search_until, done)
            for _ in range(6):
                rebuilt = await index.begin_rebuild()
                await rebuilt.replace(documents, 1, {})
                await index.swap(rebuilt, "lines-1")
                # The next rebuild drops the tables that a search may be reading until here.
                searched = anyio.Event()
                await searched.wait()
            done.set()
    assert len(answers) > 6
    assert all(answer for answer in answers)


@pytest.mark.slow
async def test_an_abandoned_rebuild_is_dropped_as_a_leftover(index, uri):
    before = tables(uri)
    (await index.begin_rebuild()).close()
    assert len(tables(uri)) > len(before)
    await index.drop_leftovers()
    assert tables(uri) == before
    assert await keys_found(index.store) == ["a", "b"]


@pytest.mark.slow
async def test_a_second_rebuild_starts_from_nothing(index):
    abandoned = await index.begin_rebuild()
    await abandoned.replace([document("x", "word")], 1, {})
    abandoned.close()
    rebuilt = await index.begin_rebuild()
    assert await rebuilt.count() == 0
    rebuilt.close()


@pytest.mark.slow
async def test_at_most_two_generations_lie_on_the_disk(index, uri):
    for _ in range(4):
        await index.swap(await index.begin_rebuild(), "lines-1")
        assert len(tables(uri)) <= 5
    await index.drop_leftovers()
    assert tables(uri) == {"manifest.lance", "chunks_4.lance", "files_4.lance"}


async def test_dropping_leftovers_touches_no_table_of_somebody_else(index, uri):
    db = await lancedb.connect_async(uri)
    await db.create_table("recipes", pa.table({"a": [1]}))
    db.close()
    await index.drop_leftovers()
    assert "recipes.lance" in tables(uri)


@pytest.mark.slow
@pytest.mark.parametrize("dimension", [4, 6])
async def test_another_model_empties_the_vectors_and_keeps_the_texts(index, uri, dimension):
    other = ModelIdentity("other", "cd" * 32, dimension)
    await index.set_model(other)
    assert index.store.dimension == dimension
    manifest, found = await reopened(uri)
    assert manifest.model == other
    assert found == ["a", "b"]
    assert {holding.unembedded for holding in (await index.store.holdings()).values()} == {1}


async def test_a_rebuild_takes_the_model_of_the_index(index):
    await index.set_model(ModelIdentity("other", "cd" * 32, 6))
    rebuilt = await index.begin_rebuild()
    assert rebuilt.dimension == 6
    rebuilt.close()


@pytest.mark.slow
async def test_an_index_can_be_given_to_a_project_that_moved(index, uri):
    await index.adopt("/elsewhere")
    manifest, found = await reopened(uri)
    assert (manifest.owner, found) == ("/elsewhere", ["a", "b"])
    assert manifest.model == MODEL


async def test_the_size_is_that_of_the_files(index, uri):
    size = await index.size_bytes()
    assert size == sum(path.stat().st_size for path in below(uri).values() if path.is_file())
    assert size > 1000


@pytest.mark.slow
async def test_the_size_can_be_told_while_tables_come_and_go(index):
    async def measure_until(done):
        while not done.is_set():
            assert await index.size_bytes() > 0

    done = anyio.Event()
    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            for _ in range(2):
                tasks.start_soon(measure_until, done)
            for _ in range(10):
                (await index.begin_rebuild()).close()
                await index.drop_leftovers()
            done.set()


@pytest.mark.parametrize(
    ("uri", "local"),
    [("/a/b", True), ("a", True), (".lancedb", True), ("s3://bucket/a", False), ("db://a", False)],
)
async def test_a_place_is_local_unless_it_names_a_scheme(uri, local):
    assert is_local(uri) == local


async def write_manifest(uri, *rows):
    db = await lancedb.connect_async(uri)
    table = pa.table({"json": pa.array(rows, pa.string())})
    await db.create_table("manifest", table, mode="overwrite")
    db.close()


@pytest.mark.slow
@pytest.mark.parametrize("fields", [{}, {"owner": 1, "unheard of": [2]}])
@pytest.mark.parametrize("number", [0, min(READABLE_FORMATS) - 1, FORMAT + 1, 99])
async def test_an_index_of_another_format_is_not_opened(index, uri, number, fields):
    await write_manifest(uri, json.dumps({"format": number, **fields}))
    with pytest.raises(OtherVersionError, match="by another version of this program"):
        await Index.open(uri)


@pytest.mark.slow
async def test_an_index_without_details_is_read_and_written_as_it_is(index, uri):
    details = FileRecord("b", (1, 2, 3), "hash", 1, "indexed", "", details="{}")
    index.close()
    db = await lancedb.connect_async(uri)
    await (await db.open_table("files")).drop_columns(["details"])
    await write_manifest(uri, json.dumps({**asdict(index.manifest), "format": 4}))

    old = await Index.open(uri)
    assert old is not None
    await old.store.put_records([details])
    assert {r.key: r.details for r in await old.store.records()} == {"a": "", "b": ""}
    rebuilt = await old.begin_rebuild()
    await rebuilt.put_records([details])
    await old.swap(rebuilt, "other")
    again = await Index.open(uri)
    assert again is not None
    assert again.manifest.format == FORMAT
    assert await again.store.records() == [details]
    for each in (old, rebuilt, again):
        each.close()


@pytest.mark.slow
@pytest.mark.parametrize(
    "rows",
    [
        [],
        [""],
        ["{"],
        ["[]"],
        ["7"],
        ["null"],
        ["{}"],
        ['{"format": "5"}'],
        ['{"format": [5]}'],
        ['{"format": null}'],
        ['{"format": 1e400}'],
        [f'{{"format": {FORMAT}}}'],
        [f'{{"format": {FORMAT}, "owner": "", "chunker": "", "model": {{"name": "x"}}}}'],
        [f'{{"format": {FORMAT}, "owner": "", "chunker": "", "model": null, "colour": 1}}'],
    ],
)
async def test_a_manifest_that_makes_no_sense_is_damage(index, uri, rows):
    await write_manifest(uri, *rows)
    with pytest.raises(DamagedIndexError) as caught:
        await Index.open(uri)
    assert caught.value.problem is Problem.INDEX_DAMAGED


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner),
    max_leaves=5,
)
fields = st.fixed_dictionaries(
    {"format": st.just(FORMAT) | anything},
    optional=dict.fromkeys(["owner", "chunker", "generation"], anything | st.just(""))
    | {
        "model": st.none()
        | anything
        | st.fixed_dictionaries({"name": anything, "digest": anything, "dimension": anything})
    },
)


@pytest.mark.slow
@given(st.text() | anything.map(json.dumps) | fields.map(json.dumps))
@example("[" * 100_000)
@example(f'{{"format": {FORMAT}, "owner": "", "chunker": "", "generation": "x", "model": null}}')
def test_any_manifest_makes_sense_or_is_damage(text):
    try:
        manifest = manifest_of(text)
    except DamagedIndexError:
        return
    if manifest.format == FORMAT:
        assert manifest.generation >= 0
        assert {type(manifest.owner), type(manifest.chunker)} == {str}


def newest(folder, pattern):
    """The file LanceDB reads first: names of later manifests sort before earlier ones."""
    return min(Path(folder).glob(pattern))


def _truncate(path):
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def _empty(path):
    path.write_bytes(b"")


def _garble(path):
    path.write_bytes(b"\xa5" * path.stat().st_size)


def _remove(path):
    path.unlink()


@pytest.mark.slow
@pytest.mark.parametrize("damage", [_truncate, _empty, _garble])
@pytest.mark.parametrize("table", ["manifest", "chunks", "files"])
async def test_a_damaged_table_is_recognised_and_discarding_makes_room(index, uri, table, damage):
    damage(newest(uri, f"{table}.lance/_versions/*.manifest"))
    with pytest.raises(DamagedIndexError) as caught:
        await read_everything(uri)
    assert caught.value.problem is Problem.INDEX_DAMAGED
    await discard(uri)
    assert await Index.open(uri) is None
    (await Index.create(uri, MANIFEST)).close()
    assert await reopened(uri) == (MANIFEST, [])


@pytest.mark.parametrize("damage", [_truncate, _empty, _garble, _remove])
@pytest.mark.parametrize("table", ["manifest", "chunks", "files"])
async def test_damaged_rows_are_recognised_when_they_are_read(index, uri, table, damage):
    for name, path in below(uri).items():
        if name.startswith(f"{table}.lance/data/"):
            damage(path)
    with pytest.raises(DamagedIndexError) as caught:
        await read_everything(uri)
    assert caught.value.problem is Problem.INDEX_DAMAGED


@pytest.mark.slow
@pytest.mark.parametrize("table", ["chunks", "files"])
async def test_a_table_that_is_gone_is_damage(index, uri, table):
    await anyio.to_thread.run_sync(_remove_folder, Path(uri) / f"{table}.lance")
    with pytest.raises(DamagedIndexError):
        await Index.open(uri)


def _remove_folder(folder):
    for path in sorted(folder.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    folder.rmdir()


async def read_everything(uri):
    index = await Index.open(uri)
    try:
        await index.store.records()
        await index.store.holdings()
        await index.store.matching(["word"], 5)
    finally:
        index.close()


@pytest.mark.slow
async def test_discarding_leaves_the_files_of_others_alone(index, uri):
    folder = Path(uri)
    (folder / "notes.txt").write_text("notes", encoding="utf-8")
    (folder / "drawings").mkdir()
    (folder / "drawings" / "a.lance.txt").write_text("drawing", encoding="utf-8")
    await discard(uri)
    assert set(below(folder)) == {".gitignore", "notes.txt", "drawings", "drawings/a.lance.txt"}


@pytest.mark.parametrize("uri", ["s3://bucket/index", "db://index"])
async def test_only_a_local_index_is_discarded(uri):
    with pytest.raises(StoreError) as caught:
        await discard(uri)
    assert caught.value.problem is Problem.INDEX_UNREADABLE


@pytest.mark.parametrize("place", ["file", "file/index"])
async def test_a_place_that_cannot_be_a_folder_is_an_error_that_says_so(tmp_path, place):
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match="cannot be written") as caught:
        await Index.create(str(tmp_path / place), MANIFEST)
    assert caught.value.problem is Problem.INDEX_UNWRITABLE


async def test_below_a_file_there_is_no_index(tmp_path):
    (tmp_path / "file").touch()
    assert await Index.open(str(tmp_path / "file" / "index")) is None


async def test_a_remote_place_that_does_not_exist_is_an_error_of_ours():
    with pytest.raises(StoreError):
        await Index.open("no-such-scheme://somewhere")
