"""Packs the loose objects of many commits into one file, and waits while somebody else does.

It never runs `git gc`, which also deletes unreachable objects: those may be a person's staged or
dropped work. Repacking deletes only objects that the new pack contains.
"""

import logging
import os
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from vector_index_mcp.files import beneath
from vector_index_mcp.notes.refusal import Code, Refusal
from vector_index_mcp.notes.store.disk import GIT, WORK, Disk
from vector_index_mcp.notes.store.program import failure
from vector_index_mcp.notes.store.repository import Repository
from vector_index_mcp.notes.store.steps import token

_log = logging.getLogger(__name__)

# git itself packs at 6,700 loose objects (gc.auto), in 256 folders. A write makes six objects.
_MOST_IN_A_FOLDER = 27
_SAMPLE = f"{GIT}/objects/17"
_SECONDS = 600.0
_MARK, _MARK_LOCK = "gc.pid", "gc.pid.lock"
_MOST_MARK_BYTES = 1_000
_PART = ".part"
_OTHERS_SECONDS, _LOOK_SECONDS = 10.0, 0.005
# git takes no notice of an older mark either (`lock_repo_for_gc` in builtin/gc.c): its process may
# have been killed, and another one have its number by now.
_OLDEST_MARK_SECONDS = 12 * 3_600.0


def tidy(disk: Disk, repository: Repository) -> bool:
    """Pack loose objects if there are too many; return whether there were.

    Raises:
        Refusal: If git cannot pack them.
    """
    # A pack of a partial clone has a mark without which git takes the clone for damaged.
    if len(disk.entries(_SAMPLE)) <= _MOST_IN_A_FOLDER or repository.lack:
        return False
    result = repository.run(
        "repack", "-d", "-l", "-q", "--geometric=2", seconds=_SECONDS, adds_objects=True
    )
    if result.status:
        raise failure("repack", result)
    _log.info("packed the objects of %s", disk.root)
    return True


@contextmanager
def without_pruning(disk: Disk) -> Iterator[None]:
    """Keep people's `git gc` from running meanwhile, as one `git gc` keeps off another one.

    With `--prune=now` it deletes objects that no reference has yet: those of a commit that is just
    being written. If the mark cannot be made, the work goes on without.

    Raises:
        Refusal: If a `git gc` does not end soon.
    """
    is_marked = False
    with suppress(OSError), _folders(disk) as (folder, work):
        last = time.monotonic() + _OTHERS_SECONDS
        while not (is_marked := _mark(folder, work)):
            if time.monotonic() > last:
                raise Refusal(
                    Code.GIT_ERROR,
                    f"`git gc` has been running in {disk.root} for {_OTHERS_SECONDS:.0f} s, as "
                    f"{GIT}/{_MARK} says; nothing was changed; try again when it has ended",
                )
            time.sleep(_LOOK_SECONDS)
    try:
        yield
    finally:
        if is_marked:
            with suppress(OSError), _folders(disk) as (folder, _):
                folder.remove(_MARK)


@contextmanager
def _folders(disk: Disk) -> Iterator[tuple[beneath.Folder, beneath.Folder]]:
    with beneath.opened(disk.root, GIT) as folder, beneath.opened(disk.root, WORK) as work:
        yield folder, work


def _mark(folder: beneath.Folder, work: beneath.Folder) -> bool:
    """Make the mark as `git gc` does, under its lock; return whether no running process has it.

    Whoever finds the lock of a process that has died removes it, since git itself never does.
    """
    part = token(_PART)
    with os.fdopen(work.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL), "wb") as file:
        file.write(f"{os.getpid()} {socket.gethostname()}".encode())
    try:
        work.link(part, folder, _MARK_LOCK)
    except FileExistsError:
        if _is_alive(folder, _MARK_LOCK) is False:
            folder.remove(_MARK_LOCK)
        elif time.time() - folder.status(_MARK_LOCK).st_mtime > _OTHERS_SECONDS:
            raise  # nobody knows whose it is
        return False
    finally:
        work.remove(part)
    if _is_alive(folder, _MARK):
        folder.remove(_MARK_LOCK)
        return False
    folder.replace(_MARK_LOCK, _MARK)
    return True


def wait_for_others(disk: Disk) -> None:
    """Wait while somebody's `git gc` runs, but not long.

    Raises:
        OSError: If its mark cannot be read.
    """
    last = time.monotonic() + _OTHERS_SECONDS
    with beneath.opened(disk.root, GIT) as folder:
        while time.monotonic() < last and _is_alive(folder, _MARK):
            time.sleep(_LOOK_SECONDS)


def _is_alive(folder: beneath.Folder, name: str) -> bool | None:
    """Return whether the process in a mark or lock, another one, runs; None if it is not known.

    What is older than git itself heeds is of a process that has ended.
    """
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0)
    try:
        with os.fdopen(folder.open(name, flags), "rb") as file:
            pid, _, host = file.read(_MOST_MARK_BYTES).strip().partition(b" ")
            age = time.time() - os.fstat(file.fileno()).st_mtime
    except FileNotFoundError:
        return None
    is_here = host.decode("utf-8", "replace") == socket.gethostname()
    if sys.platform == "win32" or not is_here or not pid.isdigit():
        return None
    if age > _OLDEST_MARK_SECONDS:
        return False
    try:
        os.kill(int(pid), 0)  # sends nothing
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return None
    return int(pid) != os.getpid()
