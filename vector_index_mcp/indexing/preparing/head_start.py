"""A head start: the first files of a project without an index, prepared while we import the rest.

A service imports MCP and LanceDB for a second before it can index. Meanwhile a child walks through
the project and prepares what it finds first. This module imports nothing heavy.
"""

import pickle
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from vector_index_mcp.processes import children

if TYPE_CHECKING:
    from vector_index_mcp.indexing.preparing.file import Prepared

_PATIENCE_SECONDS = 2.0  # for the file that the child has in hand; more than that, it hangs
_COMMAND = children.command("vector_index_mcp.indexing.preparing.head_start_main")


class HeadStart:
    """A child at work on the first files of the project at `root`."""

    def __init__(
        self, root: Path, max_file_bytes: int, chunk_max_chars: int, ignore_patterns: Sequence[str]
    ) -> None:
        """Start it.

        Raises:
            OSError: If there can be no process.
        """
        limits = (str(max_file_bytes), str(chunk_max_chars))
        self._process: subprocess.Popen[bytes] | None = subprocess.Popen(
            [*_COMMAND, str(root), *limits, *ignore_patterns], **children.APART
        )

    def take(self) -> "list[Prepared]":
        """What it has prepared so far; it ends. Blocks until the file in its hands is done.

        Nothing the second time, or if anything is wrong with it: the files are prepared like all
        others then.
        """
        # Popen keeps what its process has said, and whoever made us may keep us.
        process, self._process = self._process, None
        if process is None:
            return []
        try:
            answer, _ = process.communicate(b"\n", timeout=_PATIENCE_SECONDS)
            found: list[Prepared] = pickle.loads(answer)
            return found
        except (OSError, EOFError, pickle.UnpicklingError, subprocess.TimeoutExpired):
            return []
        finally:
            _end(process)

    def end(self) -> None:
        """Let it end, whatever it has."""
        process, self._process = self._process, None
        if process is not None:
            _end(process)


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.communicate()
