"""The child process that prepares a project's first files. Run by `head_start`, by nobody else.

It works until it is asked for what it has, by a byte, and answers with a pickle. The end of its
input, which is also what it sees when the parent is killed, ends it at once; and so does a file
that takes its parser long, which is then prepared like all others, by somebody more patient.
"""

import os
import pickle
import sys
import threading
import time
from pathlib import Path

from vector_index_mcp.errors import ProjectError
from vector_index_mcp.files.ignore import Ignore
from vector_index_mcp.files.scan import compare, walk
from vector_index_mcp.indexing.preparing.file import Prepared, Recipe, prepare
from vector_index_mcp.processes import confined, streams
from vector_index_mcp.processes.priority import be_polite

# Several times what it takes to be asked. If nobody asks, what it holds stays small: it prepares
# a few megabytes a second.
_MOST_SECONDS = 5.0
_SECONDS = 1.0  # of processor time, for a file: it would keep the service waiting


def main(root: Path, recipe: Recipe, ignore_patterns: tuple[str, ...]) -> None:
    """Prepare files in the order of a walk until somebody wants them."""
    confined.begin()
    be_polite()
    deadline = time.monotonic() + _MOST_SECONDS
    source, sink = streams.claim()
    wanted = threading.Event()
    threading.Thread(target=_listen, args=(source, wanted), daemon=True).start()
    prepared: list[Prepared] = []
    try:
        files = compare(walk(root, Ignore(root, ignore_patterns)), {}).dirty
    except ProjectError:  # it is gone; whoever started us finds that out as well
        files = []
    for key in files:
        if wanted.is_set() or time.monotonic() > deadline:
            break
        confined.allow(_SECONDS, 0)
        prepared.append(prepare(root, recipe, (key, None)))
    confined.allow_all_time()
    with os.fdopen(sink, "wb") as answer:
        pickle.dump(prepared, answer)


def _listen(source: int, wanted: threading.Event) -> None:
    if not os.read(source, 1):
        os._exit(0)  # not sys.exit: the main thread may be deep inside a parser
    wanted.set()


if __name__ == "__main__":
    _, folder, max_file_bytes, chunk_max_chars, *patterns = sys.argv
    main(Path(folder), Recipe(int(max_file_bytes), int(chunk_max_chars)), tuple(patterns))
