"""Recognizes names of files and folders that git must not keep. Pure.

git takes no file below a folder that some file system would take for `.git`: a machine that is sent
such a commit can never fetch again. The rules are those of git's `verify_path` (`read-cache.c`) and
`fsck_tree` (`fsck.c`), for all systems: the machines that share a store may run any of them.
"""

import re

_NO_NAMES = frozenset({"", ".", ".."})
_IGNORED_BY_HFS = dict.fromkeys(
    [*range(0x200C, 0x2010), *range(0x202A, 0x202F), *range(0x206A, 0x2070), 0xFEFF]
)
# git's check for HFS takes what it cannot decode for the end of the name.
_UNDECODABLE = "\udc80-\udcff\ufffe\uffff"
_GITS = re.compile(rf"(?:\.git|git~1)[. ]*(?:\Z|[:{_UNDECODABLE}])", re.ASCII | re.IGNORECASE)
_SEPARATORS = re.compile(r"[/\\]")


def is_keepable(name: str) -> bool:
    """Return whether git keeps a file or folder called `name`: one component of a path."""
    if name in _NO_NAMES:
        return False
    parts = _SEPARATORS.split(name.translate(_IGNORED_BY_HFS))
    return not any(_GITS.match(part) for part in parts)


def is_keepable_path(path: str) -> bool:
    """Return whether git keeps a file with this path."""
    return all(map(is_keepable, path.split("/")))
