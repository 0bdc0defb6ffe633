"""Folders that are nested too deep to be entered: the index holds each like one skipped file.

The key of such a folder ends with a slash, as no file's key does; its stamp is always UNKNOWN.
"""

import stat
from collections.abc import Collection, Iterable
from typing import Final

from vector_index_mcp.files import beneath, scan
from vector_index_mcp.files.folder import Folder
from vector_index_mcp.files.ignore import Ignore, is_too_deep
from vector_index_mcp.files.scan import UNKNOWN, Changes, Known, Tree

TOO_DEEP: Final = "folder is nested too deep"


class IgnoreNotingDepth(Ignore):
    """The rules of one folder, which note each folder that they are asked about and is too deep."""

    def __init__(self, folder: Folder) -> None:
        """See `Ignore`."""
        super().__init__(folder)
        self.too_deep: set[str] = set()
        """The paths of these folders; some may be ignored, or gone by now."""

    def is_ignored(self, path: str, is_folder: bool) -> bool:
        """See `Ignore`."""
        self._note(path, is_folder)
        return super().is_ignored(path, is_folder)

    def ignores_entry(self, path: str, is_folder: bool) -> bool:
        """See `Ignore`."""
        self._note(path, is_folder)
        return super().ignores_entry(path, is_folder)

    def _note(self, path: str, is_folder: bool) -> None:
        if is_folder and is_too_deep(path) and not is_too_deep(_above(path)):
            self.too_deep.add(path)


def is_deep_folder(key: str) -> bool:
    """Whether a key is that of a folder which is too deep."""
    return key.endswith("/")


def walk(folder: Folder, ignore: Ignore) -> Tree:
    """Like `scan.walk`, but folders that are too deep are among the files, not the unreadable.

    Raises:
        ProjectError: If the folder itself cannot be listed.
    """
    tree = scan.walk(folder, ignore)
    deep = [key for key in tree.unreadable if is_too_deep(folder.path_of(key[:-1]))]
    if deep:
        tree.files.update(dict.fromkeys(deep, UNKNOWN))
        tree.unreadable = [key for key in tree.unreadable if key not in tree.files]
    return tree


def look(
    folder: Folder,
    rules: IgnoreNotingDepth,
    keys: Collection[str],
    known: Known,
    linked: set[str],
    others: Iterable[str],
) -> Changes:
    """Like `scan.look`, also for folders that are too deep; all touched files are read again.

    A write through a memory map leaves the stamp of a touched file as it was.

    Raises:
        ProjectError: If the folder itself is gone.
    """
    rules.too_deep.clear()
    changes = scan.look(folder, rules, keys, known, linked, others, keys)
    seen = {f"{folder.key_of(path)}/" for path in list(rules.too_deep)}
    seen.update(filter(is_deep_folder, changes.gone))
    there = {key for key in seen if _is_there(folder, rules, folder.path_of(key[:-1]))}
    changes.gone = [key for key in changes.gone if key not in there]
    changes.dirty += sorted(key for key in there if known.get(key) is None)
    return changes


def _is_there(folder: Folder, rules: Ignore, path: str) -> bool:
    try:
        is_folder = stat.S_ISDIR(beneath.status(folder.path, path).st_mode)
    except (OSError, ValueError):
        return False
    # Of a folder that is too deep itself, the rules say that it is ignored.
    is_ignored = rules.is_ignored(_above(path), True) or rules.ignores_entry(path, True)
    return is_folder and not is_ignored


def _above(path: str) -> str:
    return path.rpartition("/")[0]
