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
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import filelock

from vector_index_mcp.files import beneath
from vector_index_mcp.notes.refusal import Code, Refusal, as_refusal
from vector_index_mcp.notes.store.disk import GIT, WORK, Disk
from vector_index_mcp.notes.store.history import changes_between, files_of, id_of
from vector_index_mcp.notes.store.large import id_of_file, id_of_link
from vector_index_mcp.notes.store.line_ends import plain
from vector_index_mcp.notes.store.opening import FOUND
from vector_index_mcp.notes.store.program import GitResult
from vector_index_mcp.notes.store.repository import Repository, failure
from vector_index_mcp.processes import git

_log = logging.getLogger(__name__)

Entries = Mapping[str, tuple[str, str] | None]
"""Mode and object id by path; None for a file that is no longer there."""

_GONE = ("0", "0" * 40)
_NAME, _INDEX_LOCK = "index", "index.lock"
_INDEX = f"{GIT}/{_NAME}"
_DAMAGED = "index.damaged"
_MAGIC, _CHECKSUM_BYTES = b"DIRC", 20
_NO_CHECKSUM = bytes(_CHECKSUM_BYTES)  # what git writes with `index.skipHash`
_LOCK = "staging.lock"  # of the processes of ours
_OURS = "index.held"
_COPY = "index.part"
_SHARED = "sharedindex."  # what a split index is based on lies beside it
_STAGED, _PART = "staged", "staged.part"
_NOTED = f"{WORK}/{_STAGED}"
"""Names the commit that the index was last brought up to."""
_OTHERS_SECONDS = 10.0
# A person's git mostly holds the index for a few milliseconds; `git commit -a` does so for as long
# as its editor is open, and then refuses to commit, since the branch has moved.
_LOCKED_SECONDS, _LOOK_SECONDS = 1.0, 0.005
_LOCKED_FOR_LONG_SECONDS = 10.0  # no change waits for such a lock: a killed git may have left it


class IndexIsLocked(Refusal):
    """Somebody else holds the lock of the index."""

    def __init__(self, words: str) -> None:
        super().__init__(Code.GIT_ERROR, words)


class GitIndex:
    """The index of one repository, for one thread. The methods block."""

    def __init__(self, disk: Disk, repository: Repository) -> None:
        self._disk = disk
        self._repository = repository
        self._held: _Held | None = None
        """The folders to work in while we hold the index's lock."""

    # -- with the branch -------------------------------------------------------------------

    @contextlib.contextmanager
    def locked(self, seconds: float | None = None) -> Iterator[None]:
        """Keep people's git from the index while files and the branch change.

        If somebody else holds its lock for longer than `seconds`, by default a second, the context
        goes on without the lock, and `refresh` is needed. A context in another one does nothing.
        """
        with contextlib.ExitStack() as held:
            try:
                held.enter_context(self._holding(_LOCKED_SECONDS if seconds is None else seconds))
            except Exception as error:  # noqa: BLE001 - a change does not depend on the index
                _log.info("%s", as_refusal(error, "locking the git index of the notes"))
            yield

    def follow(self, parent: str, commit: str, changed: Entries) -> None:
        """Have the index contain what a commit has changed; call it under the lock.

        This does nothing if we do not hold the lock, or if the index was not that of `parent`: then
        `refresh` is needed. It raises nothing: the commit is made by then.
        """
        if self._held is None or not parent or self._noted(_NOTED) != parent:
            return
        try:
            if self._disk.status(_INDEX) is not None:
                self._copy(self._held)
                self._put(self._held, changed, commit)
        except Exception as error:  # noqa: BLE001 - see above
            _log.info("%s", as_refusal(error, "updating the git index of the notes"))

    # -- behind the branch -----------------------------------------------------------------

    @property
    def is_up_to_date(self) -> bool:
        """Whether the index has what our commits have changed, up to the branch's last commit.

        Raises:
            Refusal: If the branch cannot be read.
        """
        commit = self._repository.commit_of(self._repository.branch())
        return self._noted(_NOTED) == commit and self._disk.status(_INDEX) is not None

    def refresh(self, seconds: float = 0.0) -> None:
        """Bring the index up to date.

        Args:
            seconds: How long to wait for somebody else who holds the lock.

        Raises:
            IndexIsLocked: If somebody holds it for longer.
            Refusal: If it is not possible for another reason.
            OSError: If a file cannot be written.
        """
        # If we have never opened it, it may not be a store.
        if not self._disk.is_folder(WORK) or (self.is_up_to_date and not self._has_left_lock()):
            return
        with self._holding(seconds) as held:
            self._refresh(held)

    def _refresh(self, held: "_Held") -> None:
        commit = self._repository.commit_of(self._repository.branch())
        is_there = self._disk.status(_INDEX) is not None
        # Read anew each time: the repository may have been replaced since the last update.
        known = self._noted(_NOTED) if is_there else ""
        if not commit or commit == known:
            return
        self._copy(held)
        news = self._news(commit, known if self._has(known) else "")
        self._put(held, news, commit)

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
        with self._holding(_LOCKED_SECONDS) as held:
            if self.damage():
                held.git.replace(_NAME, _DAMAGED)
            self._refresh(held)

    # -- the lock --------------------------------------------------------------------------

    @contextlib.contextmanager
    def _holding(self, seconds: float) -> Iterator["_Held"]:
        """Hold the lock of the index; raises as `_lock`."""
        if self._held is not None:
            yield self._held
            return
        with contextlib.ExitStack() as opened:
            self._held = self._lock(opened, seconds)
            try:
                yield self._held
            finally:
                with contextlib.suppress(OSError):
                    self._held.git.remove(_INDEX_LOCK)
                self._held = None

    def _lock(self, opened: contextlib.ExitStack, seconds: float) -> "_Held":
        """Lock the index as git does, until `opened` is closed or we are killed.

        Raises:
            IndexIsLocked: If somebody else holds the lock for longer than `seconds`.
            OSError: If it cannot be made.
        """
        work = opened.enter_context(beneath.opened(self._disk.root, WORK))
        folder = opened.enter_context(beneath.opened(self._disk.root, GIT))
        ours = filelock.FileLock(self._disk.root / WORK / _LOCK, mode=0o600)
        try:
            opened.enter_context(ours.acquire(timeout=_OTHERS_SECONDS, poll_interval=_LOOK_SECONDS))
        except filelock.Timeout as error:
            raise IndexIsLocked("another process is updating the git index of the notes") from error
        if self._has_left_lock():
            folder.remove(_INDEX_LOCK)
        is_old = self._age_of_lock() > _LOCKED_FOR_LONG_SECONDS
        last = time.monotonic() + (0.0 if is_old else seconds)
        while not _is_locked_by_us(work, folder):
            if time.monotonic() >= last:
                raise IndexIsLocked("another git process holds .git/index.lock")
            time.sleep(_LOOK_SECONDS)
        return _Held(work, folder)

    def _age_of_lock(self) -> float:
        """Return for how long somebody has held the lock, in seconds; 0 if nobody does."""
        status = self._disk.status(f"{GIT}/{_INDEX_LOCK}")
        return 0.0 if status is None else time.time() - status.st_mtime

    def _has_left_lock(self) -> bool:
        """Whether a process of ours has made the index's lock: this one, or one that was killed."""
        ours, lock = self._disk.status(f"{WORK}/{_OURS}"), self._disk.status(f"{GIT}/{_INDEX_LOCK}")
        return ours is not None and lock is not None and os.path.samestat(ours, lock)

    # -- the copy --------------------------------------------------------------------------

    def _noted(self, path: str) -> str:
        """Return the commit that a file of ours names; empty if there is none."""
        return (self._disk.read(path) or b"").decode("ascii", "replace").strip()

    def _has(self, commit: str) -> bool:
        """Return whether the repository has a commit."""
        return bool(commit) and not self._repository.run("cat-file", "-e", commit).status

    def _copy(self, held: "_Held") -> None:
        """Copy the index to the work folder, where git may change it.

        Raises:
            Refusal: If it is damaged, which a copy that git has changed would hide.
        """
        _remove_copy(held.work)
        shared = [name for name in held.git.names() if name.startswith(_SHARED)]
        for name, copy in ((_INDEX, _COPY), *((f"{GIT}/{name}", name) for name in shared)):
            if (data := self._disk.read(name)) is None:
                continue
            if name == _INDEX and (words := _damage_in(data)):
                raise Refusal(Code.GIT_ERROR, words)
            descriptor = held.work.open(copy, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
            with os.fdopen(descriptor, "wb") as file:
                file.write(data)

    def _put(self, held: "_Held", changed: Entries, commit: str) -> None:
        """Change entries of the copy, put it in the place of the index, and note the commit."""
        if changed:
            lines = (
                "{} {}\t".format(*(changed[path] or _GONE)).encode() + os.fsencode(path) + b"\0"
                for path in sorted(changed)
            )
            given = b"".join(lines)
            # As one file: another base would lie beside the copy.
            one = ("-c", "core.splitIndex=false")
            result = self._run_git(*one, "update-index", "-z", "--index-info", given=given)
            if result.status:
                raise failure("update-index", result)
            held.work.move(_COPY, held.git, _NAME)
        _remove_copy(held.work)
        with os.fdopen(held.work.open(_PART, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), "wb") as file:
            file.write(commit.encode())
        held.work.replace(_PART, _STAGED)

    def _run_git(self, *arguments: str, given: bytes = b"", index: Path | None = None) -> GitResult:
        """Run a git command with an index; by default, that is the copy."""
        of = {"GIT_INDEX_FILE": str(index or self._disk.root / WORK / _COPY)}
        return self._repository.run(
            *arguments, given=given, environment={**git.without_settings(), **of}
        )


@dataclass(frozen=True, slots=True)
class _Held:
    """The folders that are open while we hold the lock of the index."""

    work: beneath.Folder
    git: beneath.Folder


def _is_locked_by_us(work: beneath.Folder, git_folder: beneath.Folder) -> bool:
    """Make the lock of the index; return False if somebody else holds it.

    It is a second name of a file of ours: if we are killed now, the next one knows it by that.
    """
    os.close(work.open(_OURS, os.O_WRONLY | os.O_CREAT))
    try:
        work.link(_OURS, git_folder, _INDEX_LOCK)
    except FileExistsError:
        return False
    except OSError:  # no hard links: if we are killed now, nobody can tell whose lock is left
        try:
            os.close(git_folder.open(_INDEX_LOCK, os.O_WRONLY | os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return False
    return True


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
