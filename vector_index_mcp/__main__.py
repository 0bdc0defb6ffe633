"""`python -m vector_index_mcp`."""

from vector_index_mcp.cli import main

if __name__ == "__main__":
    main()
