"""Which file systems tell of changes, by the kernel's list of what is mounted where."""

import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vector_index_mcp.files import mounts
from vector_index_mcp.files.mounts import parse, silent_file_system

HERE = """\
22 27 0:21 / /proc rw,relatime - proc proc rw
27 1 254:1 / / rw,relatime shared:1 - ext4 /dev/vda1 rw
40 27 0:50 / /home/me rw,relatime shared:9 master:2 - nfs4 server:/home rw,vers=4.2
41 40 0:51 / /home/me/fast rw - xfs /dev/vdb rw
42 27 0:52 / /mnt/two\\040words\\134 rw - fuse.sshfs me@there: rw
43 27 0:53 / /mnt/disk rw - fuseblk /dev/sdb1 rw
44 27 0:54 / /mnt/secret rw - fuse.gocryptfs /x rw
45 27 0:55 / /mnt/both rw - cifs //server/x rw
46 45 0:56 / /mnt/both rw - btrfs /dev/vdc rw
"""


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no such list")
@pytest.mark.parametrize(
    ("root", "kind"),
    [
        ("/srv/project", ""),
        ("/home/me/project", "nfs4"),
        ("/home/me", "nfs4"),
        ("/home/menu", ""),
        ("/home/me/fast/project", ""),
        ("/mnt/two words\\/project", "fuse.sshfs"),
        ("/mnt/disk/project", ""),
        ("/mnt/secret/project", ""),
        ("/mnt/both/project", ""),
        ("/home", "nfs4"),
        ("/mnt", "fuse.sshfs"),
    ],
)
def test_a_file_system_of_other_machines_is_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, root: str, kind: str
) -> None:
    listed = tmp_path / "mountinfo"
    listed.write_text(HERE, encoding="ascii")
    monkeypatch.setattr(mounts, "_MOUNTS", listed)
    assert silent_file_system(Path(root)) == kind


def test_where_nothing_is_told_nothing_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mounts, "_MOUNTS", tmp_path / "none")
    assert silent_file_system(tmp_path) == ""


@given(st.binary() | st.text("0123456789 -/\\\n", max_size=200).map(str.encode))
def test_no_list_makes_reading_it_fail(text: bytes) -> None:
    assert all(isinstance(place, Path) for place in parse(text))
