"""A head start: the first files of a folder without an index, prepared while we import the rest.

A service imports MCP and LanceDB for a second before it can index. Meanwhile a child walks through
the folder and prepares what it finds first. This module imports nothing heavy.
"""

import pickle
import subprocess
from typing import TYPE_CHECKING

from vector_index_mcp.files.folder import Folder
from vector_index_mcp.processes import children

if TYPE_CHECKING:
    from vector_index_mcp.indexing.preparing.file import Prepared

_PATIENCE_SECONDS = 2.0  # for the file that the child has in hand; more than that, it hangs
_COMMAND = children.command("vector_index_mcp.indexing.preparing.head_start_main")


class HeadStart:
    """A child at work on the first files of a folder."""

    def __init__(self, folder: Folder, chunk_max_chars: int) -> None:
        """Start it.

        Args:
            folder: The first one of an index that is still to be made.
            chunk_max_chars: That of the recipe.

        Raises:
            OSError: If there can be no process.
        """
        process = subprocess.Popen(_COMMAND, **children.APART)
        self._process: subprocess.Popen[bytes] | None = process
        assert process.stdin is not None
        process.stdin.write(pickle.dumps((folder, chunk_max_chars)))
        process.stdin.flush()

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
