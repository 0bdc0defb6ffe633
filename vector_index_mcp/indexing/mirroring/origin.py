"""Where an index came from that was fetched: a file beside its tables.

It also says whether the vectors have been compared with those of this machine's model, so that
this is made up for after a kill.
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
    """Which snapshot an index was."""

    of: str
    """The branch and the commit, as a message names them."""
    is_proved: bool = False
    """Whether its vectors are known to be of this machine's model."""
    is_kept: bool = False
    """Whether the embedding cache has them, so that none is ever made here."""

    @property
    def description(self) -> str:
        """Where the index came from, and what is still to be done about that."""
        words = f"fetched from {self.of}"
        return words if self.is_proved else f"{words}; its vectors are not compared yet"

    def write(self, folder: Path) -> None:
        """Note it in the folder of an index.

        Raises:
            OSError: If it cannot be written.
        """
        part = folder / f"{ORIGIN}.{secrets.token_hex(4)}"
        part.write_text(json.dumps(asdict(self)), encoding="utf-8")
        part.replace(folder / ORIGIN)

    @classmethod
    def read(cls, uri: str) -> Self | None:
        """What is noted in the folder of an index; None if it was made here."""
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
    """Note that an index is made here from now on."""
    if is_local(uri):
        with contextlib.suppress(OSError):
            Path(uri, ORIGIN).unlink()
