"""Finds edits made by hand: files of the store that differ from the last commit.

What git has not checked out is no deletion, and line ends that git has converted are no edit.
"""

import contextlib
import os
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from vector_index_mcp.files.patterns import Patterns, patterns_of
from vector_index_mcp.notes.names import is_keepable
from vector_index_mcp.notes.refusal import Code, Refusal
from vector_index_mcp.notes.store.checkout import INDEX_OF_GIT, left_out
from vector_index_mcp.notes.store.disk import Disk
from vector_index_mcp.notes.store.history import Tree, contents, id_of, is_ours

IGNORE = ".gitignore"
NEVER_KEPT = (
    "# Files that are not kept in the history.\n"
    "activity.log*\n.DS_Store\nThumbs.db\n*.tmp\n*.temp\n*.swp\n*.swx\n*~\n.#*\n\\#*#\n"
)
"""What each `.gitignore` has: temporary files of editors and systems, our log."""
_MOST_FILES = 200_000
_DEEPEST = 20
_MOST_NAMED = 3  # in a commit's message

_Stamp = tuple[int, int, int, int]


@dataclass(slots=True)
class ByHand:
    """Finds edits made by hand. It caches what it has read, so as to read a version only once."""

    disk: Disk
    _known: dict[str, tuple[_Stamp, str]] = field(default_factory=dict)
    """The state of each file that was read, and the object id of what would be committed of it."""
    _is_whole: bool = False
    """Whether no file was missing, or git had an index, when all were last looked at."""
    _left_out: tuple[_Stamp, frozenset[str] | None] | None = None
    """The state of git's index when it was read, and the files that it leaves out."""

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
            if _is_ignored(rules, path) and not (is_ours(path) and _is_ignored(expendable, path))
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
                cannot be read is an error; otherwise it is skipped.

        Raises:
            Refusal: If a folder cannot be listed, a needed file cannot be read, or files are
                missing because git has not checked them out.
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
        # A file that is ignored by now, or was replaced by a link, exists: it stays committed.
        gone = [path for path in gone if tree.id_of(path) and self.disk.status(path) is None]
        found |= dict.fromkeys(self._deleted(tree, gone) if gone else ())
        self._is_whole |= paths is None
        return found

    def _deleted(self, tree: Tree, gone: list[str]) -> list[str]:
        """Return those of the missing files that somebody has deleted.

        Raises:
            Refusal: If git has checked out nothing, or was interrupted: it writes its index last.
        """
        status = self.disk.status(INDEX_OF_GIT)
        if status is not None:
            stamp = _stamp_of(status)
            if self._left_out is None or self._left_out[0] != stamp:
                self._left_out = stamp, left_out(self.disk, tree.repository)
            skipped = self._left_out[1]
            gone = [path for path in gone if skipped is not None and path not in skipped]
        is_unfinished = status is None and not self._is_whole
        if gone and (is_unfinished or not any(map(self.disk.status, tree.paths()))):
            raise Refusal(
                Code.GIT_ERROR,
                f"git has not checked out {some(gone)} in {self.disk.root}, so nothing was "
                "changed; run `git checkout HEAD -- .` there",
            )
        return gone

    def _compare(
        self,
        tree: Tree,
        path: str,
        status: os.stat_result,
        found: dict[str, bytes | None],
        *,
        is_needed: bool = False,
    ) -> None:
        stamp = _stamp_of(status)
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
        name, old = id_of(data), tree.id_of(path)
        if old and name != old and (plain := _with_line_feeds(data)) is not None:
            plain_name = id_of(plain)
            if plain_name == old or (_is_converted(data) and _has_line_feeds(tree, old)):
                data, name = plain, plain_name
        self._known[path] = stamp, name
        if name != old:
            found[path] = data

    def _walk(self) -> Iterator[tuple[str, os.stat_result]]:
        rules = self._rules()
        pending, count = [("", 0)], 0
        while pending:
            folder, depth = pending.pop()
            for name, status in self.disk.entries(folder):
                path = f"{folder}/{name}" if folder else name
                is_folder = stat.S_ISDIR(status.st_mode)
                if not is_keepable(name) or rules.verdict(path, is_folder):
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


def _stamp_of(status: os.stat_result) -> _Stamp:
    return status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino


def _with_line_feeds(data: bytes) -> bytes | None:
    """Return a text with LF for each CRLF, as git does; None if git would not, or there is none."""
    plain = data.replace(b"\r\n", b"\n")
    return None if plain == data or b"\r" in plain or b"\0" in plain else plain


def _is_converted(data: bytes) -> bool:
    """Return whether all line ends of a text are CRLF."""
    return data.count(b"\n") == data.count(b"\r\n")


def _has_line_feeds(tree: Tree, name: str) -> bool:
    """Return whether a content of the history has line ends, and each of them is LF."""
    try:
        data = contents(tree.repository, [name])[name]
    except Refusal:  # a damaged history is reported elsewhere
        return False
    return b"\n" in data and b"\r" not in data


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
    parts = path.split("/")
    above = ("/".join(parts[:count]) for count in range(1, len(parts)))
    return (
        not is_ours(path)
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
