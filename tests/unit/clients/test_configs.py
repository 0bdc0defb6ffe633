"""Changing files of somebody else: backups, modes, links, and what must not be written."""

import stat
import sys

import pytest

from vector_index_mcp.clients import configs
from vector_index_mcp.clients.configs import Change
from vector_index_mcp.clients.target import load, target_of
from vector_index_mcp.errors import ConfigFileError

posix_only = pytest.mark.skipif(sys.platform == "win32", reason="uses POSIX links or modes")


def names(folder) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def add(text: str) -> str:
    return text + "ours"


def remove(text: str) -> str:
    return text.replace("ours", "")


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "config.json"
    path.write_bytes(b"old")
    return path


def test_no_backup_is_ever_overwritten(file):
    older = file.with_name("config.json.bak")
    older.write_bytes(b"somebody's")
    file.with_name("config.json.bak.old").write_bytes(b"no number")
    assert configs.apply(Change(target_of(file), b"old", b"new")).name == "config.json.bak.2"
    assert configs.apply(Change(target_of(file), b"new", b"newer")).name == "config.json.bak.3"
    assert older.read_bytes() == b"somebody's"
    assert file.with_name("config.json.bak.2").read_bytes() == b"old"
    assert file.with_name("config.json.bak.3").read_bytes() == b"new"
    assert file.read_bytes() == b"newer"


def test_a_new_file_needs_no_backup_and_gets_its_folder(tmp_path):
    path = tmp_path / "a" / "b" / "config.json"
    assert configs.apply(Change(target_of(path), None, b"new")) is None
    assert names(path.parent) == ["config.json"]


@posix_only
@pytest.mark.parametrize("mode", [0o600, 0o640, 0o664])
def test_mode_stays_for_the_file_and_its_backup(file, mode):
    file.chmod(mode)
    backup = configs.apply(Change(target_of(file), b"old", b"new"))
    assert stat.S_IMODE(file.stat().st_mode) == mode
    assert stat.S_IMODE(backup.stat().st_mode) == mode


@posix_only
def test_a_link_stays_and_what_it_leads_to_changes(tmp_path):
    target = tmp_path / "dotfiles" / "settings"
    target.parent.mkdir()
    target.write_bytes(b"old")
    link = tmp_path / "config.json"
    link.symlink_to("dotfiles/settings")
    assert configs.apply(Change(target_of(link), b"old", b"new")) == tmp_path / "config.json.bak"
    assert str(link.readlink()) == "dotfiles/settings"
    assert target.read_bytes() == b"new"
    assert names(target.parent) == ["settings"]


@posix_only
@pytest.mark.parametrize("after", [b"new", None])
def test_a_read_only_file_is_left_alone(file, after):
    file.chmod(0o444)
    with pytest.raises(ConfigFileError, match="read-only; make it writable"):
        configs.apply(Change(target_of(file), b"old", after))
    assert names(file.parent) == ["config.json"]
    assert file.read_bytes() == b"old"


@pytest.mark.parametrize("now", [b"other", None])
def test_what_has_changed_meanwhile_is_not_overwritten(file, now):
    file.unlink()
    if now is not None:
        file.write_bytes(now)
    before = names(file.parent)
    with pytest.raises(ConfigFileError, match="has changed meanwhile; run this again"):
        configs.apply(Change(target_of(file), b"old", b"new"))
    assert names(file.parent) == before


@pytest.mark.parametrize("written_before", [0, 1], ids=["the backup", "the file"])
def test_a_write_that_fails_leaves_the_file_as_it_was(file, monkeypatch, written_before):
    written = []

    def fail(descriptor):
        written.append(descriptor)
        if len(written) > written_before:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(configs.os, "fsync", fail)
    with pytest.raises(ConfigFileError, match="cannot be written: No space left"):
        configs.apply(Change(target_of(file), b"old", b"new"))
    assert names(file.parent) == ["config.json", "config.json.bak"][: 1 + written_before]
    assert file.read_bytes() == b"old"


def test_a_folder_is_no_configuration(tmp_path):
    with pytest.raises(ConfigFileError, match="cannot be read"):
        load(target_of(tmp_path))


def test_another_encoding_is_told_with_its_line(file):
    with pytest.raises(ConfigFileError, match=r"config.json, line 2: the text is not UTF-8"):
        configs.edited(file, b"a\n\xff", add)


def test_undoing_restores_the_newest_backup_that_fits(file):
    file.with_name("config.json.bak").write_bytes(b"somebody's")
    configs.apply(Change(target_of(file), b"old", b"oldours"))
    change = configs.undoing(target_of(file), b"oldours", add, lambda text: "otherwise")
    assert (change.after, change.restores) == (b"old", "config.json.bak.2")
    assert configs.apply(change) is None
    assert names(file.parent) == ["config.json", "config.json.bak"]
    assert file.read_bytes() == b"old"


def test_undoing_removes_what_was_added_from_a_file_that_has_changed(file):
    configs.apply(Change(target_of(file), b"old", b"oldours"))
    file.write_bytes(b"oldours and more")
    change = configs.undoing(target_of(file), b"oldours and more", add, remove)
    assert change == Change(target_of(file), b"oldours and more", b"old and more")
    assert configs.apply(change).name == "config.json.bak.2"


def test_undoing_removes_a_file_that_is_all_ours(file):
    file.write_bytes(b"ours")
    configs.apply(configs.undoing(target_of(file), b"ours", add, remove))
    assert names(file.parent) == []


def test_an_empty_file_that_was_there_comes_back(file):
    file.write_bytes(b"")
    configs.apply(Change(target_of(file), b"", b"ours"))
    configs.apply(configs.undoing(target_of(file), b"ours", add, remove))
    assert file.read_bytes() == b""
    assert names(file.parent) == ["config.json"]
