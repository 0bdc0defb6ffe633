"""Where the program begins: `vector-index-mcp`, and `python -m vector_index_mcp`."""

import sys


def main() -> None:
    """Run the program and exit; Ctrl+C may come before it is imported."""
    try:
        from vector_index_mcp import cli

        cli.main()
    except KeyboardInterrupt:
        sys.exit(130)  # what a shell gives a command ended by Ctrl+C


if __name__ == "__main__":
    main()
