"""Where the program begins: `vector-index-mcp`, and `python -m vector_index_mcp`."""

import sys


def main() -> None:
    """Run the program and exit. The import stands inside, since Ctrl+C may interrupt it."""
    try:
        from vector_index_mcp import cli

        cli.main()
    except KeyboardInterrupt:
        sys.exit(130)  # what a shell gives a command ended by Ctrl+C


if __name__ == "__main__":
    main()
