"""Which file systems tell of changes: of those made on other machines, none does."""

import os
import re
import sys
from pathlib import Path

_MOUNTS = Path("/proc/self/mountinfo")
_FROM_ELSEWHERE = frozenset({
    "9p", "afs", "beegfs", "ceph", "cifs", "coda", "fuse", "gfs2", "glusterfs", "gpfs", "lustre",
    "ncpfs", "nfs", "nfs4", "ocfs2", "orangefs", "prl_fs", "pvfs2", "smb3", "smbfs", "vboxsf",
    "virtiofs", "vmhgfs",
})  # fmt: skip
# What FUSE only translates: whoever changes it is on this machine.
_LOCAL_FUSE = frozenset({"fuse.bindfs", "fuse.cryfs", "fuse.encfs", "fuse.gocryptfs"})
_ESCAPE = re.compile(rb"\\([0-7]{3})")


def places_below(root: Path) -> frozenset[tuple[Path, str]]:
    """Where other file systems are mounted in `root`, and which; nothing if nobody tells."""
    return frozenset(item for item in _mounts().items() if item[0].is_relative_to(root))


def silent_file_system(root: Path) -> str:
    """The type of a file system in which files of `root` may change without an event.

    That is the one `root` lies on, or one mounted somewhere below; empty if there is none, or if
    the system does not tell.
    """
    mounts = _mounts()
    above = [place for place in mounts if root.is_relative_to(place)]
    of_root = max(above, key=lambda place: len(place.parts), default=None)
    for place, kind in mounts.items():
        is_ours = place == of_root or place.is_relative_to(root)
        if is_ours and _is_from_elsewhere(kind):
            return kind
    return ""


def _mounts() -> dict[Path, str]:
    if sys.platform != "linux":
        return {}
    try:
        return parse(_MOUNTS.read_bytes())
    except OSError:
        return {}


def parse(text: bytes) -> dict[Path, str]:
    """The types of the mounted file systems by their place; pure. See proc_pid_mountinfo(5)."""
    mounts = {}
    for line in text.splitlines():
        before, separator, after = line.partition(b" - ")
        fields = before.split(b" ")
        if separator and len(fields) > 4:
            place = _ESCAPE.sub(lambda match: bytes([int(match[1], 8) & 255]), fields[4])
            mounts[Path(os.fsdecode(place))] = os.fsdecode(after.split(b" ")[0])
    return mounts  # of two at one place, the later one hides the other


def _is_from_elsewhere(kind: str) -> bool:
    is_fuse = kind.startswith("fuse.") and kind not in _LOCAL_FUSE
    return is_fuse or kind in _FROM_ELSEWHERE
