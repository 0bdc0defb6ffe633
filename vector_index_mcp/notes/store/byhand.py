"""Finds edits made by hand: files of the store that differ from the last commit.

What git has not checked out is no deletion, and line ends that git has converted are no edit.
"""

import contextlib
import os
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from vector_index_mcp.files.patterns import Patterns, patterns_of
from vector_index_mcp.files.state import State, state_of
from vector_index_mcp.notes.limits import LARGEST_FILE_BYTES
from vector_index_mcp.notes.names import is_keepable
from vector_index_mcp.notes.refusal import Code, Refusal
from vector_index_mcp.notes.store.checkout import INDEX_OF_GIT, Checkout, submodule_of
from vector_index_mcp.notes.store.disk import Disk
from vector_index_mcp.notes.store.filters import filtered
from vector_index_mcp.notes.store.history import Tree, id_of, is_ours
from vector_index_mcp.notes.store.large import id_of_file, id_of_link
from vector_index_mcp.notes.store.line_ends import LineEnds
from vector_index_mcp.notes.store.steps import folders_of

IGNORE = ".gitignore"
NEVER_KEPT = (
    "# Files that are not kept in the history.\n"
    "activity.log*\n.DS_Store\nThumbs.db\n*.tmp\n*.temp\n*.swp\n*.swx\n*~\n.#*\n\\#*#\n"
)
"""What each `.gitignore` has: temporary files of editors and systems, our log."""
_NONE = "no link"
_MOST_FILES = 200_000
_DEEPEST = 20
_MOST_BYTES = 50_000_000  # in memory at once, and one file more
_MOST_NAMED = 3  # in a commit's message


@dataclass(slots=True)
class ByHand:
    """Finds edits made by hand. It caches what it has read, so as to read a version only once."""

    disk: Disk
    checkout: Checkout = field(init=False)
    _known: dict[str, tuple[State, str]] = field(default_factory=dict)
    """The state of each file that was read, and the object id of what would be committed of it."""
    large: dict[str, bool] = field(default_factory=dict)
    """The files that are too large to be read, and whether each is as it is committed."""
    filtered: dict[str, str] = field(default_factory=dict)
    """Why some changed files are not committed, a sentence each: a git filter may explain the
    difference, or somebody is resolving a conflict."""
    _is_whole: bool = False
    """Whether no file was missing, or git had an index, when all were looked at."""

    def __post_init__(self) -> None:
        self.checkout = Checkout(self.disk)

    def expect_checkout(self) -> None:
        """Take files that are missing for ones that git has yet to check out, once more.

        Another repository may have come to the place of the one that was looked at.
        """
        self._is_whole = False

    def kept(self, tree: Tree, places: Iterable[str]) -> set[str]:
        """Return the files at or below `places` that belong in the history, also missing ones.

        Args:
            tree: The files of the last commit.
            places: Files and folders.

        Raises:
            Refusal: If a folder cannot be listed.
        """
        rules = self._rules()
        found: set[str] = set()
        for place in places:
            below = self.disk.files(place) if self.disk.is_folder(place) else [place]
            found.update(
                path
                for path in below
                if path and not _is_ignored(rules, path) and not submodule_of(tree, path)
            )
        return found

    def check_can_go(self, tree: Tree, folder: str) -> None:
        """Check that deleting a folder loses nothing that no commit will have.

        Temporary files of editors and systems may be lost.

        Raises:
            Refusal: If the folder contains a file that the user's `.gitignore` names, or a link, a
                pipe or the like that is not in the history as it is.
        """
        rules, expendable = self._rules(), patterns_of(NEVER_KEPT)

        def is_expendable(path: str) -> bool:
            # By its own name: what lies in a folder called `x.tmp` may be anything.
            return is_ours(path) and _is_ignored(expendable, path.rpartition("/")[2])

        others = [
            path
            for path in self.disk.others(folder)
            if not is_expendable(path)
            and (id_of_link(self.disk, path) or _NONE) != tree.id_of(path)
        ]
        if others:
            raise Refusal(
                Code.FILE_SYSTEM_ERROR,
                f"{some(others)} would be lost, because it is a link, a pipe or the like, and in "
                "no commit; move it elsewhere, or delete it by hand",
                path=others[0],
            )
        found = [
            path
            for path in self.disk.files(folder)
            if _is_ignored(rules, path) and not is_expendable(path)
        ]
        found = [path for path in found if self.changed(tree, [path], is_needed=True)]
        if found:
            raise Refusal(
                Code.FILE_SYSTEM_ERROR,
                f"{some(found)} would be lost, because {IGNORE} or git keeps it out of the "
                "history; move it elsewhere, or delete it by hand",
                path=found[0],
            )

    def changed(
        self, tree: Tree, paths: Iterable[str] | None = None, *, is_needed: bool = False
    ) -> dict[str, bytes | None]:
        """Return the files that differ from `tree`: contents by path, None for missing files.

        Args:
            tree: The files of the last commit.
            paths: The files to look at; None for all.
            is_needed: Whether these files are about to be replaced or removed. Then a file that
                cannot be read is an error; otherwise it is skipped. And of very much, only the
                first part is returned, which must be committed before anything else.

        Raises:
            Refusal: If a folder cannot be listed, a needed file cannot be read, or files are
                missing because git has not checked them out.
        """
        found: dict[str, bytes | None] = {}
        for each in self.turns(tree, paths, is_needed=is_needed):
            found |= each
            if found and is_needed:
                break
        return found

    def edited(self, tree: Tree) -> list[str]:
        """Return the paths of all files that differ from `tree`, sorted.

        Raises:
            Refusal: As `changed` does.
        """
        return sorted(path for each in self.turns(tree) for path in each)

    def turns(
        self, tree: Tree, paths: Iterable[str] | None = None, *, is_needed: bool = False
    ) -> Iterator[dict[str, bytes | None]]:
        """Yield what `changed` returns, in parts that take up little memory.

        Between two parts, `tree` may move on to a commit that has the first one.
        """
        if paths is None:
            self.large.clear()
            self.filtered.clear()
            seen = dict(self._walk(tree))
            gone = [path for path in tree.paths() if path not in seen]
        else:
            looked = {path: self.disk.status(path) for path in paths}
            seen = {p: now for p, now in looked.items() if now and stat.S_ISREG(now.st_mode)}
            gone = [path for path in looked if path not in seen]
        # A file that is ignored by now, or was replaced by a link, exists: it stays committed. A
        # link or a submodule that was taken from a remote is not on the disk, and not deleted.
        gone = [path for path in gone if tree.has_file(path) and self.disk.status(path) is None]
        gone = self._deleted(tree, gone) if gone else []
        read: dict[str, bytes] = {}
        size = 0
        for path, status in seen.items():
            self._read_if_other(tree, path, status, read, is_needed=is_needed)
            size += len(read.get(path, b""))
            if size > _MOST_BYTES:
                yield self._theirs(tree, read, gone, is_needed=is_needed)
                read, gone, size = {}, [], 0
        yield self._theirs(tree, read, gone, is_needed=is_needed)
        self._is_whole |= paths is None

    def _theirs(
        self, tree: Tree, read: dict[str, bytes], gone: list[str], *, is_needed: bool
    ) -> dict[str, bytes | None]:
        found = self._compared(tree, read)
        left = filtered(self.disk, tree, found)
        found |= dict.fromkeys(gone)
        conflicts = self.checkout.conflicts(tree.repository) if found else {}
        left |= {path: words for path, words in conflicts.items() if path in found}
        if left and is_needed:
            path = min(left)
            raise Refusal(Code.GIT_ERROR, left[path], path=path)
        self.filtered |= left
        return {path: data for path, data in found.items() if path not in left}

    def _deleted(self, tree: Tree, gone: list[str]) -> list[str]:
        """Return those of the missing files that somebody has deleted.

        Raises:
            Refusal: If git has checked out nothing, or was interrupted: it writes its index last.
        """
        skipped = self.checkout.left_out(tree.repository)
        gone = [path for path in gone if skipped is not None and path not in skipped]
        is_unfinished = self.disk.status(INDEX_OF_GIT) is None and not self._is_whole
        if gone and (is_unfinished or not any(map(self.disk.status, tree.paths()))):
            raise Refusal(
                Code.GIT_ERROR,
                f"git has not checked out {some(gone)} in {self.disk.root}, so nothing was "
                "changed; run `git checkout HEAD -- .` there",
            )
        return gone

    def _read_if_other(
        self,
        tree: Tree,
        path: str,
        status: os.stat_result,
        read: dict[str, bytes],
        *,
        is_needed: bool,
    ) -> None:
        """Read a file into `read`, unless it is known to be as it is committed."""
        stamp, old = state_of(status), tree.id_of(path)
        known = self._known.get(path)
        if status.st_size > LARGEST_FILE_BYTES:
            # One that git does not know need not be compared.
            if old and (known is None or known[0] != stamp):
                known = self._known[path] = stamp, id_of_file(self.disk, path)
            self.large[path] = known == (stamp, old)
        if known is not None and known == (stamp, old):
            return
        try:
            data = self.disk.read(path)
        except Refusal:
            if is_needed:
                raise
            return  # the calls that read the file report it
        if data is None:
            return
        name = id_of(data)
        self._known[path] = stamp, name
        if name != old:
            read[path] = data

    def _compared(self, tree: Tree, read: dict[str, bytes]) -> dict[str, bytes | None]:
        """Return what git would keep of those of the files that differ from `tree`."""
        found: dict[str, bytes | None] = {}
        for path, data in LineEnds(self.disk).kept(tree, read).items():
            if data is not read[path]:
                self._known[path] = self._known[path][0], id_of(data)
            if self._known[path][1] != tree.id_of(path):
                found[path] = data
        return found

    def _walk(self, tree: Tree) -> Iterator[tuple[str, os.stat_result]]:
        rules = self._rules()
        pending, count = [("", 0)], 0
        while pending:
            folder, depth = pending.pop()
            for name, status in self.disk.entries(folder):
                path = f"{folder}/{name}" if folder else name
                is_folder = stat.S_ISDIR(status.st_mode)
                if not is_keepable(name) or rules.verdict(path, is_folder):
                    continue
                if is_folder and depth < _DEEPEST and not tree.is_submodule(path):
                    pending.append((path, depth + 1))
                elif stat.S_ISREG(status.st_mode):
                    count += 1
                    if count > _MOST_FILES:
                        return
                    yield path, status

    def _rules(self) -> Patterns:
        own = ""
        with contextlib.suppress(Refusal):
            own = self.disk.read_text(IGNORE) or ""
        return patterns_of(f"{NEVER_KEPT}{own}")


def with_never_kept(own: str) -> str:
    """Return the text of a `.gitignore` with the lines of NEVER_KEPT that it lacks.

    They come first: a later line wins, so that a person may keep such a file all the same.
    """
    own = own.removeprefix("\ufeff")
    lines = {line.strip() for line in own.splitlines()}
    lacking = [line for line in NEVER_KEPT.splitlines(keepends=True) if line.strip() not in lines]
    return "".join(lacking) + own if any(line[0] != "#" for line in lacking) else own


def newly_ignored(paths: Iterable[str], before: str, after: str) -> list[str]:
    """Return the paths that a `.gitignore` ignores with the text `after`, but not `before`."""
    old, new = patterns_of(before), patterns_of(after)
    return [path for path in paths if _is_ignored(new, path) and not _is_ignored(old, path)]


def _is_ignored(rules: Patterns, path: str) -> bool:
    """Return whether a file or one of its folders is ignored, or belongs to git."""
    return (
        not is_ours(path)
        or any(rules.verdict(folder, True) for folder in folders_of(path))
        or bool(rules.verdict(path, False))
    )


def about_by_hand(paths: Iterable[str]) -> str:
    """Return the message of a commit of edits made by hand to `paths`."""
    return f"Edited by hand: {some(paths)}"


def some(paths: Iterable[str]) -> str:
    """Return the first few of `paths` as text, with "…" if there are more."""
    found = sorted(paths)
    return ", ".join(found[:_MOST_NAMED]) + (", …" if len(found) > _MOST_NAMED else "")
