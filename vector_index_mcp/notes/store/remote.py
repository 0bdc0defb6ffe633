"""Fetches from and pushes to the remote `origin` of a store, with the user's own credentials.

A store may come from somebody else, and so may the address of its remote. Only transports that run
no program of the store's choice are used. A remote on this machine is used without its hooks.
"""

import os
import re
import sys
import threading
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote_to_bytes

from vector_index_mcp.files.secrets import masked
from vector_index_mcp.notes.refusal import Code, Refusal
from vector_index_mcp.notes.store.disk import GIT, Disk
from vector_index_mcp.notes.store.program import GitResult
from vector_index_mcp.notes.store.repository import Repository, is_branch
from vector_index_mcp.processes import git

_TRANSPORTS = frozenset({"http", "https", "ssh", "git", "file"})
_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://(.+)")
_HOST = r"(?:[A-Za-z0-9_.-]+|\[(?!-)[^\[\]/\s]+\])"  # in brackets: with colons, as in IPv6
_BY_SSH = re.compile(rf"(?:[^@/:\s]+@)?{_HOST}:(?!:).+")
_ON_A_DRIVE = re.compile(r"[A-Za-z]:")
_USER_IN_URL = re.compile(r"(?<=://)[^/@\s]+@")
# For a remote on this machine, we run the other end too: it must not run hooks or other programs.
_AT_THE_OTHER_END = (
    "git -c core.hooksPath=/dev/null -c core.alternateRefsCommand=true -c core.fsmonitor=false "
    "-c receive.autogc=false -c receive.denyCurrentBranch={} {}"
)
# What it may do if the branch is checked out there. `updateInstead` would run filters.
_DENY, _REFUSE = "receive.denyCurrentBranch", "refuse"
_RUNS_NOTHING = frozenset({"ignore", "warn", "false", _REFUSE})
_SETTINGS = (
    "-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false",
    "-c", "transfer.fsckObjects=true", "-c", "gc.auto=0", "-c", "maintenance.auto=false",
)  # fmt: skip
_SECONDS = 120.0
_MOST_WORDS_CHARS = 300
# What git prints when somebody else has pushed first, or pushes at the same moment.
_REJECTED = (
    "[rejected]", "fetch first", "cannot lock ref", "failed to update ref", "already exists",
    "incorrect old value",
)  # fmt: skip
_CHECKED_OUT = "branch is currently checked out"
_TELLING = ("! [", "fatal:", "error:", "remote:")
_NOTHING_THERE = "couldn't find remote ref"


class RejectedError(Exception):
    """Raised when the remote has commits that the store lacks."""


@dataclass(frozen=True, slots=True)
class Address:
    """The address of a remote."""

    url: str
    is_local: bool


class Remote:
    """The remote of one store. The methods block, for up to minutes."""

    def __init__(self, disk: Disk, repository: Repository) -> None:
        self._disk = disk
        self._repository = repository
        self.stopping = threading.Event()
        """Once this is set, a fetch or push under way is ended."""

    def address(self) -> Address | None:
        """Return the remote's address from the store's git settings; None if there is no remote.

        Of several, as `git remote set-url --add` makes them, git fetches from the first.

        Raises:
            Refusal: If the address is not one that may be used.
        """
        url = self._repository.settings.first_of_own("remote.origin.url")
        return self._checked(url) if url else None

    def _checked(self, url: str) -> Address:
        found = _URL.fullmatch(url)
        if any(ord(character) < 32 for character in url) or url.startswith("-"):
            raise Refusal(
                Code.GIT_ERROR,
                "the address of the remote origin is not valid; correct it with "
                "`git remote set-url origin`",
            )
        scheme = found[1].lower() if found is not None else ""
        is_by_ssh = found is None and _is_by_ssh(url)
        if found is None and not is_by_ssh and "::" in url.partition("/")[0]:
            raise Refusal(
                Code.GIT_ERROR,
                "the address of the remote origin names a program, which is not run; use https, "
                "ssh or a folder",
            )
        if scheme and scheme not in _TRANSPORTS:
            raise Refusal(
                Code.GIT_ERROR,
                f"the address of the remote origin begins with {scheme}://, which is not "
                "supported; use https, ssh or a folder",
            )
        if is_by_ssh or scheme not in {"", "file"}:
            return Address(url, is_local=False)
        try:
            path = Path(_decoded(found[2]) if found is not None else url).expanduser()
        except RuntimeError as error:
            raise Refusal(
                Code.GIT_ERROR,
                "the address of the remote origin begins with ~ and a user whose home folder is "
                "not known; use the folder's whole path",
            ) from error
        return self._local(path)

    def _local(self, path: Path) -> Address:
        place = Path(os.path.realpath(self._disk.root / path))
        if place.is_relative_to(self._disk.root):
            raise Refusal(
                Code.GIT_ERROR,
                "the remote origin lies inside the store itself; use a folder outside the store",
            )
        return Address(str(place), is_local=True)

    # -- git -------------------------------------------------------------------------------

    def fetch(self, address: Address, branch: str) -> None:
        """Fetch the commits of a branch into `refs/remotes/origin/…`.

        Raises:
            Refusal: If the remote cannot be reached, or does not answer.
        """
        end = self._other_end(address, "--upload-pack={}", "upload-pack")
        result = self._run(
            *_SETTINGS, "fetch", "--quiet", "--no-tags", "--no-recurse-submodules",
            "--no-write-fetch-head", *end, "--", address.url, f"+{branch}:{tracking(branch)}",
        )  # fmt: skip
        if result.status and _NOTHING_THERE not in result.errors:
            raise self._failure(result, address)
        if result.status:  # the remote does not have the branch, or no longer has it
            self._repository.done("update-ref", "-d", tracking(branch))

    def branches(self, address: Address) -> list[str]:
        """Return the names of the remote's branches, as `refs/heads/…`.

        Raises:
            Refusal: If the remote cannot be reached, or does not answer.
        """
        end = self._other_end(address, "--upload-pack={}", "upload-pack")
        result = self._run(*_SETTINGS, "ls-remote", "--heads", *end, "--", address.url)
        if result.status:
            raise self._failure(result, address)
        lines = result.output.decode("utf-8", "replace").splitlines()
        return [name for name in (line.partition("\t")[2] for line in lines) if is_branch(name)]

    def push(self, address: Address, commit: str, branch: str) -> None:
        """Push the commits up to `commit` to a branch of the remote.

        Raises:
            Refusal: If the remote cannot be reached, or refuses.
            RejectedError: If the remote has commits that the store lacks.
        """
        end = self._other_end(address, "--receive-pack={}", "receive-pack")
        result = self._run(
            *_SETTINGS, "push", "--quiet", "--no-verify", "--no-recurse-submodules", *end, "--",
            address.url, f"{commit}:{branch}",
        )  # fmt: skip
        if result.status and any(sign in result.errors for sign in _REJECTED):
            raise RejectedError
        if result.status:
            raise self._failure(result, address)
        self._repository.done("update-ref", tracking(branch), commit)

    def _other_end(self, address: Address, option: str, program: str) -> list[str]:
        if not address.is_local:
            return []
        return [option.format(_AT_THE_OTHER_END.format(self._denied(address), program))]

    def _denied(self, address: Address) -> str:
        place = Path(address.url, GIT)
        folder = f"--git-dir={place if os.path.exists(place) else address.url}"
        asked = (folder, "config", "--get", _DENY)
        output = self._repository.run(*asked, environment=git.environment()).output
        said = output.decode("utf-8", "replace").strip()
        return said if said in _RUNS_NOTHING else _REFUSE

    def _run(self, *arguments: str) -> GitResult:
        transports = ":".join(sorted(_TRANSPORTS))
        environment = {**git.environment(), "GIT_ALLOW_PROTOCOL": transports}
        return self._repository.run(
            *arguments,
            environment=environment,
            as_user=True,
            seconds=_SECONDS,
            stopping=self.stopping,
        )

    def _failure(self, result: GitResult, address: Address) -> Refusal:
        words = without_credentials(result.errors, address.url)
        if _CHECKED_OUT in result.errors:
            words = (
                "the remote origin is a repository with files, and a push would change the branch "
                "that is checked out there; use a bare one (`git clone --bare`)"
            )
        if self._repository.lacks(result.errors):
            words = self._repository.lack
        return Refusal(Code.GIT_COMMAND_FAILED, words)


def _is_by_ssh(url: str) -> bool:
    """Return whether git takes an address without a scheme for one of another machine."""
    if sys.platform == "win32" and _ON_A_DRIVE.match(url):
        return False
    return _BY_SSH.fullmatch(url) is not None


def _decoded(path: str) -> str:
    """Return the path in a URL as git reads it, which decodes no NUL."""
    return os.fsdecode(unquote_to_bytes(os.fsencode(path.replace("%00", "%2500"))))


def tracking(branch: str) -> str:
    """Return the remote-tracking reference of a branch: the remote's state at the last contact."""
    return f"refs/remotes/origin/{branch.removeprefix('refs/heads/')}"


def without_credentials(words: str, url: str) -> str:
    """Return git's message about a remote, without the remote's address and credentials."""
    lines = [line.strip() for line in words.splitlines() if line.strip()]
    telling = [line for line in lines if line.startswith(_TELLING)] or lines[-1:]
    message = (telling[0] if telling else "git failed").replace(url, "the remote")
    message, _ = masked(_USER_IN_URL.sub("***@", message))
    return message.removeprefix("fatal: ").removeprefix("error: ")[:_MOST_WORDS_CHARS]
