"""Divides files into portions for children. Between two portions the time of a batch may be up."""

from collections.abc import Sequence

from vector_index_mcp.files import read
from vector_index_mcp.indexing.preparing.file import Task

FILES_PER_PORTION = 12
"""Of a crew's portions: some 30 ms of work, so that all children finish together."""
# Measured: 1 µs a byte to cut code, 2 to 6 µs to convert HTML. So a portion takes half a second.
_BYTES_PER_PORTION = 500_000
_BYTES_OF_A_CONVERTED_ONE = 4
# A file of this size may take seconds to convert.
_LARGE_BYTES = 1_000_000


def large(tasks: Sequence[Task]) -> set[str]:
    """Return the keys of the large files. Blocks."""
    return {task.key for task in tasks if task.size >= _LARGE_BYTES}


def portions(tasks: Sequence[Task], most_files: int) -> list[list[Task]]:
    """Return the files in portions that are taken off the end of the list. Blocks."""
    found: list[list[Task]] = []
    weight = 0
    for task in tasks:
        added = task.size
        if read.is_converted(task.folder, task.key):
            added *= _BYTES_OF_A_CONVERTED_ONE
        if not found or len(found[-1]) == most_files or weight + added > _BYTES_PER_PORTION:
            found.append([])
            weight = 0
        found[-1].append(task)
        weight += added
    return found[::-1]
