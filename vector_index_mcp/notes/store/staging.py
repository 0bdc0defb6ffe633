"""Keeps the git index (staging area) of the store up to date, for people who run `git status`.

Our own commits do not need the index. A thread updates it after commits, and only for the files
that our commits have changed, so that whatever a person has staged stays staged. git updates a copy
of the index; the copy then replaces the index, unless somebody holds the index's lock or has
changed the index meanwhile.
"""

import contextlib
import logging
import os
import threading
import time
from collections.abc import Mapping

import filelock

from vector_index_mcp.files import beneath
from vector_index_mcp.notes.refusal import Code, Refusal, as_refusal
from vector_index_mcp.notes.store.disk import GIT, WORK, Disk, reported
from vector_index_mcp.notes.store.history import files_of, id_of
from vector_index_mcp.notes.store.large import id_of_file, id_of_link
from vector_index_mcp.notes.store.line_ends import plain
from vector_index_mcp.notes.store.opening import FOUND
from vector_index_mcp.notes.store.program import GitResult
from vector_index_mcp.notes.store.repository import Repository, failure
from vector_index_mcp.notes.store.upkeep import tidy
from vector_index_mcp.processes import git

_log = logging.getLogger(__name__)

_GONE = "0" * 40
_INDEX, _INDEX_LOCK = f"{GIT}/index", "index.lock"
_LOCK = "staging.lock"
_COPY = "index.part"
_SHARED = "sharedindex."  # what a split index is based on lies beside it
_NOTED, _PART = "staged", "staged.part"
_OTHERS_SECONDS = 10.0
# A commit is handled at once: until then, a person's `git commit` would undo it. In a burst, each
# update is followed by a pause of four times its length, so that it takes a fifth of the time.
_PAUSE_PER_UPDATE, _LONGEST_BURST_PAUSE_SECONDS = 4, 0.5  # a slow update takes more than a fifth
_FIRST_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS = 5.0, 60.0  # after an attempt that failed


class Staging:
    """Updates the index of one repository. Its thread works from `start` to `stop`."""

    def __init__(self, disk: Disk, repository: Repository) -> None:
        self._disk = disk
        self._repository = repository
        self._wanted = threading.Event()
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self._updating = False

    @property
    def is_busy(self) -> bool:
        """Whether an update is due or under way."""
        return self._wanted.is_set() or self._updating

    def start(self) -> None:
        """Start the thread."""
        self._thread = threading.Thread(target=self._run, name="notes staging", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Make a last attempt to update the index, then stop the thread."""
        self._stopping.set()
        self._wanted.set()
        if self._thread is not None:
            self._thread.join()

    def look(self) -> None:
        """Report that the branch has moved. Returns at once."""
        self._wanted.set()

    def _run(self) -> None:
        pause = _FIRST_PAUSE_SECONDS
        while True:
            self._wanted.wait()
            self._updating, began = True, time.monotonic()
            self._wanted.clear()  # before the next line, or a call of `stop` might be lost
            is_last = self._stopping.is_set()
            try:
                self.refresh()
            except Exception as error:  # noqa: BLE001 - the thread goes on, and tries again
                refusal = as_refusal(error, "updating the git index of the notes")
                _log.info("the git index of the notes is not up to date yet: %s", refusal)
                if not is_last and not self._stopping.wait(pause):
                    self._wanted.set()
                pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)
            else:
                pause = _FIRST_PAUSE_SECONDS
            self._updating = False
            if is_last:  # else a commit may have come while this one was handled
                return
            self._stopping.wait(
                min(_PAUSE_PER_UPDATE * (time.monotonic() - began), _LONGEST_BURST_PAUSE_SECONDS)
            )

    def refresh(self) -> None:
        """Bring the index up to date.

        Raises:
            Refusal: If that is not possible now.
        """
        if not self._disk.is_folder(WORK):  # we have never opened it: it may not be a store
            return
        with contextlib.ExitStack() as opened:
            with reported(WORK):
                work = opened.enter_context(beneath.opened(self._disk.root, WORK))
                self._lock(opened)
            self._remove_left_lock()
            self._refresh(work)
            tidy(self._disk, self._repository)

    def _lock(self, opened: contextlib.ExitStack) -> None:
        """Take the lock of those who update the index, until `opened` is closed."""
        lock = filelock.FileLock(self._disk.root / WORK / _LOCK, mode=0o600)
        try:
            opened.enter_context(lock.acquire(timeout=_OTHERS_SECONDS))
        except filelock.Timeout as error:
            raise Refusal(
                Code.GIT_ERROR, "another process is updating the git index of the notes"
            ) from error

    def _refresh(self, work: beneath.Folder) -> None:
        commit = self._repository.commit_of(self._repository.branch())
        before = self._stamp()
        # Read anew each time: the repository may have been replaced since the last update.
        known = self._noted(f"{WORK}/{_NOTED}") if before is not None else ""
        if not commit or commit == known:
            return
        self._copy(work)
        if lines := self._news(commit, known):
            given = b"".join(line + b"\0" for line in lines)
            # As one file: another base would lie beside the copy.
            one = ("-c", "core.splitIndex=false")
            result = self._run_git(*one, "update-index", "-z", "--index-info", given=given)
            if result.status:
                raise failure("update-index", result)
            self._publish(work, before)
        self._note(work, commit)

    def _noted(self, path: str) -> str:
        """Return the commit that a file of ours names; empty if the repository does not have it."""
        noted = (self._disk.read(path) or b"").decode("ascii", "replace").strip()
        is_there = noted and not self._repository.run("cat-file", "-e", noted).status
        return noted if is_there else ""

    def _note(self, work: beneath.Folder, commit: str) -> None:
        with os.fdopen(work.open(_PART, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), "wb") as file:
            file.write(commit.encode())
        work.replace(_PART, _NOTED)

    def _copy(self, work: beneath.Folder) -> None:
        """Copy the index to the work folder, where git may change it."""
        _remove_copy(work)
        with beneath.opened(self._disk.root, GIT) as folder:
            shared = [name for name in folder.names() if name.startswith(_SHARED)]
        for name, copy in ((_INDEX, _COPY), *((f"{GIT}/{name}", name) for name in shared)):
            if (data := self._disk.read(name)) is not None:
                with os.fdopen(work.open(copy, os.O_WRONLY | os.O_CREAT | os.O_EXCL), "wb") as file:
                    file.write(data)

    def _publish(self, work: beneath.Folder, before: object) -> None:
        """Replace the index by the copy while holding the index's lock, as git itself does."""
        with beneath.opened(self._disk.root, GIT) as folder:
            try:
                self._take_lock(work, folder)
            except FileExistsError as error:
                raise Refusal(
                    Code.GIT_ERROR, "another git process holds the lock of the index (index.lock)"
                ) from error
            try:
                if self._stamp() != before:
                    raise Refusal(Code.GIT_ERROR, "another git process has just changed the index")
                folder.replace(_INDEX_LOCK, _INDEX.rpartition("/")[2])
            except (OSError, Refusal):
                folder.remove(_INDEX_LOCK)
                raise
        _remove_copy(work)

    def _take_lock(self, work: beneath.Folder, folder: beneath.Folder) -> None:
        """Give the copy a second name, that of the lock.

        If we are killed now, the next update knows the lock as ours by that.

        Raises:
            FileExistsError: If somebody holds the lock.
        """
        try:
            work.link(_COPY, folder, _INDEX_LOCK)
        except FileExistsError:
            raise
        except OSError:  # no hard links: if we are killed now, nobody can tell whose lock is left
            os.close(folder.open(_INDEX_LOCK, os.O_WRONLY | os.O_CREAT | os.O_EXCL))
            try:
                work.move(_COPY, folder, _INDEX_LOCK)
            except OSError:
                folder.remove(_INDEX_LOCK)
                raise

    def _remove_left_lock(self) -> None:
        """Remove the index's lock if a process of ours was killed while it held the lock."""
        ours, lock = self._disk.status(f"{WORK}/{_COPY}"), self._disk.status(f"{GIT}/{_INDEX_LOCK}")
        if ours is not None and lock is not None and os.path.samestat(ours, lock):
            with beneath.opened(self._disk.root, GIT) as folder:
                folder.remove(_INDEX_LOCK)

    def _stamp(self) -> object:
        status = self._disk.status(_INDEX)
        return status and (status.st_mtime_ns, status.st_size, status.st_ino)

    def _news(self, commit: str, known: str) -> list[bytes]:
        """Return the entries to update in the index, as `git update-index` reads them.

        If the commit of the last update is `known`, these are the files that differ from it. If
        not, these are the files that differ from the index, and are on the disk as committed or
        in the index as we found them: any other file may have been staged by a person.
        """
        last = files_of(self._repository, commit)
        if known:
            before = files_of(self._repository, known)
            paths = [p for p in {*last, *before} if last.get(p) != before.get(p)]
        else:
            indexed, found = self._indexed(), self._noted(FOUND)
            old = files_of(self._repository, found) if found else None
            paths = [
                path
                for path in {*last, *indexed}
                if last.get(path) != indexed.get(path)
                and (
                    self._is_as_committed(path, last)
                    or (old is not None and old.get(path) == indexed.get(path))
                )
            ]
        lines = []
        for path in sorted(paths):
            mode, name = last.get(path, ("0", _GONE))
            lines.append(f"{mode} {name}\t".encode() + os.fsencode(path))
        return lines

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

    def _indexed(self) -> dict[str, tuple[str, str]]:
        result = self._run_git("ls-files", "--stage", "-z")
        if result.status:
            raise failure("ls-files", result)
        found = {}
        for line in result.output.split(b"\0"):
            if line:
                facts, _, path = line.partition(b"\t")
                mode, name, _ = facts.decode("ascii").split(" ")
                found[os.fsdecode(path)] = (mode, name)
        return found

    def _run_git(self, *arguments: str, given: bytes = b"") -> GitResult:
        index = str(self._disk.root / WORK / _COPY)
        return self._repository.run(
            *arguments, given=given, environment={**git.without_settings(), "GIT_INDEX_FILE": index}
        )


def _remove_copy(work: beneath.Folder) -> None:
    """Remove the copy of the index, and of the files that a split index is based on."""
    for name in work.names():
        if name in {_COPY, f"{_COPY}.lock"} or name.startswith(_SHARED):
            work.remove(name)
