"""The names under which projects own indexes elsewhere, by their paths."""

import os

import pytest

from vector_index_mcp.errors import StorageError
from vector_index_mcp.indexing.opening.owners import Owners

LONGEST = 4_000  # bytes
NAMES = {
    "letters of another alphabet": "ж" * 120,
    "signs of two code units": "🐘" * 60,
    "bytes that are no text": os.fsdecode(b"\xff" * 250),
    "ASCII": "a" * 250,
}


@pytest.mark.parametrize("what", NAMES)
def test_a_project_with_a_long_path_has_a_name_and_keeps_it(tmp_path, what):
    name = NAMES[what]
    project = "/" + "/".join([name] * (LONGEST // (len(os.fsencode(name)) + 1)))
    owner = Owners(tmp_path).name_of(project)
    assert Owners(tmp_path).name_of(project) == owner
    assert Owners(tmp_path).is_moved(owner)
    assert Owners(tmp_path).name_of(f"{project}/other") != owner


def test_a_damaged_name_is_told_as_damaged(tmp_path):
    Owners(tmp_path).name_of("/a/project")
    [file] = (tmp_path / "owners").iterdir()
    file.write_bytes(b"\xff\xfe")
    with pytest.raises(StorageError, match="damaged; delete that folder"):
        Owners(tmp_path).name_of("/a/project")


@pytest.mark.parametrize("put", [os.mkfifo, lambda path: path.symlink_to("/dev/zero")])
def test_a_pipe_or_a_device_among_the_names_keeps_nobody_waiting(tmp_path, put):
    Owners(tmp_path).name_of("/a/project")
    [file] = (tmp_path / "owners").iterdir()
    file.unlink()
    put(file)
    assert not Owners(tmp_path).is_moved("anybody")
    with pytest.raises(StorageError):
        Owners(tmp_path).name_of("/a/project")


def test_a_file_system_without_hard_links_keeps_names_as_well(tmp_path, monkeypatch):
    def refused(*_):
        raise PermissionError("no hard links")  # as on Android, and on exFAT

    monkeypatch.setattr(os, "link", refused)
    owner = Owners(tmp_path).name_of("/a/project")
    assert Owners(tmp_path).name_of("/a/project") == owner
    assert Owners(tmp_path).place == Owners(tmp_path).place
    assert [path for path in tmp_path.rglob("*") if path.suffix not in {".json", ""}] == []
