"""Nothing but plain files and folders passes for a table, and what others change is noticed."""

import os
from pathlib import Path

import pytest
from folders import nested_in

from vector_index_mcp.engine.store.entries import Written, check_plain, prepare_folder, size_of
from vector_index_mcp.errors import DamagedIndexError, Problem, StorageError


@pytest.fixture
def folder(tmp_path):
    for part in ("chunks.lance/data/a.lance", "chunks.lance/_versions/latest_version_hint.json"):
        (tmp_path / part).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / part).write_text("content", encoding="utf-8")
    return tmp_path


def test_plain_files_and_what_is_not_ours_pass(folder, tmp_path):
    (folder / "users.lance").symlink_to("anywhere")
    os.mkfifo(folder / "pipe")
    check_plain(folder)
    check_plain(tmp_path / "nothing")


@pytest.mark.parametrize("name", ["chunks_7.lance", "chunks.lance/data", "files.lance/data/b"])
@pytest.mark.parametrize("put", [os.mkfifo, lambda path: Path(path).symlink_to("/")])
def test_what_is_not_plain_is_refused_and_named(folder, name, put):
    odd = folder / name
    odd.parent.mkdir(parents=True, exist_ok=True)
    if odd.exists():
        odd.rename(folder / "aside")
    put(odd)
    for look in (lambda: check_plain(folder), Written(folder).look):
        with pytest.raises(DamagedIndexError, match="is no plain file") as caught:
            look()
        assert str(odd) in str(caught.value)
        assert caught.value.problem is Problem.INDEX_DAMAGED


@pytest.mark.parametrize("text", ["", "con", "CONTENT"])
def test_a_file_that_was_changed_in_its_place_is_noticed(folder, text):
    written, data = Written(folder), folder / "chunks.lance/data"
    written.look()
    (data / "b.lance").write_text("new", encoding="utf-8")
    (folder / "chunks.lance/_versions/latest_version_hint.json").write_text("", encoding="utf-8")
    written.look()
    (data / "b.lance").unlink()
    written.look()
    (data / "a.lance").write_text(text, encoding="utf-8")
    os.utime(data / "a.lance", ns=(1, 1))
    with pytest.raises(DamagedIndexError, match=r"has changed .*/data/a\.lance"):
        written.look()


def test_the_folder_of_an_index_is_made_below_its_project_only(tmp_path):
    home, index = tmp_path / "above" / "project", tmp_path / "above" / "project" / "data" / "index"
    with pytest.raises(StorageError, match="cannot be written"):
        prepare_folder(index, home=home)
    assert not home.parent.exists()
    home.mkdir(parents=True)
    prepare_folder(index, home=home)
    prepare_folder(index, home=home)
    assert (index / ".gitignore").read_text(encoding="utf-8") == "*\n"
    prepare_folder(tmp_path / "else" / "where", home=home)
    assert (tmp_path / "else" / "where").is_dir()


def test_a_nest_of_folders_keeps_nobody_from_the_size_of_an_index(folder):
    before = size_of(folder)
    with nested_in(folder / "chunks.lance"):
        assert size_of(folder) == before == 2 * len("content")
