"""Where the program begins: `vector-index-mcp`, and `python -m vector_index_mcp`."""

import os
import sys


def main() -> None:
    """Run the program and exit. The import stands inside, since Ctrl+C may interrupt it."""
    # numpy embeds queries, and its threads wait for each other on a busy machine: with a process on
    # each of two cores, a query took 23 ms with one thread and 82 ms with two (measured). It reads
    # this when it is imported; the services and workers that this process starts inherit it.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    try:
        from vector_index_mcp import cli

        cli.main()
    except KeyboardInterrupt:
        sys.exit(130)  # what a shell gives a command ended by Ctrl+C


if __name__ == "__main__":
    main()
