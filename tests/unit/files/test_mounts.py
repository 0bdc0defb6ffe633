"""Which file systems report changes, by the system's list of what is mounted where."""

import sys
from pathlib import Path

import psutil
import pytest

from vector_index_mcp.files import mounts
from vector_index_mcp.files.mounts import file_system_of, places_below, silent_file_system

HERE = [
    ("/proc", "proc"),
    ("/", "ext4"),
    ("/home/me", "nfs4"),
    ("/home/me/fast", "xfs"),
    ("/mnt/two words\\", "fuse.sshfs"),
    ("/mnt/disk", "fuseblk"),
    ("/mnt/secret", "fuse.gocryptfs"),
    ("/mnt/both", "cifs"),
    ("/mnt/both", "btrfs"),
]


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mounts, "_mounts", lambda: {Path(place): kind for place, kind in HERE})


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    ("root", "kind", "silent"),
    [
        ("/srv/project", "ext4", ""),
        ("/home/me/project", "nfs4", "nfs4"),
        ("/home/me", "nfs4", "nfs4"),
        ("/home/menu", "ext4", ""),
        ("/home/me/fast/project", "xfs", ""),
        ("/mnt/two words\\/project", "fuse.sshfs", "fuse.sshfs"),
        ("/mnt/disk/project", "fuseblk", ""),
        ("/mnt/secret/project", "fuse.gocryptfs", ""),
        ("/mnt/both/project", "btrfs", ""),
        ("/home", "ext4", "nfs4"),
        ("/mnt", "ext4", "fuse.sshfs"),
    ],
)
def test_a_file_system_of_other_machines_is_known(root: str, kind: str, silent: str) -> None:
    assert file_system_of(Path(root)) == kind
    assert silent_file_system(Path(root)) == silent


@pytest.mark.parametrize("kind", ["nfs4", "cifs", "9p", "fuse.sshfs", "drvfs", "afpfs", "smb2"])
def test_what_other_machines_write_to_is_silent(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mounts, "_mounts", lambda: {Path("/"): kind})
    assert silent_file_system(Path("/project")) == kind


@pytest.mark.usefixtures("here")
def test_what_is_mounted_below_is_known_by_its_place() -> None:
    assert places_below(Path("/home")) == {
        (Path("/home/me"), "nfs4"),
        (Path("/home/me/fast"), "xfs"),
    }


@pytest.mark.parametrize("error", [OSError(), psutil.AccessDenied()])
def test_where_the_system_hides_it_nothing_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def hidden(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(psutil, "disk_partitions", hidden)
    assert (silent_file_system(tmp_path), file_system_of(tmp_path)) == ("", "")
    assert places_below(tmp_path) == frozenset()


@pytest.mark.skipif(sys.platform != "linux", reason="only there everything is mounted by name")
def test_the_systems_own_list_is_read() -> None:
    assert file_system_of(Path("/proc/self")) == "proc"
    assert all(place.is_absolute() for place, _ in places_below(Path("/")))
