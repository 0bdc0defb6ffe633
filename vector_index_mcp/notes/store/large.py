"""Handles files that are too large to be read into memory: they are compared and copied by pieces.

No tool reads such a file, and no call of an agent makes one, but a person may commit one with git.
"""

import hashlib
import os
from collections.abc import Sequence

from vector_index_mcp.files import beneath
from vector_index_mcp.notes.limits import LARGEST_FILE_BYTES
from vector_index_mcp.notes.store.disk import Disk
from vector_index_mcp.notes.store.history import id_of
from vector_index_mcp.notes.store.program import failure
from vector_index_mcp.notes.store.repository import Repository
from vector_index_mcp.notes.store.steps import Copied, parted, target_of

_SECONDS = 600.0
_PIECE_BYTES = 1_000_000


def id_of_file(disk: Disk, path: str) -> str:
    """Return the id that git gives to a file of any size; empty if it cannot be read."""
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0)
    try:
        with os.fdopen(beneath.open_file(disk.root, path, flags), "rb") as file:
            size = os.fstat(file.fileno()).st_size
            found = hashlib.sha1(b"blob %d\0" % size, usedforsecurity=False)
            while piece := file.read(_PIECE_BYTES):
                found.update(piece)
    except OSError:
        return ""
    return found.hexdigest()


def id_of_link(disk: Disk, path: str) -> str:
    """Return the id that git gives to a link; empty if there is none."""
    above, name = parted(path)
    try:
        with beneath.opened(disk.root, above) as folder:
            target = target_of(folder, name)
    except OSError:
        return ""
    return id_of(target) if target is not None else ""


def large_ones(repository: Repository, names: Sequence[str]) -> dict[str, int]:
    """Return those of the objects that are too large to be read, with their sizes.

    Raises:
        Refusal: If git cannot tell.
    """
    if not names:
        return {}
    wanted = "".join(f"{name}\n" for name in dict.fromkeys(names)).encode()
    output = repository.done(
        "cat-file", "--batch-check=%(objectname) %(objectsize)", "--buffer", given=wanted
    )
    lines = (line.split(" ") for line in output.decode("ascii").splitlines())
    sizes = {name: int(size) for name, size in lines if size.isdecimal()}
    return {name: size for name, size in sizes.items() if size > LARGEST_FILE_BYTES}


def copy_of_object(repository: Repository, name: str) -> Copied:
    """Return the content of an object, which git writes into the file itself."""

    def copy(descriptor: int) -> None:
        result = repository.run("cat-file", "blob", name, output=descriptor, seconds=_SECONDS)
        if result.status:
            raise failure("cat-file", result)

    return Copied(copy)


def about_large(path: str) -> str:
    """Return a sentence about a large file, for people and agents."""
    return (
        f"{path} has more than {LARGEST_FILE_BYTES:,} bytes: it stays as it is, and no tool reads, "
        "searches or commits it; commit a change of it with git"
    )
