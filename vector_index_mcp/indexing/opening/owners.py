"""The owner's name of an index that does not lie on this machine.

A path would not do, since it means nothing on other machines. So each project gets a random name,
which the user's state folder keeps with its path. Another checkout, on this machine or another one,
is another owner. A project that was moved keeps its name: nothing is left at its old path. If
several machines are meant to keep one index, their users configure the same name for all.
"""

import contextlib
import hashlib
import json
import os
import secrets
import socket
from collections.abc import Iterator
from pathlib import Path

from vector_index_mcp.errors import StorageError
from vector_index_mcp.indexing.opening.locks import name_of, unusable_state
from vector_index_mcp.indexing.opening.marks import text_in

OWNERS = "owners"
INSTALLATION = "installation"
_BOOT = Path("/proc/sys/kernel/random/boot_id")
_LONGEST = 100_000  # a path has 4,096 bytes, of which JSON makes 6 characters each


class Owners:
    """The names under which this user's projects own indexes elsewhere."""

    def __init__(self, state_folder: Path) -> None:
        self._folder = state_folder / OWNERS
        self._installation = state_folder / INSTALLATION

    def name_of(self, project: str) -> str:
        """The name of a project; a new one is made and stored if it has none.

        Raises:
            StorageError: If the name cannot be stored or read.
        """
        text = _made_once(
            self._folder / f"{name_of(project)}.json",
            json.dumps({"path": project, "owner": secrets.token_hex(8)}),
        )
        known = _owner_in(text)
        if known is None or known[0] != project:
            raise StorageError(f"a file in {self._folder} is damaged; delete that folder")
        return known[1]

    def is_moved(self, owner: str) -> bool:
        """Whether a project with this name was on this machine, and its folder is gone now."""
        return any(name == owner and not os.path.isdir(path) for path, name in self._all())

    def _all(self) -> Iterator[tuple[str, str]]:
        for path in sorted(self._folder.glob("*.json")):
            with contextlib.suppress(OSError):
                if (known := _owner_in(text_in(path, _LONGEST))) is not None:
                    yield known

    @property
    def place(self) -> str:
        """A value that is the same for all processes whose locks exclude each other.

        The state folder alone does not suffice: another machine may have a copy of it. So the
        value also depends on the host's name and on this boot of the system.

        Raises:
            StorageError: If the state folder cannot be written or read.
        """
        installation = _made_once(self._installation, secrets.token_hex(16))
        boot = ""
        with contextlib.suppress(OSError):
            boot = _BOOT.read_text(encoding="ascii")
        known = "\0".join((installation, socket.gethostname(), boot))
        return hashlib.sha256(known.encode("utf-8", "replace")).hexdigest()[:16]


def _made_once(path: Path, text: str) -> str:
    """Read the file at `path`; if it does not exist, write `text` into it first."""
    part = path.with_name(f"{path.name}.{secrets.token_hex(4)}")
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not path.exists():
            part.write_text(text, encoding="utf-8")
            try:
                os.link(part, path)
            except FileExistsError:  # another process has just written it
                pass
            except OSError:  # no hard links here; of two first processes at once, the last stays
                part.replace(path)
            part.unlink(missing_ok=True)
        return text_in(path, _LONGEST)
    except OSError as error:
        raise unusable_state(path.parent, "written", error) from error


def _owner_in(text: str) -> tuple[str, str] | None:
    """The path and the name that a file holds; None if it is damaged."""
    try:
        match json.loads(text):
            case {"path": str(path), "owner": str(owner)} if owner:
                return path, owner
    except (ValueError, RecursionError):
        pass
    return None
