"""Hands a link to a browser in a file that only the user can read.

Every user of a machine sees the arguments of every process, so somebody else could use a link in
the browser's arguments first. The browser gets the path of a file instead. The page in it sends us
the link's token in the body of a request, so that no history and no log keeps it.
"""

import os
import re
import secrets
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

_PREFIX = "vector-index-mcp-"
_RANDOM_BYTES = 8  # they need not be secret, only different for every file
_SNAPS = Path("/var/lib/snapd")
_PAGE = """\
<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="referrer" content="no-referrer">
<title>Vector index</title>
<form method="post" action="{address}">
<input type="hidden" name="token" value="{token}">
<button>Open the page</button>
</form>
<script>document.forms[0].submit()</script>
"""


class Handover:
    """The files of one project's service."""

    def __init__(self, name: str, folders: Iterable[Path]) -> None:
        """Prepare; nothing is written yet.

        Args:
            name: Of the service; no other one has it.
            folders: Where the files may lie; the first one is used.
        """
        self._name = f"{_PREFIX}{name}-"
        self._folders = list(folders)

    def write(self, address: str, token: str) -> Path:
        """A file that takes a browser to `address` with the token.

        Raises:
            OSError: If it cannot be written.
        """
        path = self._folders[0] / f"{self._name}{secrets.token_hex(_RANDOM_BYTES)}.html"
        import html  # has a large table of characters, and few services need it

        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
        with open(os.open(path, flags, 0o600), "w", encoding="utf-8") as file:  # noqa: PTH123
            file.write(_PAGE.format(address=html.escape(address), token=html.escape(token)))
        return path

    def remove_left(self) -> None:
        """Remove what a service of this project that was killed has left."""
        ours = re.compile(re.escape(self._name) + r"[0-9a-f]+\.html")
        for folder in self._folders:
            with suppress(OSError):
                for path in [*folder.iterdir()]:
                    if ours.fullmatch(path.name):
                        remove(path)


def remove(path: Path) -> None:
    """Remove a file that `write` made; it may be gone already."""
    with suppress(OSError):
        path.unlink()


def folders_for(runtime: Path, *, has_snaps: bool | None = None) -> list[Path]:
    """Where such files may lie, the best first.

    Args:
        runtime: The service's own folder.
        has_snaps: Whether browsers may be snaps, as Ubuntu's are: those read files in the home
            folder and its folders without a dot, and no others. None to find out.
    """
    if has_snaps if has_snaps is not None else os.path.isdir(_SNAPS):
        with suppress(RuntimeError):  # nobody knows the home
            return [Path.home(), runtime]
    return [runtime]
