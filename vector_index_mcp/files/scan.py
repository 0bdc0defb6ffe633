"""Which files there are, and which of them are not as the index knows them."""

import contextlib
import os
import stat
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Protocol

from vector_index_mcp.errors import ProjectError
from vector_index_mcp.files import beneath
from vector_index_mcp.files.folder import Folder, absence_of
from vector_index_mcp.files.ignore import Ignore, concerns_rules, is_too_deep

# A file costs a kilobyte of memory in the index's ledger and in a scan, whatever is in it.
MOST_FILES = 500_000
"""Of which so many are found, and so many folders; the others are counted."""

Stamp = tuple[int, int, int]
"""(bytes, mtime_ns, ctime_ns). The ctime shows an edit that put size and mtime back."""

UNKNOWN: Stamp = (0, 0, 0)
"""No file has it, so whoever looks next takes the file for changed."""

_SECOND_NS = 1_000_000_000
_LATEST_NS = (1 << 63) - 1  # in the year 2262: what a column of 64 bits holds
_COARSEST_NS = 2 * _SECOND_NS  # FAT's; ext2, ext3 and HFS+ have seconds


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
    """What differs between two states of a file.

    Some file systems have times that no index holds, after 2262 or before 1677: the next that it
    does stands for them.
    """
    return (status.st_size, _storable(status.st_mtime_ns), _storable(status.st_ctime_ns))


def modified_at(status: os.stat_result) -> datetime:
    """When a file was written, as its stamp says."""
    return datetime.fromtimestamp(stamp_of(status)[1] / _SECOND_NS, UTC)


def _storable(time: int) -> int:
    return min(max(time, -_LATEST_NS), _LATEST_NS)


def may_recur(stamp: Stamp, now: int) -> bool:
    """Whether a save after `now`, in ns since 1970, could leave `stamp` once more. Pure.

    That is so where the file system has no finer time than seconds, until the second is over.
    """
    times = stamp[1:]
    is_coarse = not any(time % _SECOND_NS for time in times)
    return is_coarse and any(abs(now - time) < _COARSEST_NS for time in times)


def walk(folder: Folder, ignore: Ignore, key: str | None = None) -> Tree:
    """The files in `folder` that are not ignored.

    Links are not followed and not listed: what they point to is found at its own place, or lies
    outside of the folder.

    Args:
        folder: Where to walk.
        ignore: Its rules.
        key: Of a folder in it, to walk that one alone.

    Raises:
        ProjectError: If the folder itself cannot be listed.
    """
    tree = Tree()
    pending = ["" if key is None else folder.path_of(key)]
    while pending:
        here = pending.pop()
        try:
            with beneath.entries(folder.path, here) as entries:
                pending += _note(tree, folder, here, entries, ignore)
        except OSError as error:
            if not here:
                raise ProjectError(
                    f"the project folder {folder.path} cannot be read ({error.strerror}); "
                    "the index is kept and goes on when the folder is back"
                ) from error
            if not beneath.tells_absence(error):
                tree.unreadable.append(folder.key_of(here) + "/")
    return tree


def _note(
    tree: Tree, folder: Folder, here: str, entries: Iterable[os.DirEntry[str]], ignore: Ignore
) -> list[str]:
    """Note the files at the path `here`; returns the paths of folders there to be walked."""
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
        key = folder.key_of(prefix + entry.name)
        try:
            status = entry.stat(follow_symlinks=False)
            tree.files[key] = stamp_of(status)
            if status.st_nlink > 1:
                tree.linked.add(key)
        except FileNotFoundError:  # since it was listed
            continue
        except OSError:  # it may be as it was: a folder can be listed that cannot be entered
            out_of_sight.append(folder.key_of(prefix) if prefix else key)
    tree.unreadable += dict.fromkeys(out_of_sight)
    found = [prefix + entry.name for entry in folders.sorted()]
    tree.folders += len(found)
    tree.left_out += files.left_out + folders.left_out
    if found and is_too_deep(found[0]):
        tree.unreadable += [folder.key_of(path) + "/" for path in found]
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


def compare(tree: Tree, known: Mapping[str, Stamp | None]) -> Changes:
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


class Known(Protocol):
    """What an index knows of files: the stamp of each by its key."""

    def __len__(self) -> int: ...

    def get(self, key: str, /) -> Stamp | None:
        """The stamp of a file; None if it is not known."""

    def below(self, key: str, /) -> Iterable[str]:
        """The keys of files in the folder with the key `key`; all of them for an empty one."""


def sweep(folder: Folder, known: Mapping[str, Stamp]) -> list[str]:
    """Those of the files in `known` that are gone or have another stamp; cheaper than a walk.

    What cannot be looked at for now is not among them, nor what is known to be taken up again.

    Args:
        folder: Where all of them lie.
        known: Their stamps, by key.
    """
    changed = []
    top, start = f"{folder.path}{os.sep}", len(folder.name) + 1 if folder.name else 0
    for key, stamp in known.items():
        if stamp[2] <= 0:  # no file has it
            continue
        try:
            if stamp_of(os.lstat(top + key[start:])) != stamp:
                changed.append(key)
        except (OSError, ValueError) as error:
            if isinstance(error, OSError) and beneath.tells_absence(error):
                changed.append(key)
    return changed


def look(
    folder: Folder,
    ignore: Ignore,
    keys: Iterable[str],
    known: Known,
    linked: set[str] | None = None,
    others: Iterable[str] = (),
    reread: Collection[str] = (),
) -> Changes:
    """What has to be done about dirty `keys`: files or folders, there or gone, ignored or not.

    A key says only where to look, the disk says what happened. Of an ignore file, the whole folder
    is looked at. A write by one name of a file is no event of its others.

    Args:
        folder: Where all of them lie.
        ignore: What is not looked at.
        keys: Where something happened.
        known: What the index knows of the files; nothing is asked but what `keys` concern.
        linked: The known files that have other names; these are looked at, too. Brought up to date.
        others: Folders among `keys` that are others than before. Two may have held files with the
            same stamps: what one process writes in a few milliseconds has one time.
        reread: Files that are read whatever their stamp.

    Raises:
        ProjectError: If the folder is gone: that says nothing about its files.
    """
    if (problem := absence_of(folder)) is not None:
        raise problem
    linked = set() if linked is None else linked
    looking = _Look(folder, ignore, known, linked, frozenset(others), frozenset(reread))
    before = frozenset(linked)
    for key in _widened(folder, keys):
        looking.at(key)
    dirty, gone = looking.dirty, looking.gone
    for key in _by_other_names(folder, known, before, linked):
        if key not in gone:
            dirty[key] = None
    linked.difference_update(gone)
    room = max(0, MOST_FILES - len(known) + len(gone))
    surplus = sorted(key for key in dirty if known.get(key) is None)[room:]
    for key in surplus:
        del dirty[key]
    return Changes(list(dirty), list(gone), len(surplus))


def _widened(folder: Folder, keys: Iterable[str]) -> list[str]:
    wide = {key.rpartition("/")[0] if concerns_rules(key) else key for key in keys}
    if folder.top in wide or "" in wide:
        return [folder.top]
    return sorted(wide)


@dataclass(slots=True)
class _Look:
    """A look at what lies at a few keys, one after the other."""

    folder: Folder
    ignore: Ignore
    known: Known
    linked: set[str]
    others: frozenset[str]
    """Folders that are others than before: files in them are read."""
    reread: frozenset[str]
    dirty: dict[str, None] = field(default_factory=dict)
    gone: dict[str, None] = field(default_factory=dict)
    walked: set[str] = field(default_factory=set)

    def at(self, key: str) -> None:
        """Look at the file or folder with the key `key`."""
        path = self.folder.path_of(key)
        try:
            status = beneath.status(self.folder.path, path)
        except OSError as error:
            if beneath.tells_absence(error):
                self._forget(self._at_or_below(key))
            return
        if stat.S_ISDIR(status.st_mode) and not self.ignore.is_ignored(path, True):
            if not lies_in(key, self.walked):
                self._walk(key)
        elif stat.S_ISREG(status.st_mode) and not self.ignore.is_ignored(path, False):
            if self._stamp_of(key) != stamp_of(status):
                self.dirty[key] = None
            (self.linked.add if status.st_nlink > 1 else self.linked.discard)(key)
            self._forget(self.known.below(key))
        else:
            self._forget(self._at_or_below(key))

    def _walk(self, key: str) -> None:
        self.walked.add(key)
        tree = walk(self.folder, self.ignore, key)
        self.linked |= tree.linked
        changes = compare(tree, {below: self._stamp_of(below) for below in self._at_or_below(key)})
        self.dirty.update(dict.fromkeys(changes.dirty))
        self._forget(changes.gone)

    def _at_or_below(self, key: str) -> list[str]:
        here = [key] if self.known.get(key) is not None else []
        return [*here, *self.known.below(key)]

    def _stamp_of(self, key: str) -> Stamp | None:
        stamp = self.known.get(key)
        is_to_be_read = key in self.reread or (self.others and lies_in(key, self.others))
        return UNKNOWN if stamp is not None and is_to_be_read else stamp

    def _forget(self, keys: Iterable[str]) -> None:
        self.gone.update(dict.fromkeys(keys))


def _by_other_names(
    folder: Folder, known: Known, before: Collection[str], linked: set[str]
) -> list[str]:
    """The files that changed by another of their names; notes those that have others still."""
    if all(key in before for key in linked):
        return sweep(folder, _stamps(known, before))
    # The other names of those that are new are not known yet.
    changed = sweep(folder, _stamps(known, known.below(folder.top)))
    for key in changed:
        with contextlib.suppress(OSError):
            if beneath.status(folder.path, folder.path_of(key)).st_nlink > 1:
                linked.add(key)
    return changed


def _stamps(known: Known, keys: Iterable[str]) -> dict[str, Stamp]:
    found = ((key, known.get(key)) for key in keys)
    return {key: stamp for key, stamp in found if stamp is not None}


def lies_in(path: str, folders: Collection[str]) -> bool:
    """Whether `path` lies below one of `folders`."""
    while path:
        path = path.rpartition("/")[0]
        if path in folders:
            return True
    return False
