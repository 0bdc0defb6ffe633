"""Tells whether a file has changed since it was read. Pure."""

import os

State = tuple[int, int, int, int]
"""(size in bytes, time of the last change in ns, that of the inode in ns, inode)."""


def state_of(status: os.stat_result) -> State:
    """Return what differs once a file has changed.

    `touch -r` and `cp -p` put the time of the last change back, but not that of the inode.
    """
    return status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino
