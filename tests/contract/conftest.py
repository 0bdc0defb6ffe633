import os

import pytest
from buckets import bucket_server
from filelock import FileLock
from tiny_models import made

from vector_index_mcp.engine.models.model import OFFLINE_MODEL, model_at_hand
from vector_index_mcp.objects.opening import opened


@pytest.fixture(scope="module")
def server():
    with bucket_server() as server:
        yield server


@pytest.fixture(params=["folder", "bucket"])
def objects(request, tmp_path, monkeypatch):
    """An empty store of either kind."""
    if request.param == "folder":
        return opened(str(tmp_path / "store"))
    server = request.getfixturevalue("server")
    for name, value in server.environment.items():
        monkeypatch.setenv(name, value)
    return opened(f"{server.new_bucket()}/some/folder")


@pytest.fixture(scope="session")
def model():
    """The default model, as it was installed."""
    found = model_at_hand(OFFLINE_MODEL)
    if found is None:
        pytest.skip("the extra `offline` is not installed")
    return found


@pytest.fixture(scope="session")
def tiny_models(model, tmp_path_factory):
    """Small models of the kinds that people choose, by name. All testers share them: only read."""
    place = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        place = place.parent
    place /= "tiny"
    place.mkdir(exist_ok=True)
    with FileLock(place / "lock"):
        return made(model.folder, place)
