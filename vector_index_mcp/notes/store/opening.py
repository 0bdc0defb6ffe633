"""Opens a store for writing: creates a new one, and repairs one after a killed process.

The writer checks this before every change, because anybody may remove, replace or repair the folder
between two changes.
"""

import contextlib
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from vector_index_mcp.files import beneath
from vector_index_mcp.notes.refusal import Refusal
from vector_index_mcp.notes.store import applying, place
from vector_index_mcp.notes.store.byhand import (
    IGNORE,
    ByHand,
    about_by_hand,
    newly_ignored,
    some,
    with_never_kept,
)
from vector_index_mcp.notes.store.disk import GIT, WORK, Change, Disk, reported
from vector_index_mcp.notes.store.history import NEXT, OURS, Commit, Tree, write
from vector_index_mcp.notes.store.line_ends import LineEnds
from vector_index_mcp.notes.store.presence import Presence
from vector_index_mcp.notes.store.repository import Repository

_README = """# Notes

What agents have learned about projects, and their to-do lists. Each change is a commit.

- `projects/<name>/main.md`: instructions for a project
- `projects/<name>/knowledge/`: documents; a heading of level two begins a chapter
- `projects/<name>/TODO/<number>/`: a to-do list, one file for each task
- `index.json`: the folder of each project

You may edit any file: agents see the change at once, and it is committed in your name. `git log`
shows what happened, and `vector-index-mcp notes restore` brings back an earlier state.
"""
_CHANGING = f"{WORK}/changing"
FOUND = f"{WORK}/found"
"""Names the commit before the first that we made while opening the store."""
_CHILD_SECONDS = 5.0  # how long a git process may go on after its parent was killed
_LOOK_SECONDS = 0.05
_SOMEBODY = "Edited by hand <knowledge-mcp@localhost>"


class Opening:
    """Opens one store and keeps it open. Call its methods only under the store's lock."""

    def __init__(self, disk: Disk, repository: Repository) -> None:
        self._disk = disk
        self._repository = repository
        self._author = ""
        self.presence = Presence(disk, repository)

    def check_place(self) -> None:
        """Create the folder if it is missing, and check that it holds notes or nothing.

        Other users cannot read a folder that is created here; one that is there keeps its rights.

        Raises:
            Refusal: If it holds other files, must not be used, or had notes that have vanished.
        """
        root = self._disk.root
        self.presence.check()
        place.check(self._disk)
        # A folder that is there now may be moved away before the next line, and stays away.
        if self._disk.status("") is None and not self.presence.was_opened_and_is_kept:
            with reported(str(root)):
                root.mkdir(mode=0o700, parents=True, exist_ok=True)

    def ensure(self, tree: Tree, by_hand: ByHand) -> bool:
        """Open the store if it is not open, and commit what the history lacks.

        Return whether the branch has moved.

        Args:
            tree: Is set to the last commit.
            by_hand: Finds the files that differ from the last commit.

        Raises:
            Refusal: If the store cannot be written now.
        """
        is_new = not self._repository.exists
        if is_new:
            self.presence.check()
            self._repository.make()
        is_opened = self.presence.is_same_repository and not is_new
        was_interrupted = self._disk.status(_CHANGING) is not None
        if not is_opened:
            by_hand.expect_checkout()
            self._repository.prepare()
        if was_interrupted or not is_opened:
            self._disk.tidy()
            self._remove_left_lock(was_interrupted)
        self._repository.check_is_free()
        branch = self._repository.branch()
        parent = self._repository.commit_of(branch)
        if not parent:
            self._put_first_files()
        tree.follow(parent)
        for files in by_hand.turns(tree) if was_interrupted or not is_opened else ():
            if files:
                message, author = self._about(sorted(files), parent, was_interrupted)
                commit = Commit(message, files, author)
                tree.note(write(self._repository, branch, tree.commit, tree, [commit]), [commit])
        if not is_opened:
            self._maintain_ignored(branch, tree)
        self.presence.note()
        has_moved = tree.commit != parent
        if parent and has_moved:
            self._note_found(parent)
        return has_moved

    def _note_found(self, commit: str) -> None:
        name = FOUND.rpartition("/")[2]
        with (
            reported(FOUND),
            contextlib.suppress(FileExistsError),
            beneath.opened(self._disk.root, WORK) as work,
            os.fdopen(work.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL), "wb") as file,
        ):
            file.write(commit.encode())

    @contextmanager
    def changing(self) -> Iterator[None]:
        """Mark the time in which the disk has changes that are not committed.

        A file serves as the mark: if it is there when the store is opened, a process was killed.
        """
        name = _CHANGING.rpartition("/")[2]
        with reported(_CHANGING), beneath.opened(self._disk.root, WORK) as work:
            os.close(work.open(name, os.O_WRONLY | os.O_CREAT))
        try:
            yield  # not within `reported`, which would blame the mark for an error of the work
        finally:
            with contextlib.suppress(OSError), beneath.opened(self._disk.root, WORK) as work:
                work.remove(name)

    @property
    def author(self) -> str:
        """The author of edits made by hand: name and address from the user's git settings."""
        if not self._author:
            told: Mapping[str, str] = {}
            with contextlib.suppress(Refusal):
                told = self._repository.settings.users
            name, address = (_plain(told.get(key, "")) for key in ("user.name", "user.email"))
            self._author = f"{name} <{address or 'by-hand@localhost'}>" if name else _SOMEBODY
        return self._author

    def _about(self, paths: list[str], parent: str, was_interrupted: bool) -> tuple[str, str]:
        if not parent:
            return "Initial commit", OURS
        if was_interrupted:
            return f"Kept what was written before an interruption: {some(paths)}", OURS
        return about_by_hand(paths), self.author

    def _put_first_files(self) -> None:
        puts = {}
        seen = applying.states_of(self._disk, (IGNORE, "README.md"))
        if (text := self._lacking_ignored()[1]) is not None:
            puts[IGNORE] = text.encode()
        if self._disk.status("README.md") is None:
            puts["README.md"] = _README.encode()
        applying.apply(self._disk, Change(puts), seen).finish()

    def _lacking_ignored(self) -> tuple[str, str | None]:
        """Return the text of `.gitignore`, and the one to replace it by; None if it may stay."""
        try:
            own = self._disk.read_text(IGNORE) or ""
        except Refusal:  # a link, or no text
            return "", None
        text = with_never_kept(own)
        return own, text if text != own else None

    def _maintain_ignored(self, branch: str, tree: Tree) -> None:
        """Add what `.gitignore` lacks. Files that it newly ignores stay, but only on the disk."""
        seen = applying.states_of(self._disk, [IGNORE])
        own, text = self._lacking_ignored()
        if text is None:
            return
        placed = LineEnds(self._disk).placed(tree, {IGNORE: text.encode()})
        gone = dict.fromkeys(newly_ignored(tree.paths(), own, text))
        files: dict[str, bytes | None] = {**placed.kept, **gone}
        commit = Commit("Updated .gitignore", files)
        with self.changing():
            applied = applying.apply(self._disk, Change(placed.on_disk), seen)
            with applying.or_undone([applied]):
                made = write(self._repository, branch, tree.commit, tree, [commit])
            applied.finish()
        tree.note(made, [commit])

    def _remove_left_lock(self, was_interrupted: bool) -> None:
        """Remove the locks of references if a process of ours was killed.

        Its git gets time to end. Otherwise a lock belongs to somebody who is using git now, and
        goes by itself.
        """
        last = time.monotonic() + _CHILD_SECONDS
        for reference in (self._repository.branch(), NEXT):
            above, _, name = f"{GIT}/{reference}.lock".rpartition("/")
            while was_interrupted and self._disk.status(f"{above}/{name}") is not None:
                if time.monotonic() > last:
                    with reported(name), beneath.opened(self._disk.root, above) as folder:
                        folder.remove(name)
                time.sleep(_LOOK_SECONDS)


def _plain(words: str) -> str:
    """Return a name without characters that a commit's author must not contain."""
    return "".join(c for c in words.strip() if c.isprintable() and c not in "<>")
