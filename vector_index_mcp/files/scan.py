"""Which files there are, and which of them are not as the index knows them."""

import errno
import os
import stat
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from vector_index_mcp.errors import ProjectError
from vector_index_mcp.files.ignore import Ignore, concerns_rules

_OUT_OF_SIGHT = {errno.EACCES, errno.EPERM, errno.EIO, errno.ESTALE}
"""A file that fails to be looked at like this may be there, as it was."""

Stamp = tuple[int, int, int]
"""(bytes, mtime_ns, ctime_ns). The ctime tells an edit that put size and mtime back."""


@dataclass(slots=True)
class Tree:
    """What a walk found: the files that are not ignored."""

    files: dict[str, Stamp] = field(default_factory=dict)
    unreadable: list[str] = field(default_factory=list)
    """Folders that could not be listed, with a trailing slash; nothing is known of their files."""
    folders: int = 0
    """Folders that were listed: those to be watched."""


@dataclass(slots=True)
class Changes:
    """What has to be done so that the index matches the disk."""

    dirty: list[str] = field(default_factory=list)
    """Files to read."""
    gone: list[str] = field(default_factory=list)
    """Files to forget."""


def stamp_of(status: os.stat_result) -> Stamp:
    """What tells one state of a file from another."""
    return (status.st_size, status.st_mtime_ns, status.st_ctime_ns)


def walk(root: Path, ignore: Ignore, folder: str = "") -> Tree:
    """The files below `folder` (root-relative; empty for all) that are not ignored.

    Links are not followed and not listed: what they point to is found at its own place, or lies
    outside of the project.

    Raises:
        ProjectError: If the project's folder itself cannot be listed.
    """
    tree = Tree()
    pending = [folder]
    while pending:
        here = pending.pop()
        try:
            entries = _entries(root / here)
        except OSError as error:
            if not here:
                raise ProjectError(
                    f"the project folder {root} cannot be read ({error.strerror}); "
                    "the index is kept and goes on when the folder is back"
                ) from error
            if not isinstance(error, (FileNotFoundError, NotADirectoryError)):
                tree.unreadable.append(here + "/")
            continue
        tree.folders += 1
        prefix = here + "/" if here else ""
        for entry in entries:
            path = prefix + entry.name
            is_folder = entry.is_dir(follow_symlinks=False)
            if not (is_folder or entry.is_file(follow_symlinks=False)):
                continue
            if ignore.ignores_entry(path, is_folder):
                continue
            if is_folder:
                pending.append(path)
            elif (stamp := _entry_stamp(entry)) is not None:
                tree.files[path] = stamp
    return tree


def compare(tree: Tree, known: Mapping[str, Stamp]) -> Changes:
    """What differs between a walk and the stamps the index knows. Pure."""
    unreadable = tuple(tree.unreadable)
    return Changes(
        dirty=[path for path, stamp in tree.files.items() if known.get(path) != stamp],
        gone=[
            path
            for path in known
            if path not in tree.files and not (unreadable and path.startswith(unreadable))
        ],
    )


def look(root: Path, ignore: Ignore, paths: Iterable[str], known: Mapping[str, Stamp]) -> Changes:
    """What has to be done about dirty `paths`: files or folders, there or gone, ignored or not.

    A path says only where to look, the disk says what happened. Of an ignore file, the whole
    folder is looked at.

    Raises:
        ProjectError: If the project's folder is gone: that says nothing about its files.
    """
    if not root.is_dir():
        raise ProjectError(
            f"the project folder {root} is gone; "
            "the index is kept and goes on when the folder is back"
        )
    known_paths = _Sorted(known)
    dirty: dict[str, None] = {}
    gone: dict[str, None] = {}
    for path in _widened(paths):
        changes = _look_at(root, ignore, path, known, known_paths)
        dirty.update(dict.fromkeys(changes.dirty))
        gone.update(dict.fromkeys(changes.gone))
    return Changes(list(dirty), list(gone))


def _widened(paths: Iterable[str]) -> list[str]:
    wide = {path.rpartition("/")[0] if concerns_rules(path) else path for path in paths}
    return [""] if "" in wide else sorted(wide)


def _look_at(
    root: Path, ignore: Ignore, path: str, known: Mapping[str, Stamp], known_paths: "_Sorted"
) -> Changes:
    try:
        if _is_behind_link(root, path):
            return Changes(gone=known_paths.at_or_below(path))
        status = (root / path).lstat()
    except OSError as error:
        if error.errno in _OUT_OF_SIGHT:
            return Changes()
        return Changes(gone=known_paths.at_or_below(path))
    if stat.S_ISDIR(status.st_mode) and not ignore.is_ignored(path, True):
        below = known_paths.at_or_below(path)
        return compare(walk(root, ignore, path), {key: known[key] for key in below})
    if stat.S_ISREG(status.st_mode) and not ignore.is_ignored(path, False):
        changed = known.get(path) != stamp_of(status)
        return Changes([path] if changed else [], known_paths.below(path))
    return Changes(gone=known_paths.at_or_below(path))


def _is_behind_link(root: Path, path: str) -> bool:
    """Whether a folder on the way from the root (itself not asked) to `path` is a link."""
    folders = PurePosixPath(path).parents[:-1]
    return any(stat.S_ISLNK((root / folder).lstat().st_mode) for folder in folders)


class _Sorted:
    """Paths in order, so that those below a folder are found without a look at all others."""

    def __init__(self, paths: Iterable[str]) -> None:
        self._paths: Sequence[str] = sorted(paths)

    def below(self, folder: str) -> list[str]:
        if not folder:
            return list(self._paths)
        start = bisect_left(self._paths, folder + "/")
        end = bisect_left(self._paths, folder + "0")  # "0" is the character after "/"
        return list(self._paths[start:end])

    def at_or_below(self, path: str) -> list[str]:
        index = bisect_left(self._paths, path)
        here = index < len(self._paths) and self._paths[index] == path
        return ([path] if here else []) + self.below(path)


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    with os.scandir(folder) as entries:
        return sorted(entries, key=lambda entry: entry.name)


def _entry_stamp(entry: os.DirEntry[str]) -> Stamp | None:
    try:
        return stamp_of(entry.stat(follow_symlinks=False))
    except OSError:  # gone since it was listed
        return None
