"""Which files there are, and which of them are not as the index knows them."""

import contextlib
import os
import stat
from bisect import bisect_left
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from vector_index_mcp.errors import ProjectError
from vector_index_mcp.files import beneath
from vector_index_mcp.files.ignore import Ignore, concerns_rules, is_too_deep

# A file costs a kilobyte of memory in the index's ledger and in a scan, whatever is in it.
MOST_FILES = 500_000
"""Of which so many are found, and so many folders; the others are counted."""

Stamp = tuple[int, int, int]
"""(bytes, mtime_ns, ctime_ns). The ctime tells an edit that put size and mtime back."""

UNKNOWN: Stamp = (0, 0, 0)
"""No file has it, so whoever looks next takes the file for changed."""

_SECOND_NS = 1_000_000_000
_COARSEST_NS = 2 * _SECOND_NS  # FAT's; ext2, ext3 and HFS+ tell seconds


@dataclass(slots=True)
class Tree:
    """What a walk found: the files that are not ignored."""

    files: dict[str, Stamp] = field(default_factory=dict)
    unreadable: list[str] = field(default_factory=list)
    """Folders that could not be listed or entered, or are too deep, with a trailing slash; nothing
    is known of their files."""
    left_out: int = 0
    """Files and folders beyond `MOST_FILES`; always the same ones of the same tree."""
    folders: int = 0
    """How many were found below the root."""
    linked: set[str] = field(default_factory=set)
    """The files that have other names (hard links), in the project or elsewhere."""


@dataclass(slots=True)
class Changes:
    """What has to be done so that the index matches the disk."""

    dirty: list[str] = field(default_factory=list)
    """Files to read."""
    gone: list[str] = field(default_factory=list)
    """Files to forget."""
    left_out: int = 0
    """New files for which there is no room."""


def stamp_of(status: os.stat_result) -> Stamp:
    """What tells one state of a file from another."""
    return (status.st_size, status.st_mtime_ns, status.st_ctime_ns)


def may_recur(stamp: Stamp, now: int) -> bool:
    """Whether a save after `now`, in ns since 1970, could leave `stamp` once more. Pure.

    That is so where the file system has no finer time than seconds, until the second is over.
    """
    times = stamp[1:]
    is_coarse = not any(time % _SECOND_NS for time in times)
    return is_coarse and any(abs(now - time) < _COARSEST_NS for time in times)


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
            with beneath.entries(root, here) as entries:
                pending += _note(tree, here, entries, ignore)
        except OSError as error:
            if not here:
                raise ProjectError(
                    f"the project folder {root} cannot be read ({error.strerror}); "
                    "the index is kept and goes on when the folder is back"
                ) from error
            if not beneath.tells_absence(error):
                tree.unreadable.append(here + "/")
    return tree


def _note(tree: Tree, here: str, entries: Iterable[os.DirEntry[str]], ignore: Ignore) -> list[str]:
    """Note the files in the folder `here`; returns the folders in it that are to be walked."""
    prefix = here + "/" if here else ""
    files = _First(MOST_FILES - len(tree.files))
    folders = _First(MOST_FILES - tree.folders)
    for entry in entries:
        path = prefix + entry.name
        is_folder = entry.is_dir(follow_symlinks=False)
        if not (is_folder or entry.is_file(follow_symlinks=False)):
            continue
        if ignore.ignores_entry(path, is_folder):
            continue
        (folders if is_folder else files).add(entry)
    out_of_sight = []
    for entry in files.sorted():
        try:
            status = entry.stat(follow_symlinks=False)
            tree.files[prefix + entry.name] = stamp_of(status)
            if status.st_nlink > 1:
                tree.linked.add(prefix + entry.name)
        except FileNotFoundError:  # since it was listed
            continue
        except OSError:  # it may be as it was: a folder can be listed that cannot be entered
            out_of_sight.append(prefix or entry.name)
    tree.unreadable += dict.fromkeys(out_of_sight)
    found = [prefix + entry.name for entry in folders.sorted()]
    tree.folders += len(found)
    tree.left_out += files.left_out + folders.left_out
    if found and is_too_deep(found[0]):
        tree.unreadable += [folder + "/" for folder in found]
        return []
    return found


class _First:
    """The first `most` entries by name of any number, in bounded memory."""

    _SLACK = 1_000

    def __init__(self, most: int) -> None:
        self.left_out = 0
        self._most = most
        self._entries: list[os.DirEntry[str]] = []

    def add(self, entry: os.DirEntry[str]) -> None:
        self._entries.append(entry)
        if len(self._entries) > 2 * self._most + self._SLACK:
            self.sorted()

    def sorted(self) -> Sequence[os.DirEntry[str]]:
        """Those first ones of what was added."""
        self._entries.sort(key=lambda entry: entry.name)
        self.left_out += max(0, len(self._entries) - self._most)
        del self._entries[self._most :]
        return self._entries


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


def absence_of(root: Path) -> ProjectError | None:
    """Why nothing that is not found below `root` is gone: the folder itself is; None if not."""
    if os.path.isdir(root):
        return None
    return ProjectError(
        f"the project folder {root} is gone; the index is kept and goes on when the folder is back"
    )


def sweep(root: Path, known: Mapping[str, Stamp]) -> list[str]:
    """Those of the files in `known` that are gone or have another stamp; cheaper than a walk.

    What cannot be looked at for now is not among them, nor what is known to be taken up again.
    """
    changed = []
    top = f"{root}{os.sep}"
    for path, stamp in known.items():
        if stamp[2] <= 0:  # no file has it
            continue
        try:
            if stamp_of(os.lstat(top + path)) != stamp:
                changed.append(path)
        except (OSError, ValueError) as error:
            if isinstance(error, OSError) and beneath.tells_absence(error):
                changed.append(path)
    return changed


def look(
    root: Path,
    ignore: Ignore,
    paths: Iterable[str],
    known: Mapping[str, Stamp],
    linked: set[str] | None = None,
    others: Iterable[str] = (),
) -> Changes:
    """What has to be done about dirty `paths`: files or folders, there or gone, ignored or not.

    A path says only where to look, the disk says what happened. Of an ignore file, the whole
    folder is looked at. A write by one name of a file is no event of its others.

    Args:
        root: The project.
        ignore: What is not looked at.
        paths: Where something happened.
        known: What the index knows of every file.
        linked: The known files that have other names; these are looked at, too. Brought up to date.
        others: Folders among `paths` that are others than before. Two may have held files with the
            same stamps: what one process writes in a few milliseconds has one time.

    Raises:
        ProjectError: If the project's folder is gone: that says nothing about its files.
    """
    if (problem := absence_of(root)) is not None:
        raise problem
    known_paths = _Sorted(known)
    distrusted = [path for folder in others for path in known_paths.below(folder)]
    known = {**known, **dict.fromkeys(distrusted, UNKNOWN)} if distrusted else known
    dirty: dict[str, None] = {}
    gone: dict[str, None] = {}
    linked = set() if linked is None else linked
    before = frozenset(linked)
    walked: set[str] = set()
    for path in _widened(paths):
        changes = _look_at(root, ignore, path, known, known_paths, walked, linked)
        dirty.update(dict.fromkeys(changes.dirty))
        gone.update(dict.fromkeys(changes.gone))
    for path in _by_other_names(root, known, before, linked):
        if path not in gone:
            dirty[path] = None
    linked.difference_update(gone)
    room = max(0, MOST_FILES - len(known) + len(gone))
    surplus = sorted(path for path in dirty if path not in known)[room:]
    for path in surplus:
        del dirty[path]
    return Changes(list(dirty), list(gone), len(surplus))


def _widened(paths: Iterable[str]) -> list[str]:
    wide = {path.rpartition("/")[0] if concerns_rules(path) else path for path in paths}
    return [""] if "" in wide else sorted(wide)


def _look_at(
    root: Path,
    ignore: Ignore,
    path: str,
    known: Mapping[str, Stamp],
    known_paths: "_Sorted",
    walked: set[str],
    linked: set[str],
) -> Changes:
    try:
        status = beneath.status(root, path)
    except OSError as error:
        is_gone = beneath.tells_absence(error)
        return Changes(gone=known_paths.at_or_below(path) if is_gone else [])
    if stat.S_ISDIR(status.st_mode) and not ignore.is_ignored(path, True):
        if lies_in(path, walked):
            return Changes()
        walked.add(path)
        below = known_paths.at_or_below(path)
        tree = walk(root, ignore, path)
        linked |= tree.linked
        return compare(tree, {key: known[key] for key in below})
    if stat.S_ISREG(status.st_mode) and not ignore.is_ignored(path, False):
        changed = known.get(path) != stamp_of(status)
        (linked.add if status.st_nlink > 1 else linked.discard)(path)
        return Changes([path] if changed else [], known_paths.below(path))
    return Changes(gone=known_paths.at_or_below(path))


def _by_other_names(
    root: Path, known: Mapping[str, Stamp], before: Collection[str], linked: set[str]
) -> list[str]:
    """The files that changed by another of their names; notes those that have others still."""
    if all(path in before for path in linked):
        return sweep(root, {path: known[path] for path in before if path in known})
    changed = sweep(root, known)  # the other names of those that are new are not known yet
    for path in changed:
        with contextlib.suppress(OSError):
            if beneath.status(root, path).st_nlink > 1:
                linked.add(path)
    return changed


def lies_in(path: str, folders: Collection[str]) -> bool:
    """Whether `path` lies below one of `folders`."""
    while path:
        path = path.rpartition("/")[0]
        if path in folders:
            return True
    return False


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
