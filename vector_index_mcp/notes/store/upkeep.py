"""Packs the loose objects of many commits into one file, so that git stays fast.

It never runs `git gc`, which also deletes unreachable objects: those may be a person's staged or
dropped work. Repacking deletes only objects that the new pack contains.
"""

import logging

from vector_index_mcp.notes.store.disk import GIT, Disk
from vector_index_mcp.notes.store.repository import Repository, failure

_log = logging.getLogger(__name__)

# git itself packs at 6,700 loose objects (gc.auto), in 256 folders. A write makes six objects.
_MOST_IN_A_FOLDER = 27
_SAMPLE = f"{GIT}/objects/17"
_SECONDS = 600.0


def tidy(disk: Disk, repository: Repository) -> bool:
    """Pack loose objects if there are too many; return whether there were.

    Raises:
        Refusal: If git cannot pack them.
    """
    if len(disk.entries(_SAMPLE)) <= _MOST_IN_A_FOLDER:
        return False
    result = repository.run("repack", "-d", "-l", "-q", "--geometric=2", seconds=_SECONDS)
    if result.status:
        raise failure("repack", result)
    _log.info("packed the objects of %s", disk.root)
    return True
