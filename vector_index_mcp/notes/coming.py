"""Finds out what commits of the remote change here, and changes it.

Our branch moves forward to them, or merges them. Contents are merged (`merging`). What is not read
is not merged either: links, submodules and files that are too large are taken as they are, or stay
as they are.
"""

import shlex
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from vector_index_mcp.notes.merging import merged
from vector_index_mcp.notes.merging.places import around, beside, label_of, shown
from vector_index_mcp.notes.refusal import Code, Refusal
from vector_index_mcp.notes.store import applying
from vector_index_mcp.notes.store.byhand import some
from vector_index_mcp.notes.store.disk import Change
from vector_index_mcp.notes.store.filters import filtered
from vector_index_mcp.notes.store.history import PLAIN, contents, files_of, is_ours
from vector_index_mcp.notes.store.large import (
    about_large,
    copy_of_object,
    id_of_file,
    id_of_link,
    large_ones,
)
from vector_index_mcp.notes.store.line_ends import LineEnds
from vector_index_mcp.notes.store.repository import Repository
from vector_index_mcp.notes.store.writer import Writer

Entry = tuple[str, str]
"""Mode and object id."""
Entries = Mapping[str, Entry]
"""Entries of a commit by path."""


@dataclass(slots=True)
class Coming:
    """What changes here."""

    files: dict[str, bytes | None] = field(default_factory=dict)
    """Contents by path; None for a file that goes."""
    copies: dict[str, str] = field(default_factory=dict)
    """Object ids of files that are written without being read, by path."""
    links: dict[str, str] = field(default_factory=dict)
    """Object ids of the links that go or become files, by path."""
    taken: dict[str, Entry] = field(default_factory=dict)
    """What a merge takes from the other side as it is."""
    notes: list[str] = field(default_factory=list)
    """What was decided, in sentences."""


def by_moving(repository: Repository, ours: str, theirs: str) -> Coming:
    """Return what changes if our branch moves forward.

    Args:
        repository: The repository with both commits.
        ours: Our last commit; empty if there is none.
        theirs: A later commit.

    Raises:
        Refusal: If a commit cannot be read.
    """
    old, new = _entries(repository, ours), _entries(repository, theirs)
    changed = [path for path in {*old, *new} if old.get(path) != new.get(path)]
    wanted = {path: new[path][1] for path in changed if _is_plain(new.get(path))}
    large = large_ones(repository, list(wanted.values()))
    found = Coming(copies={path: name for path, name in wanted.items() if name in large})
    read = {path: name for path, name in wanted.items() if name not in large}
    data = contents(repository, list(read.values()))
    found.files |= {path: data[name] for path, name in read.items()}
    gone = (path for path in changed if _is_plain(old.get(path)) and path not in wanted)
    found.files |= dict.fromkeys(gone)
    found.links = {path: old[path][1] for path in changed if not _is_plain(old.get(path, _NEW))}
    found.notes = [about_large(path) for path in sorted(found.copies)]
    return found


def by_merging(repository: Repository, base: str, ours: str, theirs: str, label: str) -> Coming:
    """Return what changes if their side is merged into ours.

    Args:
        repository: The repository with all three commits.
        base: The last common commit; empty if there is none.
        ours: Our last commit.
        theirs: Their last commit.
        label: The name of their side: its origin and the date.

    Raises:
        Refusal: If a commit cannot be read.
    """
    trees = [_entries(repository, commit) for commit in (base, ours, theirs)]
    paths = sorted({path for tree in trees for path in tree})
    every = [_Versions(path, *(tree.get(path) for tree in trees)) for path in paths]
    changed = [each for each in every if not each.is_same]
    large = large_ones(repository, [name for each in changed for _, name in each.entries])
    found = _Wholes(every, label, theirs).decided(each for each in changed if each.is_whole(large))
    found.copies = {p: name for p, (mode, name) in found.taken.items() if mode in PLAIN}
    found.notes += [
        about_large(path) for path, name in sorted(found.copies.items()) if name in large
    ]
    texts = {each.path for each in changed if not each.is_whole(large)}
    data = contents(repository, [tree[p][1] for tree in trees for p in texts & tree.keys()])
    old, own, other = ({p: data[tree[p][1]] for p in texts & tree.keys()} for tree in trees)
    unread = {each.path: each.own for each in every if each.path not in texts} | found.taken
    unchanged = {path for path, entry in unread.items() if _is_plain(entry)} - found.files.keys()
    result = merged(old, own, other, label=label, unchanged=unchanged)
    found.files |= result.files
    found.notes = [*result.notes, *found.notes]
    return found


@dataclass(frozen=True, slots=True)
class _Versions:
    """A path in the three commits of a merge; None where it does not exist."""

    path: str
    old: Entry | None
    """In the last common commit."""
    own: Entry | None
    """On our side."""
    new: Entry | None
    """On their side."""

    @property
    def entries(self) -> list[Entry]:
        return [entry for entry in (self.old, self.own, self.new) if entry is not None]

    @property
    def is_same(self) -> bool:
        return self.old == self.own == self.new

    @property
    def has_ours(self) -> bool:
        """Whether our side has changed it, and not removed it."""
        return self.own is not None and self.own != self.old

    @property
    def has_theirs(self) -> bool:
        """Whether their side has changed or removed it, and not as ours did."""
        return self.new not in (self.own, self.old)

    @property
    def stays(self) -> bool:
        """Whether a merge leaves anything of it: what a side removes goes."""
        if self.own == self.old:
            return self.new is not None
        return self.own is not None or self.new not in (None, self.old)

    def is_whole(self, large: Collection[str]) -> bool:
        """Return whether it is not read: some version is no file, or is among the `large` ones."""
        return any(not _is_plain(entry) or entry[1] in large for entry in self.entries)


class _Wholes:
    """Decides about paths whose contents are not read."""

    def __init__(self, every: Sequence[_Versions], label: str, theirs: str) -> None:
        """Get to know all paths of the three commits; for the rest see `by_merging`."""
        self._known = {each.path for each in every}
        self._standing = {each.path for each in every if each.stays}
        self._folders = {*around(self._standing)}
        self._label = label
        self._in_commit = f"ours stays, theirs is in the commit {theirs[:12]}"

    def decided(self, paths: Iterable[_Versions]) -> Coming:
        """Decide about some of the paths, in order."""
        found = Coming()
        for each in paths:
            if not each.has_theirs:
                continue
            if each.has_ours:
                self._keep(each, found)
            elif each.new is None:
                found.files[each.path] = None
                _note_link(found, each)
            elif self._is_in_the_way(each.path):
                found.notes.append(
                    f"{shown(each.path)} is a file on one side and a folder on the other; "
                    f"{self._in_commit}"
                )
            else:
                found.taken[each.path] = each.new
                _note_link(found, each)
                if each.own != each.old:
                    found.notes.append(_kept(each.path))
        return found

    def _keep(self, each: _Versions, found: Coming) -> None:
        """Keep our version, and theirs beside it if that is a file."""
        if each.new is None:
            found.notes.append(_kept(each.path))
        elif _is_plain(each.new):
            taken = {*self._known, *around(self._known), *found.taken}
            place = beside(each.path, label_of(self._label), taken)
            found.taken[place] = each.new
            found.notes.append(f'{shown(each.path)} has two versions; one is kept as "{place}"')
        else:
            found.notes.append(f"{shown(each.path)} was changed on both sides; {self._in_commit}")

    def _is_in_the_way(self, path: str) -> bool:
        """Return whether a file at `path` would stand where a folder does, or below a file."""
        return path in self._folders or not self._standing.isdisjoint(around([path]))


def _note_link(found: Coming, each: _Versions) -> None:
    if each.own is not None and not _is_plain(each.own):
        found.links[each.path] = each.own[1]


def _kept(path: str) -> str:
    return f"{shown(path)} was removed on one side and changed on the other; it is kept"


_NEW = next(iter(PLAIN)), ""


def _is_plain(entry: Entry | None) -> bool:
    return entry is not None and entry[0] in PLAIN


def _entries(repository: Repository, commit: str) -> dict[str, Entry]:
    files = files_of(repository, commit) if commit else {}
    return {path: entry for path, entry in files.items() if is_ours(path)}


def put(coming: Coming, writer: Writer, then: Callable[[], object]) -> None:
    """Change the files on the disk, then call `then` to commit; undo the files if it fails.

    Edits made by hand must be committed by now. Call it in the writer's thread.

    Raises:
        EditedMeanwhile: If somebody saves one of the files; nothing was changed.
        Refusal: If a file would replace one that is in no commit, or cannot be written.
    """
    disk, tree = writer.disk, writer.tree
    stay = _staying(coming, writer)
    files = {path: data for path, data in coming.files.items() if path not in stay}
    seen = applying.states_of(disk, [*files, *coming.copies, *coming.links])
    # A file that still differs is one that `.gitignore` keeps out of the history: replacing it
    # would lose it.
    if unkept := writer.by_hand.changed(tree, [*files, *coming.copies], is_needed=True):
        if writer.by_hand.kept(tree, unkept) == unkept.keys():  # the next try commits them
            raise applying.EditedMeanwhile(some(unkept))
        raise Refusal(
            Code.GIT_ERROR,
            f"the remote also has {some(unkept)}, and the version here is in no commit and "
            "would be lost; rename it here",
        )
    gone = [p for p, data in files.items() if data is None and disk.is_file(p)]
    gone += [p for p, name in coming.links.items() if id_of_link(disk, p) == name]
    puts = {path: data for path, data in files.items() if data is not None}
    puts = LineEnds(disk).as_checked_out(tree, puts)
    copies = {path: copy_of_object(tree.repository, name) for path, name in coming.copies.items()}
    # Removals come first: a file may become a folder, or a folder or a link a file.
    steps = (
        (Change({}, tuple(gone), empties=True), seen),
        (Change(puts, copies=copies), {**seen, **dict.fromkeys(gone)}),
    )
    applied: list[applying.Applied] = []
    with writer.index.locked(), applying.or_undone(applied):
        for change, before in steps:
            applied.append(applying.apply(disk, change, before))
        then()
    for each in applied:
        each.finish()


def _staying(coming: Coming, writer: Writer) -> set[str]:
    """Return the files that stay as they are on the disk, where git made them otherwise."""
    disk, tree = writer.disk, writer.tree
    found = {
        path
        for path in filtered(disk, tree, coming.files)
        if disk.is_file(path) and id_of_file(disk, path) != tree.id_of(path)
    }
    coming.notes += (
        f"the remote has another version of {path}, which git keeps in another form; "
        f"`git checkout -- {shlex.quote(path)}` in {disk.root} brings it to the disk"
        for path in sorted(found)
    )
    return found
