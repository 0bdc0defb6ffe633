"""The origin of an index that was fetched, in a file beside its tables.

The file also notes whether the vectors were compared with those of this machine's model, so that
the next start does that if the service was killed before.
"""

import contextlib
import json
import os
import secrets
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Self

from vector_index_mcp.engine.store.reach import is_local

ORIGIN = "index.origin"
"""The name of the file in the folder of an index."""
_LARGEST_BYTES = 10_000


@dataclass(slots=True)
class Origin:
    """The snapshot from which an index was fetched."""

    of: str
    """The branch and the commit, as a message names them."""
    is_proved: bool = False
    """Whether vectors were compared with those of this machine's model; wrong ones were dropped."""
    is_kept: bool = False
    """Whether the embedding cache has the vectors, so that they need not be made here."""

    @property
    def description(self) -> str:
        """The origin as a phrase for the status, with what is still to be done."""
        words = f"fetched from {self.of}"
        return words if self.is_proved else f"{words}; its vectors are not compared yet"

    def write(self, folder: Path) -> None:
        """Write the file in the folder of an index.

        Raises:
            OSError: If it cannot be written.
        """
        part = folder / f"{ORIGIN}.{secrets.token_hex(4)}"
        part.write_text(json.dumps(asdict(self)), encoding="utf-8")
        part.replace(folder / ORIGIN)

    @classmethod
    def read(cls, uri: str) -> Self | None:
        """Read the file in the folder of an index; None if the index was made here."""
        flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
        if not is_local(uri):
            return None
        try:
            descriptor = os.open(Path(uri, ORIGIN), flags)
            with open(descriptor, "rb") as file:  # noqa: PTH123 - from a descriptor
                fields = json.loads(file.read(_LARGEST_BYTES))
            marks = (fields[name] is True for name in ("is_proved", "is_kept"))
            return cls(str(fields["of"]), *marks)
        except (OSError, ValueError, TypeError, KeyError, RecursionError):
            return None


def forget(uri: str) -> None:
    """Remove the file, because the index is made here from now on."""
    if is_local(uri):
        with contextlib.suppress(OSError):
            Path(uri, ORIGIN).unlink()
