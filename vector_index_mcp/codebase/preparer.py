"""The child process that prepares files. Run by `preparers`, by nobody else.

Both directions carry pickles, an answer behind its length. The end of the input, which is also what
it sees when the parent is killed, ends it at once, even in the middle of a file.
"""

import os
import pickle
import queue
import sys
import threading
from typing import Any

from vector_index_mcp.codebase.prepare import prepare
from vector_index_mcp.engine.polite import be_polite

LENGTH_BYTES = 8  # of the number before every answer, big-endian


def main() -> None:
    """Prepare what is asked for until the input ends."""
    be_polite()
    sink = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a library prints must not get between the answers
    questions: queue.SimpleQueue[Any] = queue.SimpleQueue()
    threading.Thread(target=_read, args=(questions,), daemon=True).start()
    while True:
        root, recipe, tasks = questions.get()
        answer = pickle.dumps(prepare(root, recipe, tasks))
        sink.write(len(answer).to_bytes(LENGTH_BYTES) + answer)
        sink.flush()


def _read(questions: "queue.SimpleQueue[Any]") -> None:
    while True:
        try:
            questions.put(pickle.load(sys.stdin.buffer))
        except (EOFError, pickle.UnpicklingError):  # also in the middle of a question
            os._exit(0)  # not sys.exit: the main thread may be deep inside a parser


if __name__ == "__main__":
    main()
