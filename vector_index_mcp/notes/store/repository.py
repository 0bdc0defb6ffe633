"""The store's git repository, of which only objects and references count.

A store may come from somebody else, and what stands in a repository's `config`, `hooks`, `info` and
attributes makes git run programs. So git is given a folder of our own as its repository, whose
settings are ours; only the store's objects and references are reached from there. Nothing of the
work tree is read by git, and its index only written for people.
"""

import contextlib
import os
import re
import signal
import subprocess
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from vector_index_mcp.files import beneath
from vector_index_mcp.notes.refusal import Code, Refusal
from vector_index_mcp.notes.store.disk import GIT, Disk, reported
from vector_index_mcp.processes import git

MAIN = "refs/heads/main"
_SHARED = ("refs", "packed-refs", "shallow")
_SETTINGS = (
    "[core]\n\trepositoryformatversion = 0\n\tbare = true\n\tfsync = all\n"
    "[gc]\n\tauto = 0\n[maintenance]\n\tauto = false\n"
)
_SETTINGS_OF_THE_STORE = (
    "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n"
    "\tlogallrefupdates = true\n"
)
_HEAD = re.compile(r"ref: (refs/heads/[^\s\x00-\x1f~^:?*\[\\]{1,200})\n?")
_ID = re.compile(r"[0-9a-f]{40}")
_DEEPEST_REFERENCES = 10
_SECONDS = 60.0  # more than any local command of git takes
_LOOK_SECONDS = 0.2  # whether a command is still wanted
_MOST_SAID_CHARS = 300
# What people have begun in the repository and not ended.
_UNDER_WAY = ("MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "rebase-merge", "rebase-apply")


@dataclass(frozen=True, slots=True)
class Said:
    """What a command of git has said."""

    status: int
    output: bytes
    errors: str


class Repository:
    """The git repository of a store. Its methods block."""

    def __init__(self, disk: Disk, ours: Path) -> None:
        """Make one.

        Args:
            disk: The store's.
            ours: Our own folder for it, outside of the store; made if need be.
        """
        self._disk = disk
        self._ours = ours / "git"
        self._objects = disk.root / GIT / "objects"

    # -- whether there is one --------------------------------------------------------------

    @property
    def exists(self) -> bool:
        """Whether the store has a repository that we can work in.

        Raises:
            Refusal: If there is something else.
        """
        if not any(self._disk.status(f"{GIT}/{part}") for part in ("HEAD", "objects", "refs")):
            return False
        for part in ("", "/objects", "/refs"):
            if not self._disk.is_folder(f"{GIT}{part}"):
                raise Refusal(
                    Code.GIT_ERROR,
                    f"{GIT}{part} of the store is no folder; the store needs a repository of its "
                    "own there",
                )
        return True

    def make(self) -> None:
        """Make a repository without commits, on the branch `main`.

        Raises:
            Refusal: If it cannot be made.
        """
        with reported(GIT):
            for folder in (
                "objects/info", "objects/pack", "refs/heads", "refs/tags", "info", "hooks"
            ):  # fmt: skip
                with beneath.opened(self._disk.root, f"{GIT}/{folder}", is_made=True):
                    pass
            with beneath.opened(self._disk.root, GIT) as made:
                # HEAD comes last: without it git takes this for no repository.
                for name, text in (
                    ("config", _SETTINGS_OF_THE_STORE), ("HEAD", f"ref: {MAIN}\n")
                ):  # fmt: skip
                    descriptor = made.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
                    with os.fdopen(descriptor, "wb") as file:
                        file.write(text.encode())
                        file.flush()
                        os.fsync(file.fileno())
                made.sync()

    def prepare(self) -> None:
        """Have our own folder lead to the store's objects and references.

        Raises:
            Refusal: If it cannot be made, or if git would write somewhere else.
        """
        self._check_links("refs", deepest=_DEEPEST_REFERENCES)
        self._check_links("objects", deepest=1)
        try:
            (self._ours / "objects").mkdir(parents=True, exist_ok=True)
            for name, text in (("config", _SETTINGS), ("HEAD", f"ref: {MAIN}\n")):
                _write_anew(self._ours / name, text.encode())
            for name in _SHARED:
                link, target = self._ours / name, self._disk.root / GIT / name
                if not link.is_symlink() or link.readlink() != target:
                    link.unlink(missing_ok=True)
                    link.symlink_to(target)
        except OSError as error:
            raise Refusal(
                Code.GIT_ERROR, f"{self._ours} cannot be made ({error.strerror}); free or allow it"
            ) from error

    def _check_links(self, folder: str, deepest: int) -> None:
        """Make sure that no link leads out of a folder of git, which follows all."""
        with reported(GIT), beneath.entries(self._disk.root, f"{GIT}/{folder}") as entries:
            for entry in entries:
                if entry.is_symlink():
                    raise Refusal(
                        Code.GIT_ERROR,
                        f"{GIT}/{folder}/{entry.name} of the store is a link, and none is followed",
                    )
                if deepest and entry.is_dir(follow_symlinks=False):
                    self._check_links(f"{folder}/{entry.name}", deepest - 1)

    def check_is_free(self) -> None:
        """Make sure that nobody is in the middle of something, and that a branch is checked out.

        Raises:
            Refusal: If that is not so.
        """
        for name in _UNDER_WAY:
            if self._disk.status(f"{GIT}/{name}") is not None:
                raise Refusal(
                    Code.GIT_ERROR,
                    f"somebody has a merge or a rebase under way in {self._disk.root} ({name}); "
                    "end it with git, then try again; nothing was changed",
                )
        self.branch()

    # -- references ------------------------------------------------------------------------

    def branch(self) -> str:
        """The reference that is checked out: `refs/heads/…`.

        Raises:
            Refusal: If there is none.
        """
        found = _HEAD.fullmatch((self._disk.read(f"{GIT}/HEAD") or b"").decode("utf-8", "replace"))
        if found is None or ".." in found[1] or found[1].endswith((".lock", "/")):
            raise Refusal(
                Code.GIT_ERROR,
                f"no branch is checked out in {self._disk.root}; `git switch main` there; nothing "
                "was changed",
            )
        return found[1]

    def commit_of(self, reference: str) -> str:
        """The commit that a reference leads to; empty if there is none.

        Raises:
            Refusal: If it cannot be read.
        """
        loose = (self._disk.read(f"{GIT}/{reference}") or b"").decode("ascii", "replace").strip()
        if _ID.fullmatch(loose):
            return loose
        if loose:
            raise Refusal(
                Code.GIT_COMMAND_FAILED,
                f"{reference} of the store is damaged; `vector-index-mcp notes doctor` says more",
            )
        packed = (self._disk.read(f"{GIT}/packed-refs") or b"").decode("utf-8", "replace")
        for line in packed.splitlines():
            commit, _, name = line.partition(" ")
            if name == reference and _ID.fullmatch(commit):
                return commit
        return ""

    # -- git -------------------------------------------------------------------------------

    def run(
        self,
        *arguments: str,
        given: bytes = b"",
        environment: Mapping[str, str] | None = None,
        seconds: float = _SECONDS,
        stopping: threading.Event | None = None,
    ) -> Said:
        """Run a command of git in our own repository; the store's index is not touched.

        Args:
            arguments: The command's.
            given: To its standard input.
            environment: Of the command, instead of one without any settings of git.
            seconds: After which it is ended.
            stopping: Once this is set, it is ended, too; for commands that are given nothing.

        Raises:
            Refusal: If git is not there or does not end.
        """
        if not self._ours.exists():  # somebody has emptied the folder for states
            self.prepare()
        base = git.without_settings() if environment is None else environment
        ours = {
            "GIT_DIR": str(self._ours),
            "GIT_OBJECT_DIRECTORY": str(self._objects),
            "GIT_OPTIONAL_LOCKS": "0",
            "LC_ALL": "C",
        }
        try:
            process = subprocess.Popen(
                ["git", *arguments],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                cwd=self._ours,
                env={**base, **ours},
                start_new_session=True,  # what ends us must not stop it amid a write
            )
        except FileNotFoundError as error:
            raise Refusal(
                Code.GIT_ERROR, "git is not installed, and notes are kept in git; install it"
            ) from error
        except OSError as error:
            raise Refusal(Code.INTERNAL_ERROR, f"git cannot be started ({error})") from error
        return _ended(process, given, seconds, stopping)

    def done(self, *arguments: str, given: bytes = b"") -> bytes:
        """What a command of git prints.

        Raises:
            Refusal: If it fails.
        """
        said = self.run(*arguments, given=given)
        if said.status:
            raise failure(arguments[0], said)
        return said.output


def _write_anew(path: Path, data: bytes) -> None:
    """Have a file hold `data`; who reads it meanwhile sees the old content or the new one."""
    with contextlib.suppress(FileNotFoundError):
        if path.read_bytes() == data:
            return
    part = path.with_name(f"{path.name}.{os.getpid()}.{threading.get_ident()}")
    part.write_bytes(data)
    part.replace(path)


def _ended(
    process: "subprocess.Popen[bytes]",
    given: bytes,
    seconds: float,
    stopping: threading.Event | None,
) -> Said:
    with process:
        try:
            output, errors = (
                process.communicate(given, timeout=seconds)
                if stopping is None
                else _waited_for(process, seconds, stopping)
            )
        except BaseException as error:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            if isinstance(error, subprocess.TimeoutExpired):
                raise Refusal(
                    Code.GIT_COMMAND_FAILED, f"git was not done after {seconds:.0f} s"
                ) from error
            raise
    return Said(process.returncode, output, errors.decode("utf-8", "replace"))


def _waited_for(
    process: "subprocess.Popen[bytes]", seconds: float, stopping: threading.Event
) -> tuple[bytes, bytes]:
    last = time.monotonic() + seconds
    while True:
        try:
            return process.communicate(timeout=_LOOK_SECONDS)
        except subprocess.TimeoutExpired:
            if stopping.is_set() or time.monotonic() > last:
                raise


def failure(name: str, said: Said) -> Refusal:
    """What a command of git that fails is answered with."""
    lines = [line.strip() for line in said.errors.splitlines() if line.strip()]
    told_first = next((line for line in lines if line.startswith(("fatal:", "error:"))), "")
    words = (told_first or " ".join(lines[-1:]) or f"status {said.status}")[:_MOST_SAID_CHARS]
    return Refusal(
        Code.GIT_COMMAND_FAILED, f"git {name} says: {words}; `vector-index-mcp notes doctor`"
    )
