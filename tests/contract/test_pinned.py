"""A folder's path that leads to no other folder, with the real file system."""

import os
import shutil
import sys
from collections import deque
from pathlib import Path

import lancedb
import pyarrow as pa
import pytest

from vector_index_mcp.engine.store import pinned as module
from vector_index_mcp.engine.store.index import Index, Manifest
from vector_index_mcp.engine.store.pinned import pinned, unpin
from vector_index_mcp.errors import StoreError

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(sys.platform != "linux", reason="only Linux has such paths"),
]


@pytest.fixture(autouse=True)
def released(monkeypatch):
    """No folder is pinned yet, and none stays so."""
    pins: dict[tuple[int, int], module._Pin] = {}
    rested: deque[tuple[float, int]] = deque()
    monkeypatch.setattr(module, "_pins", pins)
    monkeypatch.setattr(module, "_rested", rested)
    yield
    for number in [*(pin.descriptor for pin in pins.values()), *(each for _, each in rested)]:
        os.close(number)


def held() -> set[str]:
    """The folders that this process holds open."""
    paths = [os.path.realpath(each) for each in Path("/proc/self/fd").iterdir()]
    return {path for path in paths if os.path.isdir(path)}


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
    folders = [tmp_path / name for name in "abc"]
    for folder in folders:
        folder.mkdir()
    first = [pinned(folder) for folder in folders]
    assert [pinned(folder) for folder in folders] == first
    assert first[2] == str(folders[2]) != str(folders[1]) != first[1] != first[0]
    assert held() >= {*map(str, folders[:2])}
    assert str(folders[2]) not in held()


def test_who_lets_go_holds_the_folder_no_more_and_writes_nowhere(tmp_path: Path) -> None:
    path = pinned(tmp_path)
    assert pinned(tmp_path) == path
    unpin(path)
    assert str(tmp_path) in held()
    unpin(path)
    assert str(tmp_path) not in held()
    with pytest.raises(NotADirectoryError):
        Path(path, "below").mkdir(parents=True)
    unpin(path)
    unpin(str(tmp_path))


def test_a_number_rests_before_it_leads_to_another_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = pinned(tmp_path)
    pinned(tmp_path)
    unpin(first, at_once=True)
    second = pinned(tmp_path)
    assert second != first
    unpin(second)
    monkeypatch.setattr(module, "_REST_SECONDS", 0.0)
    assert pinned(tmp_path) == first
    assert Path(first).samefile(tmp_path)


async def test_a_closed_index_holds_no_folder(tmp_path: Path) -> None:
    folder = tmp_path / ".lancedb"
    index = await Index.create(str(folder), Manifest("owner", "chunker"))
    again, reader = await Index.open(str(folder), writes=True), await Index.open(str(folder))
    assert again is not None and reader is not None
    index.close()
    reader.close()
    assert await again.store.count() == 0
    assert str(folder) in held()
    again.close()
    assert str(folder) not in held()
    assert (reader := await Index.open(str(folder))) is not None
    assert str(folder) not in held()
    reader.close()


@pytest.mark.slow
async def test_an_index_that_is_let_go_holds_no_folder_and_writes_nowhere(tmp_path: Path) -> None:
    folder = tmp_path / ".lancedb"
    index = await Index.create(str(folder), Manifest("owner", "chunker"))
    index.let_go()
    assert str(folder) not in held()
    shutil.rmtree(folder)
    with pytest.raises(StoreError):
        await index.store.set_dimension(2)
    with pytest.raises(StoreError):
        await index.adopt("another")
    assert not folder.exists()


def test_without_proc_a_folder_has_its_own_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_leads_to", lambda *_: False)
    assert pinned(tmp_path) == str(tmp_path)


async def test_no_write_makes_a_deleted_index_again(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
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
