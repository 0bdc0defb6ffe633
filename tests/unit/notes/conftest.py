import pytest
from kept import kept_in
from stores import settings_of_ann

from vector_index_mcp.notes.store.disk import Disk


@pytest.fixture
def store(tmp_path):
    """The folder of the store that `writer_of(tmp_path)` writes."""
    return tmp_path / "store"


@pytest.fixture
def kept(tmp_path):
    """A store with a writer; nothing is in it yet."""
    with kept_in(tmp_path) as kept:
        yield kept


@pytest.fixture
def ann(tmp_path, monkeypatch):
    """Ann is who is at this machine."""
    for name, value in settings_of_ann(tmp_path).items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def one_case(monkeypatch):
    """Case does not count, as on macOS and Windows; lists have the names as they were written."""
    entries = Disk.entries

    def as_written(disk, path):
        at = ""
        for part in path.split("/"):
            names = [name for name, _ in entries(disk, at)]
            same = [name for name in names if name.lower() == part.lower()]
            at = f"{at}/{same[0] if same else part}".removeprefix("/")
        return at

    for name in ("status", "read", "entries"):
        real = getattr(Disk, name)
        monkeypatch.setattr(
            Disk, name, lambda disk, path, real=real: real(disk, as_written(disk, path))
        )
