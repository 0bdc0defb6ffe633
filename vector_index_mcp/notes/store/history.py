"""Reads the files of commits, and writes new commits: one git process writes many.

`git fast-import` stores commits and contents as objects; it needs no index, work tree or hooks.
Then the branch moves, unless somebody else has moved it meanwhile.
"""

import hashlib
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from vector_index_mcp.notes.names import is_keepable_path
from vector_index_mcp.notes.refusal import Code, Refusal
from vector_index_mcp.notes.store.program import failure
from vector_index_mcp.notes.store.repository import Repository

OURS = "Knowledge MCP Server <knowledge-mcp@localhost>"
_FILE, _EXECUTABLE = "100644", "100755"
_SUBMODULE = "160000"
PLAIN = frozenset({_FILE, _EXECUTABLE})
"""The modes of plain files; other modes are links and submodules."""
_LONGEST_SUBJECT_CHARS = 200
NEXT = "refs/vector-index-mcp/next"
"""Has the last commits that we have written: no `git prune` takes them before the branch moves."""
_NONE = "0" * 40


@dataclass(frozen=True, slots=True)
class Commit:
    """A commit to write."""

    message: str
    files: Mapping[str, bytes | None]
    """Contents of the changed files by path; None for a removed file."""
    author: str = OURS
    """A name and an address in angle brackets."""
    merges: str = ""
    """The second parent of a merge; empty for any other commit."""
    taken: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """Mode and object id by path of what becomes part of the commit without being read."""


class Tree:
    """The files of the last commit, with the object id of each. It moves with the branch."""

    def __init__(self, repository: Repository) -> None:
        self.repository = repository
        self.commit = ""
        """The commit's id; empty before the first commit."""
        self._files: dict[str, tuple[str, str]] = {}
        """Mode and object id by path."""

    def follow(self, commit: str) -> None:
        """Read the files of `commit`, unless they are read already.

        Raises:
            Refusal: If the commit cannot be read.
        """
        if commit != self.commit:
            self._files = files_of(self.repository, commit) if commit else {}
            self.commit = commit

    def forget(self) -> None:
        """Forget the files, so that `follow` reads them again."""
        self.commit, self._files = "", {}

    def id_of(self, path: str) -> str:
        """Return the object id of a file's content; empty if there is no such file."""
        return self._files.get(path, ("", ""))[1]

    def mode_of(self, path: str) -> str:
        """Return the mode of a file; that of a plain file if it is new, or was a link."""
        mode = self._files.get(path, (_FILE, ""))[0]
        return mode if mode in PLAIN else _FILE

    def has_file(self, path: str) -> bool:
        """Return whether a file is at `path`, and not a link or a submodule."""
        return self._files.get(path, ("", ""))[0] in PLAIN

    def is_submodule(self, path: str) -> bool:
        """Return whether a submodule is at `path`: another repository's files lie below it."""
        return self._files.get(path, ("", ""))[0] == _SUBMODULE

    def paths(self) -> Iterator[str]:
        """Yield the paths of all files, without links and submodules."""
        return (path for path, (mode, _) in self._files.items() if mode in PLAIN)

    def below(self, folder: str) -> list[str]:
        """Return the paths of all files below `folder`."""
        return [path for path in self.paths() if path.startswith(f"{folder}/")]

    def note(self, commit: str, made: Sequence[Commit]) -> None:
        """Apply the commits `made` to the files; `commit` is the id of the last one."""
        for path, entry in self.changed_by(made).items():
            if entry is None:
                self._files.pop(path, None)
            else:
                self._files[path] = entry
        self.commit = commit

    def changed_by(self, made: Sequence[Commit]) -> dict[str, tuple[str, str] | None]:
        """Return mode and object id of each file after the commits `made`; None if it is gone."""
        changed: dict[str, tuple[str, str] | None] = {}
        for each in made:
            for path, data in each.files.items():
                is_new = path in changed and changed[path] is None
                mode = _FILE if is_new else self.mode_of(path)
                changed[path] = None if data is None else (mode, id_of(data))
            changed |= each.taken
        return changed


def is_ours(path: str) -> bool:
    """Return whether a path in the history may be a file of the store."""
    return is_keepable_path(path)


def id_of(data: bytes) -> str:
    """Return the id that git gives to a file with this content."""
    return hashlib.sha1(b"blob %d\0%b" % (len(data), data), usedforsecurity=False).hexdigest()


def files_of(repository: Repository, commit: str) -> dict[str, tuple[str, str]]:
    """Return mode and object id of every file of a commit, by path.

    Raises:
        Refusal: If the commit cannot be read.
    """
    found = {}
    for line in repository.done("ls-tree", "-r", "-z", "--full-tree", commit).split(b"\0"):
        if line:
            facts, _, path = line.partition(b"\t")
            mode, _, name = facts.decode("ascii").split(" ")
            found[os.fsdecode(path)] = (mode, name)
    return found


def changes_between(
    repository: Repository, old: str, new: str
) -> dict[str, tuple[str, str] | None]:
    """Return mode and object id of each file that the commit `new` has otherwise than `old`.

    A file that only `old` has is there with None.

    Raises:
        Refusal: If a commit cannot be read.
    """
    before, after = files_of(repository, old), files_of(repository, new)
    return {p: after.get(p) for p in {*before, *after} if before.get(p) != after.get(p)}


def contents(repository: Repository, names: Sequence[str]) -> dict[str, bytes]:
    """Return the contents of the objects with the ids `names`, by id.

    Raises:
        Refusal: If an object cannot be read.
    """
    if not names:
        return {}
    wanted = list(dict.fromkeys(names))
    output = repository.done(
        "cat-file", "--batch", given="".join(f"{name}\n" for name in wanted).encode()
    )
    found, at = {}, 0
    for name in wanted:
        end = output.index(b"\n", at)
        facts = output[at:end].split(b" ")
        if facts[-1] == b"missing":
            raise Refusal(
                Code.GIT_COMMAND_FAILED,
                repository.lack
                or f"the history lacks the object {name}; `vector-index-mcp notes doctor` shows "
                "more",
            )
        size = int(facts[2])
        found[name] = output[end + 1 : end + 1 + size]
        at = end + size + 2
    return found


def versions_of(repository: Repository, commit: str, path: str) -> list[str]:
    """Return the object ids of all contents that a file had up to a commit, newest first.

    Raises:
        Refusal: If they cannot be read.
    """
    output = repository.done(
        "--literal-pathspecs", "log", "-z", "--raw", "--no-abbrev", "--no-renames",
        "--full-history", "-m", "--format=", commit, "--", path,
    ).split(b"\0")  # fmt: skip
    # For each change, git prints old and new mode, old and new object id, and then the path.
    changes = (facts.decode("ascii").split(" ") for facts in output[:-1:2])
    return list(dict.fromkeys(name for _, mode, _, name, _ in changes if mode in PLAIN))


def write(
    repository: Repository,
    branch: str,
    parent: str,
    tree: Tree,
    commits: Sequence[Commit],
    before_move: Callable[[], None] = lambda: None,
) -> str:
    """Write `commits`, each the parent of the next; return the id of the last one.

    Args:
        repository: The repository to write to.
        branch: The branch to move, as `refs/heads/…`.
        parent: The parent of the first commit; empty if there is none.
        tree: The files of the parent.
        commits: At least one commit.
        before_move: Called when the commits are written, and the branch is not moved yet.

    Raises:
        Refusal: If git cannot write them, somebody else has moved the branch meanwhile, or a file
            has a name that no other machine could fetch.
    """
    for path in (path for each in commits for path, data in each.files.items() if data is not None):
        if not is_ours(path):
            raise Refusal(
                Code.INVALID_FILENAME,
                f"git keeps no file called {path!r}; nothing was changed",
                path=path,
            )
    stream = b"".join(_streamed(parent, tree, commits))
    how = ("--quiet", "--force", "--done", "--date-format=raw")
    result = repository.run("fast-import", *how, given=stream, adds_objects=True)
    made = result.output.decode("ascii", "replace").strip()
    # git may fail after it has written them: then the reference decides.
    if not made or (result.status and repository.commit_of(NEXT) != made):
        raise failure("fast-import", result)
    before_move()
    move(repository, branch, parent, made)
    return made


def move(repository: Repository, branch: str, old: str, new: str) -> None:
    """Move a branch from the commit `old`, or from none (empty), to the commit `new`.

    Raises:
        Refusal: If git cannot move it, or somebody else has moved it meanwhile.
    """
    result = repository.run("update-ref", branch, new, old or _NONE)
    # git may fail after it has moved the branch: then the branch decides.
    if result.status and not repository.is_in(new, repository.commit_of(branch)):
        raise failure("update-ref", result)


def _streamed(parent: str, tree: Tree, commits: Sequence[Commit]) -> Iterator[bytes]:
    now = int(time.time())
    for number, commit in enumerate(commits):
        yield f"commit {NEXT}\n".encode()
        if number == len(commits) - 1:
            yield b"mark :1\n"
        yield _person("author", commit.author, now) + _person("committer", OURS, now)
        yield _data(_subject(commit.message).encode("utf-8", "replace"))
        if not number and parent:
            yield f"from {parent}\n".encode()
        if commit.merges:
            yield f"merge {commit.merges}\n".encode()
        # Removals come first: a folder may take the place of a file.
        for path in (path for path, data in commit.files.items() if data is None):
            yield b"D " + quoted(path) + b"\n"
        for path, data in commit.files.items():
            if data is not None:
                yield f"M {tree.mode_of(path)} inline ".encode() + quoted(path) + b"\n"
                yield _data(data)
        for path, (mode, name) in commit.taken.items():
            yield f"M {mode} {name} ".encode() + quoted(path) + b"\n"
    yield b"get-mark :1\ndone\n"  # the last commit's id is the only output


def _person(role: str, who: str, now: int) -> bytes:
    return f"{role} {who} {now} +0000\n".encode("utf-8", "replace")


def _data(data: bytes) -> bytes:
    return b"data %d\n%b\n" % (len(data), data)


def _subject(message: str) -> str:
    first, _, rest = message.partition("\n")
    first = " ".join(first.split())[:_LONGEST_SUBJECT_CHARS]
    return f"{first}\n\n{rest.strip()}\n" if rest.strip() else f"{first}\n"


def quoted(path: str) -> bytes:
    """Return a path, with any characters, as `git fast-import` reads it."""
    escaped = b"".join(
        bytes([byte]) if 32 <= byte < 127 and byte not in b'"\\' else b"\\%03o" % byte
        for byte in os.fsencode(path)
    )
    return b'"' + escaped + b'"'
