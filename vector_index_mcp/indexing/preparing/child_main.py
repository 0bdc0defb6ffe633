"""The child process that prepares files. Run by `child`, by nobody else.

Questions arrive as pickles. Answers leave as pickles too, each behind its length: first that the
child has begun; then, for each file of a question, what became of it; after the last one, how much
memory the child holds. The end of the input, which is also what the child sees when its parent is
killed, ends it at once; where the system can report that end, even in the middle of a file. A file
that takes too much ends it as well.
"""

import os
import pickle
import queue
import sys
import threading
from typing import Any, BinaryIO

from vector_index_mcp.indexing.preparing.file import Question, Task, prepare
from vector_index_mcp.processes import confined, streams
from vector_index_mcp.processes.priority import be_polite

LENGTH_BYTES = 8  # of the number before every answer, big-endian
OUT_OF_MEMORY = 3
"""The exit status of a child that had too little memory for a file."""
POLITE = "polite"
"""The argument of a child that lets everything else come first."""


def main(*arguments: str) -> None:
    """Prepare what is asked for until the input ends."""
    confined.begin()
    if POLITE in arguments:
        be_polite()
    source, sink = map(os.fdopen, streams.claim(), ("rb", "wb"))
    questions: queue.SimpleQueue[Question] = queue.SimpleQueue()
    threading.Thread(target=_read, args=(source, questions), daemon=True).start()

    def send(answer: Any) -> None:
        data = pickle.dumps(answer)
        sink.write(len(data).to_bytes(LENGTH_BYTES) + data)
        sink.flush()

    send(True)
    while True:
        question = questions.get()
        for task in question.tasks:
            confined.allow(question.seconds, _size(task))
            try:
                answer = prepare(question.recipe, task, question.by_lines)
            except MemoryError:  # with so little left, nothing more can be relied on
                os._exit(OUT_OF_MEMORY)
            send(answer)
        confined.allow_all_time()
        send(confined.resident_bytes())


def _size(task: Task) -> int:
    """How much of the file will be read at most, in bytes."""
    try:
        size = os.lstat(task.folder.place_of(task.key)).st_size
    except (OSError, ValueError):
        return 0
    return size if size <= task.folder.reading.max_file_bytes else 0


def _read(source: BinaryIO, questions: "queue.SimpleQueue[Question]") -> None:
    while True:
        try:
            questions.put(pickle.load(source))
        except (EOFError, pickle.UnpicklingError):  # also in the middle of a question
            os._exit(0)  # not sys.exit: the main thread may be deep inside a parser
        except (AttributeError, ImportError):  # the package was replaced under the service
            os._exit(1)


if __name__ == "__main__":
    main(*sys.argv[1:])
