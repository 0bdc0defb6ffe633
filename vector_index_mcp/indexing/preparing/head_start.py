"""A head start: prepares the first files of a folder without an index during the imports.

A service imports MCP and LanceDB for a second before it can index. Meanwhile a child walks through
the folder and prepares the files that it finds first. This module imports nothing heavy.
"""

import os
import pickle
import select
import subprocess
from typing import TYPE_CHECKING

from vector_index_mcp import __version__
from vector_index_mcp.files.folder import Folder
from vector_index_mcp.processes import children

if TYPE_CHECKING:
    from vector_index_mcp.indexing.preparing.file import Prepared

COUNT_BYTES = 8  # of the number of files, which the child sends first

_PATIENCE_SECONDS = 2.0  # for the child to finish its current file; after that, it hangs
_FILES_FOR_ONE = 200  # so many files the child prepares during the imports, if it has a processor
_COMMAND = children.command("vector_index_mcp.indexing.preparing.head_start_main")


class HeadStart:
    """A child that prepares the first files of a folder."""

    def __init__(self, folder: Folder, chunk_max_chars: int) -> None:
        """Start the child.

        Args:
            folder: The first folder of an index that does not exist yet.
            chunk_max_chars: As in the recipe of the index.

        Raises:
            OSError: If the system cannot start a process, or it ends at once.
        """
        process = subprocess.Popen(_COMMAND, **children.APART)
        assert process.stdin is not None
        try:
            process.stdin.write(pickle.dumps((folder, chunk_max_chars)))
            process.stdin.flush()
        except OSError:
            _end(process)
            raise
        self._process: subprocess.Popen[bytes] | None = process
        self._file_count: int | None = None

    @property
    def is_enough(self) -> bool:
        """Whether there are so few files that this child suffices. Returns at once.

        False while the number of files is unknown.
        """
        if self._process is not None and self._file_count is None:
            self._file_count = _count_said(self._process)
        return self._file_count is not None and self._file_count <= _FILES_FOR_ONE

    def take(self) -> "list[Prepared]":
        """End the child, and return what it has prepared. Blocks until its current file is done.

        Empty at the second call, or if anything went wrong; the files are then prepared like all
        others.
        """
        # Drop the Popen object, which keeps all output, because the caller may keep this object.
        process, self._process = self._process, None
        if process is None:
            return []
        try:
            answer, _ = process.communicate(b"\n", timeout=_PATIENCE_SECONDS)
            if self._file_count is None:
                answer = answer[COUNT_BYTES:]
            version, found = pickle.loads(answer)
            return found if version == __version__ else []
        except (OSError, pickle.UnpicklingError, *children.UNREADABLE, subprocess.TimeoutExpired):
            return []
        finally:
            _end(process)

    def end(self) -> None:
        """End the child, and drop what it has prepared."""
        process, self._process = self._process, None
        if process is not None:
            _end(process)


def _count_said(process: subprocess.Popen[bytes]) -> int | None:
    """The number of files; None if the child has not sent it yet."""
    assert process.stdout is not None
    try:
        if not select.select([process.stdout], [], [], 0)[0]:
            return None
        return int.from_bytes(os.read(process.stdout.fileno(), COUNT_BYTES))
    except OSError:  # on Windows, `select` does not support pipes
        return None


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.communicate()
