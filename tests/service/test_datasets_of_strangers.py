"""A dataset in our own format, but made by a stranger, is searched without harm or refused."""

import json
import os
import shutil
import sys

import lancedb
import numpy as np
import pyarrow as pa
import pytest
from fakes import FakeEmbedder
from lancedb.index import FTS
from shelves import DIMENSION, MODEL, index_of, order, running
from waiting import eventually

from vector_index_mcp.datasets import conversion, finding, proving, rows, snapshot
from vector_index_mcp.datasets.arguments import asked
from vector_index_mcp.datasets.refusal import BadDatasetError, Refusal
from vector_index_mcp.engine.store.schema import unread_chunk
from vector_index_mcp.engine.store.unread import Unread
from vector_index_mcp.engine.types import Candidate
from vector_index_mcp.errors import VectorIndexError

pytestmark = [pytest.mark.long, pytest.mark.anyio]

COUNT = 12
DAMAGED = "its table is damaged or incomplete"
ELSEWHERE = "its table names files that lie elsewhere"


@pytest.fixture
def embedder():
    return FakeEmbedder(MODEL, DIMENSION)


@pytest.fixture
async def root(tmp_path, embedder):
    """A folder with one dataset, `made`, as this program makes it."""
    texts = tmp_path / "texts"
    texts.mkdir()
    for number in range(COUNT):
        (texts / f"{number}.md").write_text(f"# Text {number}\n\nShip {number} sails.\n")
    root = tmp_path / "datasets"
    root.mkdir()
    async with serving(root, tmp_path, embedder) as service:
        await service.make(order(texts))
    return root


def serving(root, tmp_path, embedder):
    return running(root, embedder, index_of=index_of(tmp_path / "beside", embedder))


async def refusal_of(root):
    """Why the dataset is not served."""
    async with running(root) as service:

        async def errors():
            ready, found = await service.listed()
            assert ready == []
            return found

        [error] = await eventually(errors)
        return error.error


async def rewritten(root, column, values):
    """Write the table anew with other values in a column, and an index of its words."""
    db = await lancedb.connect_async(str(root / "made/index"))
    table = await db.open_table("chunks")
    known = await table.query().to_arrow()
    at = known.schema.get_field_index(column)
    changed = known.set_column(at, pa.field(column, values.type), values)
    table = await db.create_table("chunks", changed, mode="overwrite", on_bad_vectors="fill")
    await table.create_index("search_text", config=FTS())


def vectors(value):
    numbers = np.full((COUNT, DIMENSION), DIMENSION**-0.5, "<f4")
    numbers[-1] = value
    return pa.FixedSizeListArray.from_arrays(pa.array(numbers.ravel()), DIMENSION)


@pytest.mark.parametrize(
    ("column", "values"),
    [
        ("scope", pa.array([*["Title"] * (COUNT - 1), "x" * 5_000_000])),
        ("extracted_text_chunk", pa.array([*["Text"] * (COUNT - 1), "x" * 5_000_000])),
        ("scope", pa.array([*["Title"] * (COUNT - 1), None])),
        ("scope", pa.array(range(COUNT))),
        ("metadata", pa.array(["text"] * COUNT)),
        ("vector", vectors(1e30)),
        ("vector", vectors(0.0)),
    ],
    ids=["title", "text", "no title", "numbers", "metadata", "long vector", "no direction"],
)
async def test_rows_that_this_program_does_not_write_are_refused_wherever_they_stand(
    root, column, values
):
    await rewritten(root, column, values)
    assert DAMAGED in await refusal_of(root)


def test_what_a_row_shows_is_in_the_bounds_of_the_contract():
    row = {"scope": "t" * 999, "file_path": f"7/{'p' * 999}", "extracted_text_chunk": "x" * 9_999}
    shown = rows.shown(row)
    assert [len(text) for text in (shown.title, shown.path, shown.snippet)] == [256, 512, 2_048]
    shown = rows.shown({"scope": "", "file_path": "7/docs/a.md", "extracted_text_chunk": ""})
    assert (shown.title, shown.path) == ("a.md", "docs/a.md")
    shown = rows.shown({"scope": "", "file_path": "7/", "extracted_text_chunk": ""})
    assert (shown.title, shown.path) == ("document-7", "document-7")


async def test_an_index_of_words_that_names_rows_which_are_not_there_is_damage(root, monkeypatch):
    async def matching(*_):
        return [Candidate(unread_chunk(1 << 40), 1.0)]

    async with running(root) as service:
        asked_for = asked({"dataset": "made", "query": "ship"})
        assert (await service.search(asked_for)).results
        with monkeypatch.context() as patched:
            patched.setattr(Unread, "matching", matching)
            with pytest.raises(Refusal, match="dataset 'made' cannot be read"):
                await service.search(asked_for)
        assert (await service.search(asked_for)).results


# -- a table leads nowhere -------------------------------------------------------------------


async def lead_elsewhere(root, tmp_path):
    """Make the table one whose files lie elsewhere: only its manifest stays."""
    elsewhere = tmp_path / "elsewhere/chunks.lance"
    elsewhere.parent.mkdir()
    shutil.move(root / "made/index/chunks.lance", elsewhere)
    db = await lancedb.connect_async(str(root / "made/index"))
    await db.clone_table("chunks", str(elsewhere))
    return elsewhere


@pytest.mark.parametrize("is_linked", [True, False])
async def test_a_table_whose_files_lie_elsewhere_is_refused(root, tmp_path, monkeypatch, is_linked):
    await lead_elsewhere(root, tmp_path)
    if not is_linked:
        monkeypatch.setattr(os, "link", refused)
    assert ELSEWHERE in await refusal_of(root)


def refused(*_):
    raise OSError("this file system knows no second names")


async def test_a_table_that_names_a_bucket_is_refused_before_anybody_asks_for_it(root, tmp_path):
    elsewhere = str(await lead_elsewhere(root, tmp_path)).encode()
    [manifest] = (root / "made/index/chunks.lance/_versions").glob("*.manifest")
    bucket = b"s3://bucket/".ljust(len(elsewhere), b"x")
    manifest.write_bytes(manifest.read_bytes().replace(elsewhere, bucket))
    assert ELSEWHERE in await refusal_of(root)


async def test_texts_are_not_added_to_a_table_whose_files_lie_elsewhere(root, tmp_path, embedder):
    await lead_elsewhere(root, tmp_path)
    before = sorted(root.rglob("*"))
    async with serving(root, tmp_path, embedder) as service:
        with pytest.raises(VectorIndexError, match=f"cannot be added to: {ELSEWHERE}"):
            await service.make(order(tmp_path / "texts", is_appended=True))
    assert sorted(root.rglob("*")) == before


async def test_a_table_that_is_used_where_it_lies_holds_no_links(root, tmp_path, monkeypatch):
    data = root / "made/index/chunks.lance/data"
    shutil.move(data, tmp_path / "data")
    data.symlink_to(tmp_path / "data")
    shutil.rmtree(tmp_path / "tables")  # where the table is kept that was there before
    monkeypatch.setattr(os, "link", refused)
    assert "'data', which is no plain file" in await refusal_of(root)


# -- more than a table takes -----------------------------------------------------------------


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux counts the memory that is used")
async def test_a_table_that_takes_more_memory_than_its_files_explain_is_refused(root, monkeypatch):
    monkeypatch.setattr(conversion, "_bytes_of", lambda _: -1_000_000_000_000)  # allows nothing
    monkeypatch.setattr(conversion, "_BYTES_PER_SECOND", 1e15)
    shutil.rmtree(root.parent / "tables")
    monkeypatch.setattr(conversion, "_SECONDS", 20.0)
    # A library may run out of memory in words of its own, or wait for a thread that cannot begin.
    refusal = await refusal_of(root)
    told = (
        "more memory than is allowed",
        "ended unexpectedly",
        "could not be read within",
        DAMAGED,
    )
    assert any(words in refusal for words in told)


def test_holes_in_the_files_of_a_table_buy_it_no_time(tmp_path):
    (tmp_path / "data").mkdir()
    with (tmp_path / "data/1.lance").open("wb") as file:
        file.write(b"x" * 10_000)
        file.truncate(1 << 40)
    assert 10_000 <= conversion._bytes_of(tmp_path) < 1_000_000


# -- more files than a table has -------------------------------------------------------------


def deep_folder(folder):
    for number in range(6):
        (folder / f"{number}").mkdir(parents=True)
        for other in range(6):
            (folder / f"{number}/{other}").write_text(json.dumps(other))
    return folder


def test_a_table_of_too_many_files_in_many_folders_is_neither_linked_nor_copied(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(snapshot, "_MOST_FILES", 20)
    source, target = deep_folder(tmp_path / "table"), tmp_path / "kept"
    for take in (snapshot.link, snapshot.clone):
        with pytest.raises(BadDatasetError, match="more than 20 files"):
            take(source, target)
        assert not target.exists()


def test_a_table_of_too_many_files_is_not_read_to_its_end(tmp_path, monkeypatch):
    monkeypatch.setattr(proving, "MOST_ENTRIES", 20)
    with pytest.raises(BadDatasetError, match="more than 20 files"):
        proving.check_places(deep_folder(tmp_path / "table"))


async def test_a_dataset_of_too_many_files_is_told(root, monkeypatch):
    monkeypatch.setattr(snapshot, "_MOST_FILES", 20)
    deep_folder(root / "made/index/deep")
    assert await refusal_of(root) == "its table has more than 20 files"


def test_only_so_many_files_of_a_table_are_looked_at(tmp_path, monkeypatch):
    monkeypatch.setattr(finding, "MOST_ENTRIES", 20)
    assert len(finding.stamp_of([deep_folder(tmp_path / "table")])) == 20
