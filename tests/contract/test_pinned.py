"""A folder's path that leads to no other folder, with the real file system."""

import os
import shutil
import sys
from pathlib import Path

import lancedb
import pyarrow as pa
import pytest

from vector_index_mcp.engine.store import pinned as module
from vector_index_mcp.engine.store.index import Index, Manifest
from vector_index_mcp.engine.store.pinned import pinned
from vector_index_mcp.errors import StoreError

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(sys.platform != "linux", reason="only Linux has such paths"),
]


@pytest.fixture(autouse=True)
def released(monkeypatch):
    held: dict[tuple[int, int], int] = {}
    monkeypatch.setattr(module, "_pinned", held)
    yield
    for descriptor in held.values():
        os.close(descriptor)


def test_it_leads_to_the_folder_wherever_that_goes(tmp_path: Path) -> None:
    folder = tmp_path / "here"
    folder.mkdir()
    path = Path(pinned(folder))
    folder.rename(tmp_path / "there")
    folder.mkdir()
    (path / "file").touch()
    assert (tmp_path / "there" / "file").exists()
    assert not (folder / "file").exists()
    assert pinned(folder) != str(path) == pinned(tmp_path / "there")


def test_below_a_deleted_folder_nothing_can_be_made(tmp_path: Path) -> None:
    folder = tmp_path / "here"
    folder.mkdir()
    path = Path(pinned(folder))
    folder.rmdir()
    with pytest.raises(FileNotFoundError):
        (path / "below").mkdir(parents=True)
    assert pinned(folder) == str(folder)


def test_descriptors_are_few(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MOST_PINNED", 2)
    before = len(list(Path("/proc/self/fd").iterdir()))
    folders = [tmp_path / name for name in "abc"]
    for folder in folders:
        folder.mkdir()
    first = [pinned(folder) for folder in folders]
    assert [pinned(folder) for folder in folders] == first
    assert first[2] == str(folders[2]) != str(folders[1]) != first[1] != first[0]
    assert len(list(Path("/proc/self/fd").iterdir())) == before + 2


def test_without_proc_a_folder_has_its_own_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_leads_to", lambda *_: False)
    assert pinned(tmp_path) == str(tmp_path)


async def test_no_write_makes_a_deleted_index_again(tmp_path: Path) -> None:
    project = tmp_path / "project"
    index = await Index.create(str(project / ".lancedb"), Manifest("owner", "chunker"))
    other = await lancedb.connect_async(project / ".lancedb")  # as it would be without the path
    shutil.rmtree(project)
    with pytest.raises(StoreError, match="No such file"):
        await index.adopt("another")
    with pytest.raises(StoreError, match="No such file"):
        await index.begin_rebuild()
    assert not project.exists()
    await other.create_table("manifest", pa.table({"json": ["{}"]}))
    assert project.exists()


async def test_errors_name_the_folder(tmp_path: Path) -> None:
    uri = str(tmp_path / ".lancedb")
    index = await Index.create(uri, Manifest("owner", "chunker"))
    shutil.rmtree(tmp_path / ".lancedb" / "chunks.lance")
    with pytest.raises(StoreError) as raised:
        await index.store.set_dimension(2)
    assert f"{uri.strip('/')}/chunks.lance" in str(raised.value)
    assert "proc/self" not in str(raised.value)
