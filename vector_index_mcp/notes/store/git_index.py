"""Keeps git's index (staging area) of the store up to date, for people who use git there.

Our own commits do not need the index. But a person's `git commit` records what the index has, and
`git restore .` writes it: if it lagged behind the branch, both would undo our last changes. So we
hold the lock of the index, as git itself does, while we change files and move the branch, and the
index has our changes before we let go. Only files that our commits have changed are updated, so
that whatever a person has staged stays staged.
"""

import contextlib
import hashlib
import logging
import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from vector_index_mcp.files import beneath
from vector_index_mcp.notes.refusal import Code, Refusal, as_refusal
from vector_index_mcp.notes.store.disk import GIT, WORK, Disk
from vector_index_mcp.notes.store.history import changes_between, files_of, id_of
from vector_index_mcp.notes.store.index_lock import Held, IndexLock
from vector_index_mcp.notes.store.large import id_of_file, id_of_link
from vector_index_mcp.notes.store.line_ends import plain
from vector_index_mcp.notes.store.opening import FOUND
from vector_index_mcp.notes.store.program import GitResult, failure
from vector_index_mcp.notes.store.repository import Repository
from vector_index_mcp.processes import git

_log = logging.getLogger(__name__)

Entries = Mapping[str, tuple[str, str] | None]
"""Mode and object id by path; None for a file that is no longer there."""

_GONE = ("0", "0" * 40)
_NAME = "index"
_INDEX = f"{GIT}/{_NAME}"
_DAMAGED = "index.damaged"
_MAGIC, _CHECKSUM_BYTES = b"DIRC", 20
_NO_CHECKSUM = bytes(_CHECKSUM_BYTES)  # what git writes with `index.skipHash`
_COPY = "index.part"
_SHARED = "sharedindex."  # what a split index is based on lies beside it
_STAGED = "staged"
_NOTED = f"{WORK}/{_STAGED}"
"""Names the commit that the index was last brought up to."""


class GitIndex:
    """The index of one repository, for one thread. The methods block."""

    def __init__(self, disk: Disk, repository: Repository) -> None:
        self._disk = disk
        self._repository = repository
        self._lock = IndexLock(disk)

    # -- with the branch -------------------------------------------------------------------

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Keep people's git from the index while files and the branch change.

        If somebody else holds its lock for longer than a second, the context goes on without the
        lock, and `refresh` is needed. Nested use does nothing.
        """
        with contextlib.ExitStack() as held:
            with _logged():
                held.enter_context(self._lock.holding())
            yield

    @contextlib.contextmanager
    def moving(self, parent: str, changed: Entries) -> Iterator["Move"]:
        """Lock the index while the branch moves from `parent` to a commit that changes some files.

        If the index was not that of `parent` or is not free, `refresh` is needed afterwards.
        """
        with self.locked():
            move = Move(self, self._lock.held, parent, changed)
            try:
                yield move
            finally:
                move.end()

    # -- behind the branch -----------------------------------------------------------------

    @property
    def is_up_to_date(self) -> bool:
        """Whether the index has what our commits have changed, up to the branch's last commit.

        Raises:
            Refusal: If the branch cannot be read.
        """
        commit = self._repository.commit_of(self._repository.branch())
        return self._noted(_NOTED) == commit and self._disk.status(_INDEX) is not None

    @property
    def is_kept_back(self) -> bool:
        """Whether the index lags behind since somebody else holds its lock; any thread may ask.

        False if the branch cannot be read, such as in a rebase, which holds the lock as well.
        """
        try:
            return self._lock.is_of_somebody_else and not self.is_up_to_date
        except Refusal:
            return False

    def catch_up(self) -> None:
        """Bring the index up to date if that is possible now; this raises nothing."""
        with _logged():
            self.refresh()

    def refresh(self) -> None:
        """Bring the index up to date.

        Raises:
            IndexIsLocked: If somebody else holds the lock now.
            Refusal: If it is not possible for another reason.
            OSError: If a file cannot be written.
        """
        # If we have never opened it, it may not be a store.
        if not self._disk.is_folder(WORK) or (self.is_up_to_date and not self._lock.has_left_one()):
            return
        with self._lock.holding(0.0) as held:
            self._refresh(held)

    def _refresh(self, held: Held) -> None:
        commit = self._repository.commit_of(self._repository.branch())
        is_there = self._disk.status(_INDEX) is not None
        # Read anew each time: the repository may have been replaced since the last update.
        known = self._noted(_NOTED) if is_there else ""
        if not commit or commit == known:
            return
        self._copy(held)
        # A branch that a person has set back leaves in the index what it has left: that is staged.
        has_moved_on = self._has(known) and self._repository.is_in(known, commit)
        self._put(held, self._news(commit, known if has_moved_on else ""))
        self._note(held, commit)

    def _news(self, commit: str, known: str) -> Entries:
        """Return what to change in the index.

        If the commit of the last update is `known`, these are the files that differ from it. If
        not, these are the files that differ from the index, and are on the disk as committed or
        in the index as we found them: any other file may have been staged by a person.
        """
        if known:
            return changes_between(self._repository, known, commit)
        last = files_of(self._repository, commit)
        indexed, found = self._indexed(), self._noted(FOUND)
        old = files_of(self._repository, found) if self._has(found) else None
        return {
            path: last.get(path)
            for path in {*last, *indexed}
            if last.get(path) != indexed.get(path)
            and (
                self._is_as_committed(path, last)
                or (old is not None and old.get(path) == indexed.get(path))
            )
        }

    def _is_as_committed(self, path: str, last: Mapping[str, tuple[str, str]]) -> bool:
        name = last.get(path, ("", ""))[1]
        try:
            data = self._disk.read(path)
        except Refusal:  # it is too large, or no file
            return bool(name) and name in {
                id_of_file(self._disk, path),
                id_of_link(self._disk, path),
            }
        return name in ({id_of(data), id_of(plain(data))} if data is not None else {""})

    def _indexed(self, index: Path | None = None) -> dict[str, tuple[str, str]]:
        result = self._run_git("ls-files", "--stage", "-z", index=index)
        if result.status:
            raise failure("ls-files", result)
        found = {}
        for line in result.output.split(b"\0"):
            if line:
                facts, _, path = line.partition(b"\t")
                mode, name, _ = facts.decode("ascii").split(" ")
                found[os.fsdecode(path)] = (mode, name)
        return found

    # -- damage ----------------------------------------------------------------------------

    def damage(self) -> str:
        """Return what is wrong with the file of the index; empty if git can read it.

        Raises:
            Refusal: If the file cannot be read.
        """
        data = self._disk.read(_INDEX)
        if data is None:
            return ""
        if words := _damage_in(data):
            return words
        result = self._run_git("ls-files", "-z", index=self._disk.root / _INDEX)
        return f"git cannot read {_INDEX}" if result.status else ""

    def behind(self) -> list[str]:
        """Return the files that have an older state in the index than in the last commit.

        What a person has staged is none of them. The index must not be damaged.

        Raises:
            Refusal: If git cannot read the index or a commit.
        """
        commit = self._repository.commit_of(self._repository.branch())
        known = self._noted(_NOTED)
        if (
            not commit
            or commit == known
            or not self._has(known)
            or self._disk.status(_INDEX) is None
        ):
            return []
        indexed = self._indexed(self._disk.root / _INDEX)
        changed = changes_between(self._repository, known, commit)
        return sorted(path for path, entry in changed.items() if indexed.get(path) != entry)

    def repair(self) -> None:
        """Bring the index up to date; one that git cannot read becomes `.git/index.damaged`.

        Raises:
            IndexIsLocked: If somebody uses the index now.
            Refusal: If it is not possible for another reason.
            OSError: If a file cannot be written.
        """
        with self._lock.holding() as held:
            if self.damage():
                held.git.replace(_NAME, _DAMAGED)
            self._refresh(held)

    # -- the copy --------------------------------------------------------------------------

    def _noted(self, path: str) -> str:
        """Return the commit that a file of ours names; empty if there is none."""
        return (self._disk.read(path) or b"").decode("ascii", "replace").strip()

    def _has(self, commit: str) -> bool:
        """Return whether the repository has a commit."""
        return bool(commit) and not self._repository.run("cat-file", "-e", commit).status

    def _copy(self, held: Held) -> bytes:
        """Copy the index to the work folder, where git may change it; return its content.

        Raises:
            Refusal: If it is damaged, which a copy that git has changed would hide.
        """
        _remove_copy(held.work)
        shared = [name for name in held.git.names() if name.startswith(_SHARED)]
        for name in shared:
            held.write(name, self._disk.read(f"{GIT}/{name}") or b"")
        data = self._disk.read(_INDEX)
        if data is None:
            return b""
        if words := _damage_in(data):
            raise Refusal(Code.GIT_ERROR, words)
        held.write(_COPY, data)
        return data

    def _put(self, held: Held, changed: Entries) -> None:
        """Change entries of the copy, and put it in the place of the index."""
        if not changed:
            return
        lines = (
            "{} {}\t".format(*(changed[path] or _GONE)).encode() + os.fsencode(path) + b"\0"
            for path in sorted(changed)
        )
        # As one file: another base would lie beside the copy.
        one = ("-c", "core.splitIndex=false")
        result = self._run_git(*one, "update-index", "-z", "--index-info", given=b"".join(lines))
        if result.status:
            raise failure("update-index", result)
        held.work.move(_COPY, held.git, _NAME)

    def _note(self, held: Held, commit: str) -> None:
        """Note the commit that the index has."""
        _remove_copy(held.work)
        held.write(_STAGED, commit.encode())

    def _run_git(self, *arguments: str, given: bytes = b"", index: Path | None = None) -> GitResult:
        """Run a git command with an index; by default, that is the copy."""
        of = {"GIT_INDEX_FILE": str(index or self._disk.root / WORK / _COPY)}
        return self._repository.run(
            *arguments, given=given, environment={**git.without_settings(), **of}
        )


class Move:
    """A move of the branch, and what it changes in the index; its methods raise nothing.

    The index changes before the branch: if we are killed in between, a person's `git commit` adds
    our change, where the other order would undo it.
    """

    def __init__(self, index: GitIndex, held: Held | None, parent: str, changed: Entries) -> None:
        self._index, self._held = index, held
        self._parent, self._changed = parent, changed
        self._before = b""
        """The content of the index before it was changed; empty if it was not."""

    def begin(self) -> None:
        """Change the index; call this when the commit is written, before the branch moves."""
        if self._held is None or not self._parent:
            return
        with _logged():
            is_current = self._index._noted(_NOTED) == self._parent
            if is_current and (before := self._index._copy(self._held)):
                self._index._put(self._held, self._changed)
                self._before = before

    def arrive(self, commit: str) -> None:
        """Note that the branch has moved to `commit`."""
        if self._held is not None and self._before:
            self._before = b""
            with _logged():
                self._index._note(self._held, commit)

    def end(self) -> None:
        """Put the index back if the branch has not moved."""
        if self._held is not None and self._before:
            with _logged():
                self._held.write(_COPY, self._before)
                self._held.work.move(_COPY, self._held.git, _NAME)


@contextlib.contextmanager
def _logged() -> Iterator[None]:
    """Log an error: a change does not depend on the index, and `refresh` tries again."""
    try:
        yield
    except Exception as error:  # noqa: BLE001 - see above
        _log.info("%s", as_refusal(error, "updating the git index of the notes"))


def _damage_in(index: bytes) -> str:
    """Return what is wrong with the content of an index; empty if nothing is to be seen."""
    content, checksum = index[:-_CHECKSUM_BYTES], index[-_CHECKSUM_BYTES:]
    if not index.startswith(_MAGIC):
        return f"{_INDEX} is no index of git"
    # git itself looks at the checksum in `git fsck` only, and goes on with what it has read.
    summed = hashlib.sha1(content, usedforsecurity=False).digest()
    return "" if checksum in {summed, _NO_CHECKSUM} else f"the checksum of {_INDEX} is wrong"


def _remove_copy(work: beneath.Folder) -> None:
    """Remove the copy of the index, and of the files that a split index is based on."""
    for name in work.names():
        if name in {_COPY, f"{_COPY}.lock"} or name.startswith(_SHARED):
            work.remove(name)
