"""The child process that prepares files. Only `child` runs it.

Requests arrive as pickles. Each answer is a pickle with its length before it. The first answer is
the child's version, and says that it is ready. For each request, the child then sends one answer
for each file, and after the last one how many bytes of memory it holds.

The child ends at once when its input ends, even in the middle of a file; so it also ends when its
parent is killed. It also ends on a file that takes too much time or memory.
"""

import os
import pickle
import queue
import sys
import threading
from typing import Any, BinaryIO

from vector_index_mcp import __version__
from vector_index_mcp.indexing.preparing.file import Request, prepare
from vector_index_mcp.processes import children, confined, streams
from vector_index_mcp.processes.priority import be_polite

LENGTH_BYTES = 8  # of the length before every answer, a big-endian number
OUT_OF_MEMORY = 3
"""The exit status of a child that had too little memory for a file."""
FOREIGN = 4
"""The exit status of a child that cannot read a request of its parent, another version."""
POLITE = "polite"
"""The argument that has the child run with low priority."""


def main(*arguments: str) -> None:
    """Answer requests until the input ends."""
    confined.begin()
    if POLITE in arguments:
        be_polite()
    source, sink = map(os.fdopen, streams.claim(), ("rb", "wb"))
    requests: queue.SimpleQueue[Request] = queue.SimpleQueue()
    threading.Thread(target=_read, args=(source, requests), daemon=True).start()

    def send(answer: Any) -> None:
        data = pickle.dumps(answer)
        sink.write(len(data).to_bytes(LENGTH_BYTES) + data)
        sink.flush()

    send(__version__)
    while True:
        request = requests.get()
        for task in request.tasks:
            confined.allow(request.seconds, task.size)
            try:
                answer = prepare(request.recipe, task, request.by_lines)
            except MemoryError:  # with so little memory left, nothing works reliably any more
                os._exit(OUT_OF_MEMORY)
            send(answer)
        confined.allow_all_time()
        send(confined.resident_bytes())


def _read(source: BinaryIO, requests: "queue.SimpleQueue[Request]") -> None:
    while True:
        try:
            requests.put(pickle.load(source))
        except (EOFError, pickle.UnpicklingError):  # also in the middle of a request
            os._exit(0)  # not sys.exit: the main thread may be deep inside a parser
        except children.UNREADABLE:
            os._exit(FOREIGN)


if __name__ == "__main__":
    main(*sys.argv[1:])
