"""The child process that prepares a project's first files. Only `head_start` runs it.

It sends the number of files, and prepares them until it receives a byte. Then it answers with a
pickle of its version and what it has prepared; if only few files are left, it prepares these first.

It ends at once when its input ends, and so also when its parent is killed. It also ends on a file
that takes its parser long; the crew, which waits longer, then prepares that file like all others.
"""

import os
import pickle
import threading
import time
from contextlib import suppress
from typing import IO, BinaryIO

from vector_index_mcp import __version__
from vector_index_mcp.errors import ProjectError
from vector_index_mcp.files.folder import Folder
from vector_index_mcp.files.ignore import Ignore
from vector_index_mcp.files.scan import compare, walk
from vector_index_mcp.indexing.preparing.file import Prepared, Task, prepare
from vector_index_mcp.indexing.preparing.head_start import COUNT_BYTES
from vector_index_mcp.indexing.preparing.recipe import Recipe
from vector_index_mcp.processes import children, confined, streams
from vector_index_mcp.processes.priority import be_polite

# Usually the service asks after a fraction of this. If nobody asks, the limit keeps the memory
# small: the child prepares a few megabytes a second.
_MOST_SECONDS = 5.0
_SECONDS = 1.0  # limit of processor time for a file, since the service may be waiting for it
# The last files are prepared here, since another child would take as long just to start.
_LAST_FILES = 50
_LAST_SECONDS = 0.5


def main() -> None:
    """Prepare files in the order of a walk until the parent asks for them."""
    confined.begin()
    be_polite()
    source, sink = map(os.fdopen, streams.claim(), ("rb", "wb"))
    try:
        folder, chunk_max_chars = pickle.load(source)
    except (pickle.UnpicklingError, *children.UNREADABLE):  # the parent is gone, or another version
        return
    working = _Working()
    threading.Thread(target=_listen, args=(source, working), daemon=True).start()
    with suppress(BrokenPipeError):  # the service has ended
        _prepare(folder, Recipe(chunk_max_chars), working, sink)
    os._exit(0)  # tidying up takes 0.03 s, and the service waits for our end


def _prepare(folder: Folder, recipe: Recipe, working: "_Working", sink: IO[bytes]) -> None:
    try:
        files = compare(walk(folder, Ignore(folder)), {}).dirty
    except ProjectError:  # the folder is gone; the service will notice and report that itself
        files = []
    sink.write(len(files).to_bytes(COUNT_BYTES))
    sink.flush()
    prepared: list[Prepared] = []
    for key in files:
        if working.ends_before(len(files) - len(prepared)):
            break
        confined.allow(_SECONDS, 0)
        prepared.append(prepare(recipe, Task(folder, key)))
    confined.allow_all_time()
    with sink:
        pickle.dump((__version__, prepared), sink)


class _Working:
    """Decides how long the child goes on."""

    def __init__(self) -> None:
        self._until = time.monotonic() + _MOST_SECONDS
        self._is_asked = False

    def ask(self) -> None:
        """Note that the parent has asked for the results."""
        self._until = min(self._until, time.monotonic() + _LAST_SECONDS)
        self._is_asked = True

    def ends_before(self, left: int) -> bool:
        """Whether to stop before the last `left` files."""
        return time.monotonic() > self._until or (self._is_asked and left > _LAST_FILES)


def _listen(source: BinaryIO, working: _Working) -> None:
    if not source.read(1):
        os._exit(0)  # not sys.exit: the main thread may be deep inside a parser
    working.ask()


if __name__ == "__main__":
    main()
