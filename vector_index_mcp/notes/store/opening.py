"""A store that is there, whole and ours to write: made if it is new, mended after a kill.

Looked at before every change, since anybody may remove, replace or repair the folder meanwhile.
"""

import contextlib
import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager

from vector_index_mcp.files import beneath
from vector_index_mcp.files.folder import is_broad
from vector_index_mcp.notes.refusal import Code, Refusal
from vector_index_mcp.notes.store.byhand import (
    IGNORE,
    NEVER_KEPT,
    ByHand,
    about_by_hand,
    some,
)
from vector_index_mcp.notes.store.disk import GIT, WORK, Change, Disk, reported
from vector_index_mcp.notes.store.history import OURS, Commit, Tree, write
from vector_index_mcp.notes.store.repository import Repository
from vector_index_mcp.processes import git

INDEX = "index.json"
PROJECTS = "projects"
_README = """# Notes

What agents have learned about projects, and their to-do lists. Each change is a commit.

- `projects/<name>/main.md`: instructions for a project
- `projects/<name>/knowledge/`: documents; a heading of level two begins a chapter
- `projects/<name>/TODO/<number>/`: a to-do list, one file for each task
- `index.json`: which project has which folder

Edit what you like: changes are seen at once and committed as yours. `git log` shows what happened,
`vector-index-mcp notes restore` brings back how it was.
"""
_MAY_STAND_ALONE = frozenset({"README.md", "LICENSE", "LICENSE.md", "activity.log"})
_OF_A_PROJECT = ("main.md", "knowledge", "TODO")
_CHANGING = f"{WORK}/changing"
_CHILD_SECONDS = 5.0  # how long a git may go on whose parent was killed
_LOOK_SECONDS = 0.05
_SOMEBODY = "Edited by hand <knowledge-mcp@localhost>"


class Opening:
    """Opens one store, and sees to it that it stays open. Called under its lock."""

    def __init__(self, disk: Disk, repository: Repository) -> None:
        self._disk = disk
        self._repository = repository
        self._author = ""
        self._held: int | None = None
        """Our hold of git's folder: as long as there is one, no other folder has its number."""

    def check_place(self) -> None:
        """Make sure that there is a folder, made if need be, that holds notes or nothing.

        Raises:
            Refusal: If it holds something else.
        """
        root = self._disk.root
        if is_broad(root):
            raise Refusal(
                Code.INVALID_PATH,
                f"{root} is a whole drive, a home folder or the system's own; name a folder of its "
                "own for notes",
            )
        with reported(str(root)):
            root.mkdir(parents=True, exist_ok=True)
        shown = [name for name, _ in self._disk.entries("") if not name.startswith(".")]
        if not set(shown) <= _MAY_STAND_ALONE and not self._is_store(shown):
            raise Refusal(
                Code.INVALID_PATH,
                f"{root} holds other things than notes; name an empty folder, or one with notes",
            )

    def _is_store(self, names: list[str]) -> bool:
        # One that we have opened before may hold what its owner likes.
        if set(names) <= {INDEX, PROJECTS, *_MAY_STAND_ALONE} or self._disk.is_folder(WORK):
            return True
        if any(self._is_project(name) for name, _ in self._disk.entries(PROJECTS)):
            return True
        try:
            found = json.loads(self._disk.read_text(INDEX) or "null")
        except (ValueError, RecursionError, Refusal):
            return False
        return isinstance(found, dict) and isinstance(found.get("projects"), dict)

    def _is_project(self, name: str) -> bool:
        """Whether a folder of projects holds one of ours, and not of some other program."""
        return any(
            self._disk.status(f"{PROJECTS}/{name}/{part}") is not None for part in _OF_A_PROJECT
        )

    def ensure(self, tree: Tree, by_hand: ByHand) -> None:
        """Have the store open, with everything in its history.

        Args:
            tree: Follows the last commit from here on.
            by_hand: Finds what the history lacks.

        Raises:
            Refusal: If the store cannot be written now.
        """
        is_new = not self._repository.exists
        if is_new:
            self._repository.make()
        is_opened = self._is_held() and not is_new
        was_interrupted = self._disk.status(_CHANGING) is not None
        if not is_opened:
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
        if (was_interrupted or not is_opened) and (files := by_hand.changed(tree)):
            message, author = self._about(sorted(files), parent, was_interrupted)
            commit = Commit(message, files, author)
            tree.note(write(self._repository, branch, parent, tree, [commit]), [commit])
        self._hold()

    def _is_held(self) -> bool:
        """Whether git's folder is the one that we have opened."""
        status = self._disk.status(GIT)
        return (
            self._held is not None
            and status is not None
            and os.path.samestat(os.fstat(self._held), status)
        )

    def _hold(self) -> None:
        if not self._is_held():
            self.close()
            with reported(GIT):
                self._held = beneath.open_file(self._disk.root, GIT, os.O_RDONLY)

    def close(self) -> None:
        """Let go of the store."""
        if self._held is not None:
            os.close(self._held)
            self._held = None

    @contextmanager
    def changing(self) -> Iterator[None]:
        """The time in which the disk has what the history has not."""
        with reported(_CHANGING), beneath.opened(self._disk.root, WORK) as work:
            name = _CHANGING.rpartition("/")[2]
            os.close(work.open(name, os.O_WRONLY | os.O_CREAT))
            try:
                yield
            finally:
                with contextlib.suppress(OSError):
                    work.remove(name)

    @property
    def author(self) -> str:
        """Who changes files by hand, as they have told git."""
        if not self._author:
            said = [
                self._repository.run("config", "--get", key, environment=git.environment())
                for key in ("user.name", "user.email")
            ]
            name, address = (_plain(each.output.decode("utf-8", "replace")) for each in said)
            self._author = f"{name} <{address or 'by-hand@localhost'}>" if name else _SOMEBODY
        return self._author

    def _about(self, paths: list[str], parent: str, was_interrupted: bool) -> tuple[str, str]:
        if not parent:
            return "Initial commit", OURS
        if was_interrupted:
            return f"Kept what was written before an interruption: {some(paths)}", OURS
        return about_by_hand(paths), self.author

    def _put_first_files(self) -> None:
        for name, text in ((IGNORE, NEVER_KEPT), ("README.md", _README)):
            if self._disk.status(name) is None:
                self._disk.apply(Change({name: text.encode()})).finish()

    def _remove_left_lock(self, was_interrupted: bool) -> None:
        """Remove the lock of a git whose parent was killed, once that git has had time to end.

        Another one is somebody's who works with git at this moment; their lock goes by itself.
        """
        branch = self._repository.branch()
        above, _, name = f"{GIT}/{branch}.lock".rpartition("/")
        last = time.monotonic() + _CHILD_SECONDS
        while was_interrupted and self._disk.status(f"{above}/{name}") is not None:
            if time.monotonic() > last:
                with reported(name), beneath.opened(self._disk.root, above) as folder:
                    folder.remove(name)
            time.sleep(_LOOK_SECONDS)


def _plain(words: str) -> str:
    """A name that can stand in a commit."""
    return "".join(c for c in words.strip() if c.isprintable() and c not in "<>")
