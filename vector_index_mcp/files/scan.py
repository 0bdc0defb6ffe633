"""Finds the files of a folder, and those that differ from what the index knows."""

import contextlib
import os
import stat
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Protocol

from vector_index_mcp.files import beneath
from vector_index_mcp.files.first import First
from vector_index_mcp.files.folder import Folder, absence_of, out_of_reach
from vector_index_mcp.files.ignore import Ignore, concerns_rules, is_too_deep
from vector_index_mcp.files.spelled import Spelling

# A file of any content takes a kilobyte of memory in the index's ledger and in a scan.
MOST_FILES = 500_000
"""The most files, and the most folders, that a scan finds; it only counts the rest."""

Stamp = tuple[int, int, int]
"""(bytes, mtime_ns, ctime_ns). The ctime shows an edit that put size and mtime back."""

UNKNOWN: Stamp = (0, 0, 0)
"""Of a file that could not be read. No file has this stamp, so the next look reads it again."""
DISTRUSTED: Stamp = (-1, -1, -1)
"""Of a file whose rows do not match it: no file has this stamp, either."""
CLAIMED: Stamp = (-2, -2, -2)
"""Of a file whose rows another machine has made, until both have been compared: no file has this
stamp, either."""
OUTDATED: Stamp = (-3, -3, -3)
"""Of a file whose rows another version of the program has made: no file has this stamp, either."""

OF_NO_FILE = frozenset({UNKNOWN, DISTRUSTED, CLAIMED, OUTDATED})
"""All stamps that no file has."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SECOND_NS = 1_000_000_000
_LATEST_NS = (1 << 63) - 1  # in the year 2262: the most that a column of 64 bits can store
_COARSEST_NS = 2 * _SECOND_NS  # on FAT; on ext2, ext3 and HFS+ times are in seconds


@dataclass(slots=True)
class Tree:
    """The result of a walk: the files that are not ignored."""

    files: dict[str, Stamp] = field(default_factory=dict)
    unreadable: list[str] = field(default_factory=list)
    """Folders that could not be listed or entered, or are too deep, with a trailing slash. Nothing
    is known about their files. Also files at the top that cannot be looked at."""
    left_out: int = 0
    """How many files and folders are beyond `MOST_FILES`; for the same tree, always the same."""
    folders: int = 0
    """How many folders were found below the root."""
    linked: set[str] = field(default_factory=set)
    """Files that have other names (hard links), in the project or elsewhere."""
    replaced: frozenset[str] = frozenset()
    """Keys of folders that have been replaced by others: their files may have changed although
    their stamps are the same, because files written within a few milliseconds get equal ones."""

    def hidden(self, keys: Iterable[str]) -> list[str]:
        """Return those of `keys` that were not found and may be there all the same."""
        if not self.unreadable:
            return []
        files = {key for key in self.unreadable if not key.endswith("/")}
        folders = tuple(key for key in self.unreadable if key.endswith("/"))
        lost = (key for key in keys if key in files or key.startswith(folders))
        return [key for key in lost if key not in self.files]


@dataclass(slots=True)
class Changes:
    """What must be done so that the index matches the disk."""

    dirty: list[str] = field(default_factory=list)
    """Files to read."""
    gone: list[str] = field(default_factory=list)
    """Files to forget."""
    left_out: int = 0
    """New files for which there is no room."""
    walked: Collection[str] = field(default=(), compare=False)
    """Keys of the folders that a look has walked, or not found."""
    unreadable: list[str] = field(default_factory=list, compare=False)
    """Like `Tree.unreadable`, of the walked folders."""


def stamp_of(status: os.stat_result) -> Stamp:
    """Return the stamp of a file, which differs between any two states of it.

    Some file systems have times after 2262 or before 1677, which an index cannot store; the nearest
    time that it can store is used.
    """
    return (status.st_size, _storable(status.st_mtime_ns), _storable(status.st_ctime_ns))


def modified_at(status: os.stat_result) -> datetime:
    """Return when a file was written, by its stamp."""
    return moment_of(stamp_of(status)[1] / _SECOND_NS)


def moment_of(seconds: float) -> datetime:
    """Return a time since 1970, which may be negative: Windows refuses that of a timestamp."""
    return _EPOCH + timedelta(seconds=seconds)


def _storable(time: int) -> int:
    return min(max(time, -_LATEST_NS), _LATEST_NS)


def may_recur(stamp: Stamp, now: int) -> bool:
    """Return whether a save after `now`, in ns since 1970, could give a file the same stamp. Pure.

    It could if the file system's times are in whole seconds, until the second is over.
    """
    times = stamp[1:]
    is_coarse = not any(time % _SECOND_NS for time in times)
    return is_coarse and any(abs(now - time) < _COARSEST_NS for time in times)


def walk(folder: Folder, ignore: Ignore, key: str | None = None) -> Tree:
    """Return the files in `folder` that are not ignored.

    Links are not followed and not listed: their targets are found at their own places, or lie
    outside of the folder.

    Args:
        folder: The folder to walk.
        ignore: Its rules.
        key: The key of a folder in it, to walk that one alone; None for all of it.

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
                raise out_of_reach(folder, f"cannot be read ({error.strerror})") from error
            if not beneath.tells_absence(error):
                tree.unreadable.append(folder.key_of(here) + "/")
    return tree


def _note(
    tree: Tree, folder: Folder, here: str, entries: Iterable[os.DirEntry[str]], ignore: Ignore
) -> list[str]:
    """Note the files at the path `here`; return the paths of the folders there to be walked."""
    prefix = here + "/" if here else ""
    files = First(MOST_FILES - len(tree.files))
    folders = First(MOST_FILES - tree.folders)
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
        except FileNotFoundError:  # it was deleted after it was listed
            continue
        except OSError:  # it may be unchanged: some folders can be listed but not entered
            out_of_sight.append(folder.key_of(prefix) if prefix else key)
    tree.unreadable += dict.fromkeys(out_of_sight)
    found = [prefix + entry.name for entry in folders.sorted()]
    tree.folders += len(found)
    tree.left_out += files.left_out + folders.left_out
    if found and is_too_deep(found[0]):
        tree.unreadable += [folder.key_of(path) + "/" for path in found]
        return []
    return found


def compare(
    tree: Tree, known: Mapping[str, Stamp | None], *, was_unwatched: bool = False
) -> Changes:
    """Return the differences between a walk and the `known` stamps of the index. Pure.

    Args:
        tree: The walk.
        known: The stamps, by key.
        was_unwatched: Whether nobody watched before. Folders may have been exchanged then, which
            leaves the stamps of their files, so a stamp that several files have proves nothing:
            `touch`, `chmod -R` and generators give such ones.
    """
    hidden = set(tree.hidden(known))
    counts = Counter(tree.files.values() if was_unwatched else ())

    def is_doubtful(path: str, stamp: Stamp) -> bool:
        is_shared = counts[stamp] > 1 and path not in tree.linked
        return is_shared or (bool(tree.replaced) and lies_in(path, tree.replaced))

    return Changes(
        dirty=[
            path
            for path, stamp in tree.files.items()
            if known.get(path) != stamp or is_doubtful(path, stamp)
        ],
        gone=[path for path in known if path not in tree.files and path not in hidden],
    )


class Known(Protocol):
    """The stamps of the files in an index, by key."""

    def __len__(self) -> int: ...

    def get(self, key: str, /) -> Stamp | None:
        """Return the stamp of a file; None if the index does not know the file."""

    def below(self, key: str, /) -> Iterable[str]:
        """Return the keys of the files in the folder `key`; all keys if it is empty."""


def sweep(folder: Folder, known: Mapping[str, Stamp]) -> list[str]:
    """Return the known files that are gone or have another stamp; this is cheaper than a walk.

    Files that are out of reach now are left out, as are files whose stamp is that of no file:
    these are read again anyway.

    Args:
        folder: The folder of all these files.
        known: The stamps that the index knows, by key.
    """
    changed = []
    top, start = f"{folder.path}{os.sep}", len(folder.name) + 1 if folder.name else 0
    for key, stamp in known.items():
        if stamp in OF_NO_FILE:
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
    """Return what must be done about dirty `keys`: files or folders, there or gone, ignored or not.

    A key only says where to look; the disk shows what happened. If an ignore file is dirty, its
    whole folder is looked at. Files with hard links are always looked at, because a write by one
    name makes no event for the others.

    Args:
        folder: The folder of all these files.
        ignore: Its rules.
        keys: Where something happened.
        known: The stamps in the index; it is asked only about files that `keys` concern.
        linked: The known files that have other names. This set is brought up to date.
        others: Keys of folders that have been replaced by other folders. Files in both may have
            equal stamps, because files written within a few milliseconds get the same time.
        reread: Files to read even if their stamp is unchanged.

    Raises:
        ProjectError: If the folder itself is gone, which says nothing about its files.
    """
    if (problem := absence_of(folder)) is not None:
        raise problem
    linked = set() if linked is None else linked
    spelling = Spelling(folder.path)
    looking = _Look(folder, ignore, known, linked, spelling, frozenset(others), frozenset(reread))
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
    return Changes(list(dirty), list(gone), len(surplus), looking.walked, looking.unreadable)


def _widened(folder: Folder, keys: Iterable[str]) -> list[str]:
    wide = {key.rpartition("/")[0] if concerns_rules(key) else key for key in keys}
    if folder.top in wide or "" in wide:
        return [folder.top]
    return sorted(wide)


@dataclass(slots=True)
class _Look:
    """Looks at the files and folders of a few keys, one after another."""

    folder: Folder
    ignore: Ignore
    known: Known
    linked: set[str]
    spelling: Spelling
    others: frozenset[str]
    """Folders that have been replaced by others: all files in them are read."""
    reread: frozenset[str]
    dirty: dict[str, None] = field(default_factory=dict)
    gone: dict[str, None] = field(default_factory=dict)
    walked: set[str] = field(default_factory=set)
    unreadable: list[str] = field(default_factory=list)

    def at(self, key: str) -> None:
        """Look at the file or folder with the key `key`."""
        path = self.folder.path_of(key)
        try:
            status = beneath.status(self.folder.path, path)
            spelled = self.spelling.on_disk(path, status) if path else path
        except OSError as error:
            if beneath.tells_absence(error):
                self.walked.add(key)
                self._forget(self._at_or_below(key))
            return
        if spelled != path:  # only the case of letters has changed; the old name still opens it
            self._forget(self._at_or_below(key))
            return self.at(self.folder.key_of(spelled))
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
        self.unreadable += tree.unreadable
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
    """Return the files that were changed by another of their names; update `linked`."""
    if all(key in before for key in linked):
        return sweep(folder, _stamps(known, before))
    # There are new linked files, and their other names are not known yet: sweep all files.
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
    """Return whether `path` lies below one of `folders`."""
    while path:
        path = path.rpartition("/")[0]
        if path in folders:
            return True
    return False
