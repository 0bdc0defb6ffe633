import pytest
from kept import kept_in
from stores import settings_of_ann


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
