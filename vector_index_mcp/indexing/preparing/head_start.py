"""A head start: the first files of a folder without an index, prepared while we import the rest.

A service imports MCP and LanceDB for a second before it can index. Meanwhile a child walks through
the folder and prepares what it finds first. This module imports nothing heavy.
"""

import os
import pickle
import select
import subprocess
from typing import TYPE_CHECKING

from vector_index_mcp.files.folder import Folder
from vector_index_mcp.processes import children

if TYPE_CHECKING:
    from vector_index_mcp.indexing.preparing.file import Prepared

COUNT_BYTES = 8  # with which the child says how many files there are

_PATIENCE_SECONDS = 2.0  # for what the child has in hand; more than that, it hangs
_FILES_FOR_ONE = 200  # what it prepares while we import, if it has a processor
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
        self._file_count: int | None = None

    @property
    def is_enough(self) -> bool:
        """Whether there is so little to prepare that nobody need help. Waits for nothing."""
        if self._process is not None and self._file_count is None:
            self._file_count = _count_said(self._process)
        return self._file_count is not None and self._file_count <= _FILES_FOR_ONE

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
            if self._file_count is None:
                answer = answer[COUNT_BYTES:]
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


def _count_said(process: subprocess.Popen[bytes]) -> int | None:
    """How many files there are, once the child has said it."""
    assert process.stdout is not None
    try:
        if not select.select([process.stdout], [], [], 0)[0]:
            return None
        return int.from_bytes(os.read(process.stdout.fileno(), COUNT_BYTES))
    except OSError:  # Windows looks into no pipe
        return None


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.communicate()
