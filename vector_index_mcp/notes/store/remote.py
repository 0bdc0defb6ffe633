"""The remote `origin` of a store: fetched from and pushed to, with the user's own credentials.

A store may come from somebody else, and with it the address of its remote. Only transports that
run nothing are followed; a remote on this machine is asked without its hooks and settings.
"""

import os
import re
import threading
from dataclasses import dataclass
from pathlib import Path

from vector_index_mcp.files.secrets import masked
from vector_index_mcp.notes.refusal import Code, Refusal
from vector_index_mcp.notes.store.disk import GIT, Disk
from vector_index_mcp.notes.store.repository import Repository, Said
from vector_index_mcp.processes import git

_TRANSPORTS = frozenset({"http", "https", "ssh", "git", "file"})
_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://(.+)")
_BY_SSH = re.compile(r"(?:[^@/:\s]+@)?[A-Za-z0-9_.-]+:(?!:).+")
_USER_IN_URL = re.compile(r"(?<=://)[^/@\s]+@")
# What the other end, run by us for a folder of this machine, must not run.
_AT_THE_OTHER_END = "git -c core.hooksPath=/dev/null -c core.alternateRefsCommand=true {}"
_SETTINGS = (
    "-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false",
    "-c", "transfer.fsckObjects=true", "-c", "gc.auto=0", "-c", "maintenance.auto=false",
)  # fmt: skip
_SECONDS = 120.0
_MOST_SAID_CHARS = 300
# What git says when somebody was faster, or pushes at the same moment.
_REJECTED = (
    "[rejected]", "fetch first", "cannot lock ref", "failed to update ref", "already exists",
    "incorrect old value",
)  # fmt: skip
_TELLING = ("! [", "fatal:", "error:", "remote:")
_NOTHING_THERE = "couldn't find remote ref"


class RejectedError(Exception):
    """Raised when the remote has commits that we have not."""


@dataclass(frozen=True, slots=True)
class Address:
    """Where a remote is."""

    url: str
    is_local: bool


class Remote:
    """The remote of one store. Its methods block, up to minutes."""

    def __init__(self, disk: Disk, repository: Repository) -> None:
        self._disk = disk
        self._repository = repository
        self.stopping = threading.Event()
        """Once this is set, what is under way is ended."""

    def address(self) -> Address | None:
        """Where it is, as the store's settings say; None if there is none.

        Raises:
            Refusal: If the address is none that we would follow.
        """
        data = self._disk.read(f"{GIT}/config")
        if not data or b"remote" not in data:
            return None
        said = self._repository.run(
            "config", "--file", "-", "--no-includes", "--get", "remote.origin.url", given=data
        )
        url = said.output.decode("utf-8", "replace").removesuffix("\n")
        return self._checked(url) if not said.status and url else None

    def _checked(self, url: str) -> Address:
        found = _URL.fullmatch(url)
        if any(ord(character) < 32 for character in url) or url.startswith("-"):
            raise Refusal(Code.GIT_ERROR, "the address of the remote origin is none of git's")
        scheme = found[1].lower() if found is not None else ""
        if found is None and "::" in url.partition("/")[0]:
            raise Refusal(Code.GIT_ERROR, "the remote origin names a program, which is not run")
        if scheme and scheme not in _TRANSPORTS:
            raise Refusal(
                Code.GIT_ERROR,
                f"the remote origin is reached by {scheme}, which is not followed; use https, ssh "
                "or a folder",
            )
        if scheme not in {"", "file"} or (not scheme and _BY_SSH.fullmatch(url)):
            return Address(url, is_local=False)
        return self._local(Path(found[2] if found is not None else url).expanduser())

    def _local(self, path: Path) -> Address:
        place = Path(os.path.realpath(self._disk.root / path))
        if place.is_relative_to(self._disk.root):
            raise Refusal(
                Code.GIT_ERROR, "the remote origin lies in the store itself; it is not followed"
            )
        return Address(str(place), is_local=True)

    # -- git -------------------------------------------------------------------------------

    def fetch(self, address: Address, branch: str) -> None:
        """Get the commits of a branch, as `refs/remotes/origin/…`.

        Raises:
            Refusal: If the remote cannot be reached, or does not answer.
        """
        end = self._other_end(address, "--upload-pack={}", "upload-pack")
        said = self._run(
            *_SETTINGS, "fetch", "--quiet", "--no-tags", "--no-recurse-submodules",
            "--no-write-fetch-head", *end, "--", address.url, f"+{branch}:{tracking(branch)}",
        )  # fmt: skip
        if said.status and _NOTHING_THERE not in said.errors:
            raise self._failure(said, address)
        if said.status:  # it has no such branch, or not any more
            self._repository.done("update-ref", "-d", tracking(branch))

    def push(self, address: Address, commit: str, branch: str) -> None:
        """Give the remote the commits up to `commit`, for a branch.

        Raises:
            Refusal: If the remote cannot be reached, or refuses.
            RejectedError: If it has commits that we have not.
        """
        end = self._other_end(address, "--receive-pack={}", "receive-pack")
        said = self._run(
            *_SETTINGS, "push", "--quiet", "--no-verify", "--no-recurse-submodules", *end, "--",
            address.url, f"{commit}:{branch}",
        )  # fmt: skip
        if said.status and any(sign in said.errors for sign in _REJECTED):
            raise RejectedError
        if said.status:
            raise self._failure(said, address)
        self._repository.done("update-ref", tracking(branch), commit)

    def _other_end(self, address: Address, option: str, program: str) -> list[str]:
        return [option.format(_AT_THE_OTHER_END.format(program))] if address.is_local else []

    def _run(self, *arguments: str) -> Said:
        environment = {
            **git.environment(),
            "GIT_ALLOW_PROTOCOL": ":".join(sorted(_TRANSPORTS)),
            "SSH_ASKPASS_REQUIRE": "never",
            "GCM_INTERACTIVE": "never",
        }
        return self._repository.run(
            *arguments, environment=environment, seconds=_SECONDS, stopping=self.stopping
        )

    def _failure(self, said: Said, address: Address) -> Refusal:
        return Refusal(Code.GIT_COMMAND_FAILED, without_credentials(said.errors, address.url))


def tracking(branch: str) -> str:
    """The reference that says where a branch of the remote was when we last heard of it."""
    return f"refs/remotes/origin/{branch.removeprefix('refs/heads/')}"


def without_credentials(words: str, url: str) -> str:
    """What git says of a remote, without what only its user should know."""
    lines = [line.strip() for line in words.splitlines() if line.strip()]
    telling = [line for line in lines if line.startswith(_TELLING)] or lines[-1:]
    said = (telling[0] if telling else "git failed").replace(url, "the remote")
    said, _ = masked(_USER_IN_URL.sub("***@", said))
    return said.removeprefix("fatal: ").removeprefix("error: ")[:_MOST_SAID_CHARS]
