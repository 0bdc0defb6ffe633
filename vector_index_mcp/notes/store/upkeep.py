"""Packs what many commits have left as single files, so that git stays quick.

Never `git gc`: that also deletes what no reference leads to, and what somebody has staged or
thrown away is theirs. Packing deletes only what the new pack holds.
"""

import logging

from vector_index_mcp.notes.store.disk import GIT, Disk
from vector_index_mcp.notes.store.repository import Repository, failure

_log = logging.getLogger(__name__)

# A 256th of the 6,700 single objects at which git packs by itself (gc.auto); a write makes six.
_MOST_IN_A_FOLDER = 27
_SAMPLE = f"{GIT}/objects/17"
_SECONDS = 600.0


def tidy(disk: Disk, repository: Repository) -> bool:
    """Pack single objects if there are too many; whether there were.

    Raises:
        Refusal: If git cannot.
    """
    if len(disk.entries(_SAMPLE)) <= _MOST_IN_A_FOLDER:
        return False
    said = repository.run("repack", "-d", "-l", "-q", "--geometric=2", seconds=_SECONDS)
    if said.status:
        raise failure("repack", said)
    _log.info("packed the objects of %s", disk.root)
    return True
