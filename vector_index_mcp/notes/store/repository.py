"""Runs git on the store's repository, using only the repository's objects and references.

A store may come from somebody else, and a repository's `config`, `hooks`, `info` and attributes can
make git run programs. So git gets a folder of our own as its repository (GIT_DIR), with our own
settings, which links to the store's objects and references. git reads nothing of the work tree here
but `.gitattributes`, and the index is written only for people who run `git status`.
"""

import contextlib
import os
import re
import subprocess
import threading
from collections.abc import Mapping
from pathlib import Path

from vector_index_mcp.files import beneath
from vector_index_mcp.notes.refusal import Code, Refusal
from vector_index_mcp.notes.store.disk import GIT, Disk, reported
from vector_index_mcp.notes.store.formats import unknown_format
from vector_index_mcp.notes.store.program import GitResult, ended, failure, started
from vector_index_mcp.notes.store.settings import Settings
from vector_index_mcp.processes import git

MAIN = "refs/heads/main"
OWN = "git"
"""The name of our own GIT_DIR in the folder for our data about a store."""
_SHARED = ("refs", "packed-refs", "shallow")
_SETTINGS = (
    "[core]\n\trepositoryformatversion = 0\n\tbare = true\n\tfsync = all\n"
    "[gc]\n\tauto = 0\n[maintenance]\n\tauto = false\n"
)
_SETTINGS_OF_THE_STORE = (
    "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n"
    "\tlogallrefupdates = true\n"
)
_HEAD = re.compile(r"ref: (\S+)\n?")
_BRANCH = re.compile(r"refs/heads/[^\s\x00-\x1f~^:?*\[\\]{1,200}")
_OF_NO_REPOSITORY = frozenset({"config", "version"})
"""git commands that neither read nor write the repository."""
_ID = re.compile(r"[0-9a-f]{40}")
_DEEPEST_REFERENCES = 10
_SECONDS = 60.0  # more than any local git command takes
_SIGNS_OF_LACK = (
    "missing", "unable to read", "Could not read", "bad object", "all necessary objects",
    "unresolved delta",
)  # fmt: skip
_PROMISED = ".promisor"  # the ending of a file beside each pack of a partial clone
# Files that show that a person has a merge, a rebase or the like under way.
_UNDER_WAY = ("MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "rebase-merge", "rebase-apply")


class Repository:
    """A store's git repository. The methods block."""

    def __init__(self, disk: Disk, ours: Path) -> None:
        """Set up access; nothing is created yet.

        Args:
            disk: The store's files.
            ours: A folder outside the store for our own GIT_DIR; created when needed.
        """
        self._disk = disk
        self._ours = ours / OWN
        self._objects = disk.root / GIT / "objects"
        self.settings = Settings(disk, self._listed)
        self._checked: str | None = None
        """The store's settings, as they were last checked."""

    # -- existence and state ---------------------------------------------------------------

    @property
    def exists(self) -> bool:
        """Whether the store has a repository.

        Raises:
            Refusal: If `.git` exists and is no usable repository, such as a link or a file.
        """
        if not any(self._disk.status(f"{GIT}/{part}") for part in ("HEAD", "objects", "refs")):
            return False
        for part in ("", "/objects", "/refs"):
            if not self._disk.is_folder(f"{GIT}{part}"):
                raise Refusal(
                    Code.GIT_ERROR,
                    f"{GIT}{part} in the store is not a folder; the store needs a git repository "
                    "of its own there",
                )
        return True

    def make(self) -> None:
        """Create a repository without commits, on the branch `main`.

        Raises:
            Refusal: If it cannot be created.
        """
        with reported(GIT):
            for folder in (
                "objects/info", "objects/pack", "refs/heads", "refs/tags", "info", "hooks"
            ):  # fmt: skip
                with beneath.opened(self._disk.root, f"{GIT}/{folder}", is_made=True):
                    pass
            with beneath.opened(self._disk.root, GIT) as made:
                # HEAD comes last: without it git does not take the folder for a repository.
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
        """Create our own GIT_DIR, which links to the store's objects and references.

        Raises:
            Refusal: If it cannot be created, if a link in the store would lead git elsewhere, or if
                the store's repository has another format than ours.
        """
        self._check_links("refs", deepest=_DEEPEST_REFERENCES)
        self._check_links("objects", deepest=1)
        try:
            (self._ours / "objects").mkdir(parents=True, exist_ok=True)
            for name in _SHARED:
                _link_anew(self._ours / name, self._disk.root / GIT / name)
            # HEAD comes last: once it is there, others take the folder for whole.
            for name, text in (("config", _SETTINGS), ("HEAD", f"ref: {MAIN}\n")):
                _write_anew(self._ours / name, text.encode())
        except OSError as error:
            raise Refusal(
                Code.GIT_ERROR,
                f"the folder {self._ours} cannot be written ({error.strerror}); make it writable, "
                "or free some space",
            ) from error
        self._check_format()

    def _check_format(self) -> None:
        """Check that the store's repository keeps objects and references as ours does."""
        listed = self.settings.listed()
        if listed is self._checked:
            return
        if found := unknown_format(listed):
            raise Refusal(
                Code.GIT_ERROR,
                f"the git repository in {self._disk.root} has a format that the notes cannot write "
                f"({found}), and nothing was changed; name another folder for the notes",
            )
        self._checked = listed

    def _listed(self, text: bytes | None) -> str:
        """Return the settings in a text, or those of the user (None), as git lists them.

        Raises:
            Refusal: If git cannot read them.
        """
        if text is None:
            result = self.run("config", "--list", "-z", as_user=True)
            if result.status:
                raise failure("config", result)
            return result.output.decode("utf-8", "surrogateescape")
        result = self.run("config", "--file", "-", "--no-includes", "--list", "-z", given=text)
        if result.status:
            raise Refusal(
                Code.GIT_ERROR,
                f"git cannot read {GIT}/config in {self._disk.root}, so the format of the "
                "repository is not known; correct that file",
            )
        return result.output.decode("utf-8", "surrogateescape")

    def put_own(self, name: str, data: bytes) -> None:
        """Have one of the files of our own GIT_DIR contain `data`.

        Raises:
            Refusal: If it cannot be written.
        """
        with reported(str(self._ours / name)):
            (self._ours / name).parent.mkdir(parents=True, exist_ok=True)
            _write_anew(self._ours / name, data)

    def own(self, name: str) -> str:
        """Return the text of one of these files; empty if there is none."""
        with contextlib.suppress(OSError):
            return (self._ours / name).read_text(encoding="ascii", errors="replace")
        return ""

    def _check_links(self, folder: str, deepest: int) -> None:
        """Check that a folder of the repository contains no link: git follows every link."""
        with reported(GIT), beneath.entries(self._disk.root, f"{GIT}/{folder}") as entries:
            for entry in entries:
                if entry.is_symlink():
                    raise Refusal(
                        Code.GIT_ERROR,
                        f"{GIT}/{folder}/{entry.name} in the store is a link, and links are not "
                        "followed; replace it with a plain file or folder",
                    )
                if deepest and entry.is_dir(follow_symlinks=False):
                    self._check_links(f"{folder}/{entry.name}", deepest - 1)

    def check_is_free(self) -> None:
        """Check that no merge or rebase is under way, and that a branch is checked out.

        Raises:
            Refusal: If one is under way, or no branch is checked out.
        """
        self._check_nothing_is_under_way()
        self.branch()

    def _check_nothing_is_under_way(self) -> None:
        for name in _UNDER_WAY:
            if self._disk.status(f"{GIT}/{name}") is not None:
                raise Refusal(
                    Code.GIT_ERROR,
                    f"a merge or a rebase is under way in {self._disk.root} ({name}); finish or "
                    "abort it with git, then try again; nothing was changed",
                )

    @property
    def lack(self) -> str:
        """Why objects may be missing, and what to do; empty unless it is a partial clone."""
        names = (name for name, _ in self._disk.entries(f"{GIT}/objects/pack"))
        if not any(name.endswith(_PROMISED) for name in names):
            return ""
        return (
            f"{self._disk.root} is a partial clone (`git clone --filter`), which lacks a part of "
            "the history; run `git fetch --refetch --no-filter origin` there"
        )

    def lacks(self, words: str) -> bool:
        """Return whether git's message is about an object that a partial clone has left out."""
        return any(sign in words for sign in _SIGNS_OF_LACK) and bool(self.lack)

    # -- references ------------------------------------------------------------------------

    def branch(self) -> str:
        """Return the branch that is checked out, as `refs/heads/…`.

        Raises:
            Refusal: If no branch is checked out; during a rebase, none is.
        """
        found = _HEAD.fullmatch((self._disk.read(f"{GIT}/HEAD") or b"").decode("utf-8", "replace"))
        if found is None or not is_branch(found[1]):
            self._check_nothing_is_under_way()  # git refuses to switch before that is ended
            raise Refusal(
                Code.GIT_ERROR,
                f"no branch is checked out in {self._disk.root}; run `git switch main` there; "
                "nothing was changed",
            )
        return found[1]

    def check_out(self, branch: str) -> None:
        """Make `branch` the one that is checked out; files and commits stay as they are.

        Raises:
            Refusal: If that cannot be written now.
        """
        lock = "HEAD.lock"  # as git does
        with reported(f"{GIT}/HEAD"), beneath.opened(self._disk.root, GIT) as folder:
            descriptor = folder.open(lock, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
            try:
                with os.fdopen(descriptor, "wb") as file:
                    file.write(f"ref: {branch}\n".encode())
                    file.flush()
                    os.fsync(file.fileno())
                folder.replace(lock, "HEAD")
            except OSError:
                folder.remove(lock)
                raise
            folder.sync()

    def commit_of(self, reference: str) -> str:
        """Return the commit id that a reference points to; empty if there is no such reference.

        Raises:
            Refusal: If the reference cannot be read.
        """
        loose = (self._disk.read(f"{GIT}/{reference}") or b"").decode("ascii", "replace").strip()
        if _ID.fullmatch(loose):
            return loose
        if loose:
            raise Refusal(
                Code.GIT_COMMAND_FAILED,
                f"{reference} of the store is damaged; `vector-index-mcp notes doctor` shows more",
            )
        packed = (self._disk.read(f"{GIT}/packed-refs") or b"").decode("utf-8", "replace")
        for line in packed.splitlines():
            commit, _, name = line.partition(" ")
            if name == reference and _ID.fullmatch(commit):
                return commit
        return ""

    # -- git -------------------------------------------------------------------------------

    def is_in(self, commit: str, other: str) -> bool:
        """Return whether a commit is `other` or one before it; never if `other` is empty.

        Raises:
            Refusal: If git is not installed, or does not end in time.
        """
        if not other or commit == other:
            return bool(other)
        return self.run("merge-base", "--is-ancestor", commit, other).status == 0

    def run(
        self,
        *arguments: str,
        given: bytes = b"",
        environment: Mapping[str, str] | None = None,
        as_user: bool = False,
        seconds: float = _SECONDS,
        stopping: threading.Event | None = None,
        output: int = subprocess.PIPE,
        adds_objects: bool = False,
    ) -> GitResult:
        """Run a git command in our own GIT_DIR; the store's index is not touched.

        Args:
            arguments: The command and its arguments.
            given: The bytes for its standard input.
            environment: Its environment variables; by default ours without any for git.
            as_user: Whether the user's settings apply, as git would apply them in the store.
            seconds: The time after which the command is killed.
            stopping: An event that ends the command once it is set; only without `given`.
            output: A descriptor that gets the output; by default it becomes part of the result.
            adds_objects: Whether it adds objects. It then works in the store's `.git`: if that is
                moved away, git goes with it, and makes no new folder for them.

        Raises:
            Refusal: If git is not installed, or does not end in time.
        """
        is_read = arguments[0] not in _OF_NO_REPOSITORY
        # Somebody may have emptied the state folder.
        if not (self._ours / ("HEAD" if is_read else "")).exists():
            self.prepare()
        if is_read:
            self._check_format()
        if environment is None:
            environment = git.environment() if as_user else git.without_settings()
        ours = {
            "GIT_DIR": str(self._ours),
            "GIT_OBJECT_DIRECTORY": str(self._objects),
            "GIT_OPTIONAL_LOCKS": "0",
            "LC_ALL": "C",
        }
        if as_user:
            # Settings may apply to a folder alone (`includeIf "gitdir:…"`). All other files of a
            # repository, such as its own settings and hooks, are those of the common folder.
            ours |= {"GIT_DIR": str(self._disk.root / GIT), "GIT_COMMON_DIR": str(self._ours)}
        folder = self._ours
        if adds_objects:
            folder, ours["GIT_OBJECT_DIRECTORY"] = self._disk.root / GIT, "objects"
        process = started(arguments, folder, {**environment, **ours}, output)
        return ended(process, given, seconds, stopping)

    def done(self, *arguments: str, given: bytes = b"") -> bytes:
        """Run a git command and return its output.

        Raises:
            Refusal: If the command fails.
        """
        result = self.run(*arguments, given=given)
        if result.status:
            if self.lacks(result.errors):
                raise Refusal(Code.GIT_COMMAND_FAILED, self.lack)
            raise failure(arguments[0], result)
        return result.output


def is_branch(name: str) -> bool:
    """Return whether git may have a branch of this name, which begins with `refs/heads/`."""
    return bool(_BRANCH.fullmatch(name)) and ".." not in name and not name.endswith((".lock", "/"))


def _write_anew(path: Path, data: bytes) -> None:
    """Replace a file's content in one step: a reader sees the old content or the new one."""
    with contextlib.suppress(FileNotFoundError):
        if path.read_bytes() == data:
            return
    part = _part_of(path)
    part.write_bytes(data)
    part.replace(path)


def _link_anew(path: Path, target: Path) -> None:
    """Have a link lead to `target`, in one step: others may make it at the same time."""
    if not path.is_symlink() or path.readlink() != target:
        part = _part_of(path)
        part.unlink(missing_ok=True)
        part.symlink_to(target)
        part.replace(path)


def _part_of(path: Path) -> Path:
    return path.with_name(f"{path.name}.{os.getpid()}.{threading.get_ident()}")
