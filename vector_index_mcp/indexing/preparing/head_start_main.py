"""The child process that prepares a project's first files. Run by `head_start`, by nobody else.

It works until it is asked for what it has, by a byte, and answers with a pickle. The end of its
input, which is also what it sees when the parent is killed, ends it at once; and so does a file
that takes its parser long, which is then prepared like all others, by somebody more patient.
"""

import os
import pickle
import threading
import time
from typing import BinaryIO

from vector_index_mcp.errors import ProjectError
from vector_index_mcp.files.ignore import Ignore
from vector_index_mcp.files.scan import compare, walk
from vector_index_mcp.indexing.preparing.file import Prepared, Task, prepare
from vector_index_mcp.indexing.preparing.recipe import Recipe
from vector_index_mcp.processes import confined, streams
from vector_index_mcp.processes.priority import be_polite

# Several times what it takes to be asked. If nobody asks, what it holds stays small: it prepares
# a few megabytes a second.
_MOST_SECONDS = 5.0
_SECONDS = 1.0  # of processor time, for a file: it would keep the service waiting


def main() -> None:
    """Prepare files in the order of a walk until somebody wants them."""
    confined.begin()
    be_polite()
    deadline = time.monotonic() + _MOST_SECONDS
    source, sink = map(os.fdopen, streams.claim(), ("rb", "wb"))
    try:
        folder, chunk_max_chars = pickle.load(source)
    except EOFError:  # whoever started us is gone already
        return
    recipe = Recipe(chunk_max_chars)
    wanted = threading.Event()
    threading.Thread(target=_listen, args=(source, wanted), daemon=True).start()
    prepared: list[Prepared] = []
    try:
        files = compare(walk(folder, Ignore(folder)), {}).dirty
    except ProjectError:  # it is gone; whoever started us finds that out as well
        files = []
    for key in files:
        if wanted.is_set() or time.monotonic() > deadline:
            break
        confined.allow(_SECONDS, 0)
        prepared.append(prepare(recipe, Task(folder, key)))
    confined.allow_all_time()
    with sink:
        pickle.dump(prepared, sink)


def _listen(source: BinaryIO, wanted: threading.Event) -> None:
    if not source.read(1):
        os._exit(0)  # not sys.exit: the main thread may be deep inside a parser
    wanted.set()


if __name__ == "__main__":
    main()
