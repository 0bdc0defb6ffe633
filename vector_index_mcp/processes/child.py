"""Runs a module of this package as a child process: `python -m ... MODULE ARGUMENT...`.

The child ends with its parent, runs with low priority, and uses its standard streams for its
protocol only. It calls the module's `main` with the streams as binary files, a function that
returns unused memory to the system, and the arguments.
"""

import os
import sys
from importlib import import_module

from vector_index_mcp.processes import confined, memory, streams
from vector_index_mcp.processes.priority import be_polite


def main(module: str, *arguments: str) -> None:
    """Run `module`."""
    confined.end_with_parent()
    source, sink = streams.claim()
    be_polite()
    import_module(module).main(
        os.fdopen(source, "rb"), os.fdopen(sink, "wb"), memory.give_back, *arguments
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
