"""A table of Lance from elsewhere is opened only if all its files lie in its folder."""

import os
import shutil

import lancedb
import numpy as np
import pytest
from documents import document
from folders import nested_in

from vector_index_mcp.engine.store import Index, places
from vector_index_mcp.engine.store.foreign import examine
from vector_index_mcp.engine.store.index import Manifest
from vector_index_mcp.errors import DamagedIndexError

pytestmark = pytest.mark.anyio

ELSEWHERE = "names files that lie elsewhere"


@pytest.fixture
async def uri(tmp_path):
    """An index with a row."""
    uri = tmp_path / "index"
    index = await Index.create(str(uri), Manifest(owner="/project", chunker="lines-1"))
    await index.store.replace([document("a.py", "apple")], 1, {})
    index.close()
    return uri


async def test_our_own_tables_are_examined(uri):
    places.check(uri)
    assert await examine(str(uri), None) == 1


@pytest.mark.slow
@pytest.mark.parametrize("number", [65_504.0, float("inf"), 0.0])
async def test_a_vector_that_is_no_direction_is_refused_without_a_word_of_numpy(uri, number):
    index = await Index.open(str(uri))
    await index.store.set_dimension(4)
    text = document("a.py", "apple")
    await index.store.replace(
        [text], 2, {text.entries[0].chunk_hash: np.full(4, number, dtype="<f4")}
    )
    index.close()
    with pytest.raises(DamagedIndexError, match="its length is not 1"):
        await examine(str(uri), 4)


async def test_a_table_whose_files_lie_elsewhere_is_not_read(uri, tmp_path):
    elsewhere = tmp_path / "elsewhere/chunks.lance"
    elsewhere.parent.mkdir()
    shutil.move(uri / "chunks.lance", elsewhere)
    db = await lancedb.connect_async(str(uri))
    table = await db.clone_table("chunks", str(elsewhere))
    assert await table.count_rows() == 1
    with pytest.raises(DamagedIndexError, match=ELSEWHERE):
        await examine(str(uri), None)


async def test_a_folder_of_a_table_that_is_a_link_is_refused(uri, tmp_path):
    shutil.move(uri / "chunks.lance/data", tmp_path / "data")
    (uri / "chunks.lance/data").symlink_to(tmp_path / "data")
    with pytest.raises(DamagedIndexError, match="'data', which is no plain file"):
        await examine(str(uri), None)


@pytest.mark.parametrize("name", ["1.manifest", "deeper/_latest.manifest", "1.manifest-detached"])
@pytest.mark.parametrize("size", [0, 15, 16, 4_000])
def test_what_is_no_manifest_of_lance_is_refused(tmp_path, name, size):
    (tmp_path / "deeper").mkdir()
    (tmp_path / name).write_bytes(b"\xff" * size)
    with pytest.raises(DamagedIndexError, match="is damaged or incomplete"):
        places.check(tmp_path)


@pytest.mark.slow
async def test_a_manifest_that_is_changed_anywhere_is_read_or_refused(uri):
    file = next((uri / "manifest.lance/_versions").glob("*.manifest"))
    whole, refused = file.read_bytes(), 0
    for at in range(len(whole)):
        for changed in (whole[:at], whole[:at] + bytes([whole[at] ^ 255]) + whole[at + 1 :]):
            file.write_bytes(changed)
            try:
                places.check(uri)
            except DamagedIndexError:
                refused += 1
    assert refused > len(whole)  # whatever is cut off is refused, if it was more than the end


def test_a_pipe_in_a_table_keeps_nobody_waiting(tmp_path):
    os.mkfifo(tmp_path / "1.manifest")
    with pytest.raises(DamagedIndexError, match="no plain file"):
        places.check(tmp_path)


def test_more_files_than_allowed_are_refused(tmp_path):
    for number in range(4):
        (tmp_path / str(number)).touch()
    places.check(tmp_path, 4)
    with pytest.raises(DamagedIndexError, match="more than 3 files"):
        places.check(tmp_path, 3)


async def test_a_nest_of_folders_is_no_table(uri):
    with nested_in(uri / "chunks.lance"), pytest.raises(DamagedIndexError, match="nested more"):
        await examine(str(uri), None)
