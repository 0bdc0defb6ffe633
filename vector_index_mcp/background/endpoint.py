"""The endpoint of a service: its socket, its lock, its record and its log.

There is one service for each tool set and place (a folder). These files lie in a private folder of
the user. Their names are a hash of the place's resolved path, so all paths of one place lead to the
same service. Imports the standard library only, since the front end starts with this.
"""

import contextlib
import hashlib
import json
import os
import secrets
import shlex
import shutil
import socket
import stat
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vector_index_mcp.background.births import birth_of
from vector_index_mcp.errors import ProjectError

FOLDER_VARIABLE = "VECTOR_INDEX_RUNTIME_DIR"
_HASH_CHARS = 16
_LEAST_BYTES = 1_000_000  # for the socket, record and log of a service
HAS_UNIX_SOCKETS = hasattr(socket, "AF_UNIX")
_LARGEST_RECORD_BYTES = 100_000
_CONNECT_SECONDS = 2.0
_LONGEST_ADDRESS_BYTES = 103  # of a socket on macOS; Linux allows 107
# The hash for this set contains the place alone, as in versions that had no other set.
_FIRST_SET = "codebase"
_SHORT_FOLDER = "/tmp"  # for a private folder with a short path
ENDED = "ended"
"""The key in a record with the error that ended the service."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """The files by which one service is found."""

    folder: Path
    name: str
    tool_set: str
    """The tool set that the service serves."""
    place: str
    """The place that it serves: an absolute resolved path."""

    @property
    def stop_command(self) -> str:
        """The command that ends the service."""
        return f"vector-index-mcp stop {shlex.quote(self.place)}"

    @property
    def socket_path(self) -> Path:
        """The Unix domain socket; it does not exist on systems without such sockets."""
        return self.folder / f"{self.name}.sock"

    @property
    def lock(self) -> Path:
        """The lock that the service holds; the system releases it even after SIGKILL."""
        return self.folder / f"{self.name}.lock"

    @property
    def record(self) -> Path:
        """The service's record: tool set, place, pid, version, and how to reach it."""
        return self.folder / f"{self.name}.json"

    @property
    def log(self) -> Path:
        """The service's log."""
        return self.folder / f"{self.name}.log"

    def make_folder(self) -> None:
        """Make the folder again if it is gone: a front end may outlive it.

        Raises:
            ProjectError: If it cannot be made, or is not private.
        """
        _make_private(self.folder)

    @property
    def lack_of_space(self) -> str:
        """A sentence if the folder's disk has no room for a service; otherwise empty."""
        try:
            if shutil.disk_usage(self.folder).free >= _LEAST_BYTES:
                return ""
        except FileNotFoundError:  # a view may outlive the folder, which a service makes again
            return ""
        return (
            f"{self.folder}: no space left for a service; free some space there, or set "
            f"{FOLDER_VARIABLE}"
        )

    def connect(self) -> socket.socket:
        """Connect to the service.

        Raises:
            OSError: If no service runs, or it does not listen.
        """
        if HAS_UNIX_SOCKETS:
            with short(self.socket_path) as path:
                return _connection(socket.AF_UNIX, str(path))
        return _connection(socket.AF_INET, ("127.0.0.1", self.read_record().get("port", 0)))

    def read_record(self) -> dict[str, Any]:
        """The content of the record; empty if there is none, or it cannot be read."""
        try:
            descriptor = os.open(self.record, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
            with open(descriptor, "rb") as file:  # noqa: PTH123 - a pipe is not waited for
                record = json.loads(file.read(_LARGEST_RECORD_BYTES))
        except (OSError, ValueError, RecursionError):
            return {}
        return record if isinstance(record, dict) else {}

    def make_sound(self) -> None:
        """Before a start: remove a pipe or the like that lies in place of the log.

        Raises:
            OSError: If it cannot be removed.
        """
        if os.path.lexists(self.log) and not (self.log.is_file() or self.log.is_symlink()):
            self.log.unlink()

    def write_record(self, record: dict[str, Any]) -> None:
        """Replace the record atomically; only the user can read it."""
        part = self.record.with_suffix(f".{os.getpid()}")
        descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        try:
            with open(descriptor, "w", encoding="utf-8") as file:  # noqa: PTH123
                json.dump(record, file)
            part.replace(self.record)
        except OSError as error:
            part.unlink()
            error.filename = error.filename or str(self.record)  # a write does not say where
            raise

    def is_lost(self, secret: str) -> bool:
        """Return whether front ends find no more the service that wrote `secret` in the record.

        The runtime folder may be deleted under a service, and another service be started in a new
        one. What cannot be looked at for now is not lost.
        """
        if record := self.read_record():
            return record.get("secret") != secret
        try:
            self.record.stat()
        except OSError as error:
            return isinstance(error, (FileNotFoundError, NotADirectoryError))
        return False

    @property
    def keeper(self) -> int | None:
        """The pid of a service that runs, whether it answers or not; None if none runs.

        It is the process that wrote the record, and never a later process with the same pid.
        """
        record = self.read_record()
        pid, birth = record.get("pid"), record.get("birth")
        is_there = isinstance(pid, int) and bool(birth) and birth_of(pid) == birth
        return pid if is_there else None

    def forget(self, reason: str = "") -> None:
        """Remove the socket and record of a service that has ended.

        The lock's file stays, since another process may be waiting for it.

        Args:
            reason: The error that ended the service, for its front ends; empty for none.
        """
        with contextlib.suppress(OSError):
            self.socket_path.unlink()
        with contextlib.suppress(OSError):
            if reason:  # replaced at once: a missing record means that the service was meant to end
                self.write_record({ENDED: reason})
            else:
                self.record.unlink()


def endpoint_of(tool_set: str, place: Path) -> Endpoint:
    """The endpoint of the service of `tool_set` for `place`, an absolute resolved path.

    Raises:
        ProjectError: If the user's runtime folder cannot be made, or is not private.
    """
    # Windows ignores the case of paths.
    named = os.fsencode(os.path.normcase(place))
    if tool_set != _FIRST_SET:
        named = f"{tool_set}:".encode() + named
    name = hashlib.sha256(named).hexdigest()[:_HASH_CHARS]
    return Endpoint(_runtime_folder(), name, tool_set, str(place))


def all_endpoints() -> Iterator[Endpoint]:
    """The endpoints of all services that run, or ended without removing their record."""
    folder = _runtime_folder()
    for path in sorted(folder.glob("*.json")):
        record = Endpoint(folder, path.stem, "", "").read_record()
        tool_set, place = record.get("set", _FIRST_SET), record.get("project", "")
        yield Endpoint(folder, path.stem, str(tool_set), str(place))


@contextlib.contextmanager
def short(path: Path) -> Iterator[Path]:
    """A path to the socket at `path` that is short enough for a socket's address.

    If `path` is too long, the result leads through a link in a temporary private folder, which is
    removed when the context ends. The socket itself stays where it is.
    """
    if len(os.fsencode(path)) <= _LONGEST_ADDRESS_BYTES:
        yield path
        return
    folder = _SHORT_FOLDER if os.path.isdir(_SHORT_FOLDER) else None
    with tempfile.TemporaryDirectory(prefix="vi-", dir=folder) as made:
        link = Path(made) / "r"
        link.symlink_to(path.parent.absolute())
        yield link / path.name


def _connection(family: int, address: Any) -> socket.socket:
    connection = socket.socket(family)
    connection.settimeout(_CONNECT_SECONDS)
    try:
        connection.connect(address)
    except OSError:
        connection.close()
        raise
    connection.settimeout(None)
    return connection


def _is_private(status: os.stat_result) -> bool:
    return status.st_uid == os.getuid() and not status.st_mode & 0o077


def new_secret() -> str:
    """A secret that front end and service prove to know, for systems without rights of sockets."""
    return secrets.token_urlsafe(32)


def _temporary_folder() -> str:
    try:
        return tempfile.gettempdir()
    except OSError as error:
        raise ProjectError(
            f"no temporary folder can be written; set TMPDIR, or {FOLDER_VARIABLE}, to a folder "
            "of your own"
        ) from error


def _runtime_folder() -> Path:
    """The user's folder for sockets and locks; it is made if it does not exist.

    Raises:
        ProjectError: If it cannot be made, others can read it, or the setting is relative.
    """
    setting = os.environ.get(FOLDER_VARIABLE, "")
    configured = os.path.expanduser(setting)  # noqa: PTH111 - a home may be unknown
    session = os.environ.get("XDG_RUNTIME_DIR", "")
    if configured:
        folder = Path(configured)
        if not folder.is_absolute():  # each folder that a front end starts in would have its own
            raise ProjectError(
                f"{FOLDER_VARIABLE} is {configured}; set it to an absolute path, so that all "
                "front ends meet there"
            )
    elif Path(session).is_absolute() and os.path.isdir(session):
        folder = Path(session) / "vector-index-mcp"
    else:
        owner = os.getuid() if hasattr(os, "getuid") else os.environ.get("USERNAME", "user")
        folder = Path(_temporary_folder()) / f"vector-index-mcp-{owner}"
    _make_private(folder)
    return folder


def _make_private(folder: Path) -> None:
    """Make a folder that only the user can read, if it does not exist.

    Raises:
        ProjectError: If it cannot be made, or others can read it.
    """
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = folder.lstat()
    except OSError as error:
        raise ProjectError(
            f"the folder {folder} cannot be made ({error.strerror}); "
            f"set {FOLDER_VARIABLE} to a folder of your own"
        ) from error
    # In a folder that everybody may write to, another user may have made this one first.
    if not stat.S_ISDIR(status.st_mode) or (os.name == "posix" and not _is_private(status)):
        is_ours = stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid()
        mend = f"run `chmod 700 {shlex.quote(str(folder))}`" if is_ours else "remove it"
        raise ProjectError(
            f"{folder} is not a private folder of yours; "
            f"{mend}, or set {FOLDER_VARIABLE} to a folder of your own (mode 700)"
        )
