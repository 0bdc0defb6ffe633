"""All front ends of a user meet their services in one folder, wherever they are started."""

import os
from pathlib import Path

import pytest

from vector_index_mcp.background.endpoint import FOLDER_VARIABLE, endpoint_of
from vector_index_mcp.errors import ProjectError

PLACE = Path("/project")


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    """The folder that a front end starts in."""
    monkeypatch.delenv(FOLDER_VARIABLE, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    folder = tmp_path / "elsewhere"
    (folder / "session").mkdir(parents=True)
    monkeypatch.chdir(folder)
    return folder


def test_a_setting_may_begin_with_the_home_folder(tmp_path, monkeypatch):
    monkeypatch.setenv(FOLDER_VARIABLE, "~/run")
    assert endpoint_of("codebase", PLACE).folder == tmp_path / "home" / "run"


def test_a_relative_setting_is_refused_and_makes_no_folder(elsewhere, monkeypatch):
    monkeypatch.setenv(FOLDER_VARIABLE, "run")
    with pytest.raises(ProjectError, match="set it to an absolute path"):
        endpoint_of("codebase", PLACE)
    assert not (elsewhere / "run").exists()


@pytest.mark.parametrize("put", [os.mkfifo, lambda path: path.symlink_to("/dev/zero")])
def test_a_pipe_or_a_device_keeps_no_front_end_waiting(tmp_path, monkeypatch, put):
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path / "run"))
    endpoint = endpoint_of("codebase", PLACE)
    endpoint.make_folder()
    put(endpoint.record)
    assert endpoint.read_record() == {}
    endpoint.make_sound()
    os.mkfifo(endpoint.log)
    endpoint.make_sound()
    assert not endpoint.log.exists()
    endpoint.log.write_text("logged", encoding="utf-8")
    endpoint.make_sound()
    assert endpoint.log.read_text(encoding="utf-8") == "logged"


@pytest.mark.parametrize("session", ["session", ".", "", "nowhere"])
def test_a_relative_folder_of_the_session_is_ignored(elsewhere, monkeypatch, session):
    monkeypatch.setenv("XDG_RUNTIME_DIR", session)
    monkeypatch.setattr("tempfile.tempdir", str(elsewhere.parent))
    assert endpoint_of("codebase", PLACE).folder.parent == elsewhere.parent
    assert [path.name for path in elsewhere.iterdir()] == ["session"]
