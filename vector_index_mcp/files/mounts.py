"""Finds mounted file systems that do not report every change: those that others write to."""

from pathlib import Path

import psutil

_FROM_ELSEWHERE = frozenset({
    "9p", "afpfs", "afs", "beegfs", "ceph", "cifs", "coda", "davfs", "drvfs", "fuse", "gfs2",
    "glusterfs", "gpfs", "lustre", "macfuse", "ncpfs", "nfs", "nfs4", "ocfs2", "orangefs",
    "osxfuse", "prl_fs", "pvfs2", "smb2", "smb3", "smbfs", "vboxsf", "virtiofs", "vmhgfs",
    "webdav",
})  # fmt: skip
# FUSE file systems over local files: only this machine changes them.
_LOCAL_FUSE = frozenset({"fuse.bindfs", "fuse.cryfs", "fuse.encfs", "fuse.gocryptfs"})


def places_below(root: Path) -> frozenset[tuple[Path, str]]:
    """Return the mount points below `root` and their types; empty if the system hides them."""
    return frozenset(item for item in _mounts().items() if item[0].is_relative_to(root))


def file_system_of(root: Path) -> str:
    """Return the type of the file system that `root` lies on; empty if the system hides it."""
    mounts = _mounts()
    return mounts.get(_place_of(root, mounts), "")


def silent_file_system(root: Path) -> str:
    """Return the type of a file system in which files of `root` may change without an event.

    That may be the file system of `root`, or one mounted below. Empty if there is none, or if the
    system hides it.
    """
    mounts = _mounts()
    of_root = _place_of(root, mounts)
    for place, kind in mounts.items():
        is_ours = place == of_root or place.is_relative_to(root)
        if is_ours and _is_from_elsewhere(kind):
            return kind
    return ""


def _mounts() -> dict[Path, str]:
    """Return the types of the mounted file systems, by mount point."""
    try:
        mounted = psutil.disk_partitions(all=True)
    except (OSError, psutil.Error):
        return {}
    return {Path(each.mountpoint): each.fstype for each in mounted}  # later ones hide earlier ones


def _place_of(root: Path, mounts: dict[Path, str]) -> Path:
    """Return the mount point of the file system of `root`; `root` itself if it is unknown."""
    above = [place for place in mounts if root.is_relative_to(place)]
    return max(above, key=lambda place: len(place.parts), default=root)


def _is_from_elsewhere(kind: str) -> bool:
    is_fuse = kind.startswith("fuse.") and kind not in _LOCAL_FUSE
    return is_fuse or kind in _FROM_ELSEWHERE
