"""Finds edits made by hand: files of the store that differ from the last commit."""

import contextlib
import os
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from vector_index_mcp.files.patterns import Patterns, patterns_of
from vector_index_mcp.notes.refusal import Code, Refusal
from vector_index_mcp.notes.store.disk import GIT, Disk
from vector_index_mcp.notes.store.history import Tree, id_of

IGNORE = ".gitignore"
NEVER_KEPT = (
    "# Files that are not kept in the history.\n"
    "activity.log*\n.DS_Store\nThumbs.db\n*.tmp\n*.temp\n*.swp\n*.swx\n*~\n.#*\n#*#\n"
)
"""The content of a new store's `.gitignore`: temporary files of editors and systems, our log."""
_MOST_FILES = 200_000
_DEEPEST = 20
_MOST_NAMED = 3  # in a commit's message

_Stamp = tuple[int, int, int, int]


@dataclass(slots=True)
class ByHand:
    """Finds edits made by hand. It caches what it has read, so as to read a version only once."""

    disk: Disk
    _known: dict[str, tuple[_Stamp, str]] = field(default_factory=dict)

    def kept(self, places: Iterable[str]) -> set[str]:
        """Return the files at or below `places` that belong in the history, also missing ones.

        Raises:
            Refusal: If a folder cannot be listed.
        """
        rules = self._rules()
        found: set[str] = set()
        for place in places:
            below = self.disk.files(place) if self.disk.is_folder(place) else [place]
            found.update(path for path in below if path and not _is_ignored(rules, path))
        return found

    def check_can_go(self, tree: Tree, folder: str) -> None:
        """Check that deleting a folder loses nothing: an ignored file is in no commit.

        Temporary files of editors and systems may be lost.

        Raises:
            Refusal: If the folder contains a file that the user's `.gitignore` names.
        """
        rules, expendable = self._rules(), patterns_of(NEVER_KEPT)
        found = [
            path
            for path in self.disk.files(folder)
            if _is_ignored(rules, path) and not _is_ignored(expendable, path)
        ]
        found = [path for path in found if self.changed(tree, [path], is_needed=True)]
        if found:
            raise Refusal(
                Code.FILE_SYSTEM_ERROR,
                f"{some(found)} would be lost, because {IGNORE} keeps it out of the history; move "
                "it elsewhere, or delete it by hand",
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
                cannot be read is an error; otherwise it is skipped.

        Raises:
            Refusal: If a folder cannot be listed, or a needed file cannot be read.
        """
        found: dict[str, bytes | None] = {}
        if paths is None:
            seen = dict(self._walk())
            for path, status in seen.items():
                self._compare(tree, path, status, found)
            gone = [path for path in tree.paths() if path not in seen]
        else:
            gone = []
            for path in paths:
                now = self.disk.status(path)
                if now is not None and stat.S_ISREG(now.st_mode):
                    self._compare(tree, path, now, found, is_needed=is_needed)
                else:
                    gone.append(path)
        for path in gone:
            # A file that is ignored by now, or was replaced by a link, exists: it stays committed.
            if tree.id_of(path) and self.disk.status(path) is None:
                found[path] = None
        return found

    def _compare(
        self,
        tree: Tree,
        path: str,
        status: os.stat_result,
        found: dict[str, bytes | None],
        *,
        is_needed: bool = False,
    ) -> None:
        stamp = (status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino)
        known = self._known.get(path)
        if known is not None and known == (stamp, tree.id_of(path)):
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
        if name != tree.id_of(path):
            found[path] = data

    def _walk(self) -> Iterator[tuple[str, os.stat_result]]:
        rules = self._rules()
        pending, count = [("", 0)], 0
        while pending:
            folder, depth = pending.pop()
            for name, status in self.disk.entries(folder):
                path = f"{folder}/{name}" if folder else name
                is_folder = stat.S_ISDIR(status.st_mode)
                if name == GIT or rules.verdict(path, is_folder):
                    continue
                if is_folder and depth < _DEEPEST:
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


def _is_ignored(rules: Patterns, path: str) -> bool:
    """Return whether a file or one of its folders is ignored, or belongs to git."""
    parts = path.split("/")
    above = ("/".join(parts[:count]) for count in range(1, len(parts)))
    return (
        GIT in parts
        or any(rules.verdict(folder, True) for folder in above)
        or bool(rules.verdict(path, False))
    )


def about_by_hand(paths: Iterable[str]) -> str:
    """Return the message of a commit of edits made by hand to `paths`."""
    return f"Edited by hand: {some(paths)}"


def some(paths: Iterable[str]) -> str:
    """Return the first few of `paths` as text, with "…" if there are more."""
    found = sorted(paths)
    return ", ".join(found[:_MOST_NAMED]) + (", …" if len(found) > _MOST_NAMED else "")
