"""Gives a link to a browser in a file that only the user can read.

Every user of a machine can see the arguments of every process. So another user could use a link in
the browser's arguments first. The browser gets the path of a file instead. The page in the file
sends us the link's token in the body of a request, so that no history or log keeps the token.
"""

import os
import re
import secrets
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

_PREFIX = "vector-index-mcp-"
_RANDOM_BYTES = 8  # the names need not be secret, only different
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
    """Writes and removes such files for one service."""

    def __init__(self, name: str, folders: Iterable[Path]) -> None:
        """Prepare; nothing is written yet.

        Args:
            name: The name of the service, which no other service has.
            folders: The folders that may contain such files; the first is used for new ones.
        """
        self._name = f"{_PREFIX}{name}-"
        self._folders = list(folders)

    def write(self, address: str, token: str) -> Path:
        """Write a file that takes a browser to `address` with the token; returns its path.

        Raises:
            OSError: If the file cannot be written.
        """
        path = self._folders[0] / f"{self._name}{secrets.token_hex(_RANDOM_BYTES)}.html"
        import html  # it loads a large table of characters, and few services need it

        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
        with open(os.open(path, flags, 0o600), "w", encoding="utf-8") as file:  # noqa: PTH123
            file.write(_PAGE.format(address=html.escape(address), token=html.escape(token)))
        return path

    def remove_left(self) -> None:
        """Remove the files that an earlier, killed process of this service has left."""
        ours = re.compile(re.escape(self._name) + r"[0-9a-f]+\.html")
        for folder in self._folders:
            with suppress(OSError):
                for path in [*folder.iterdir()]:
                    if ours.fullmatch(path.name):
                        remove(path)


def remove(path: Path) -> None:
    """Remove a file that `write` made, if it still exists."""
    with suppress(OSError):
        path.unlink()


def folders_for(runtime: Path, *, has_snaps: bool | None = None) -> list[Path]:
    """Return the folders for such files, the best first.

    Args:
        runtime: The service's own folder.
        has_snaps: Whether browsers may be snaps, as on Ubuntu: a snap can only read files in the
            home folder and in its folders whose names do not begin with a dot. None to find out.
    """
    if has_snaps if has_snaps is not None else os.path.isdir(_SNAPS):
        with suppress(RuntimeError):  # the home folder is unknown
            return [Path.home(), runtime]
    return [runtime]
