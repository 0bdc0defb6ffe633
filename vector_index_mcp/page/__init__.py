"""The local page: search, progress, a map and the last queries. Knows the codebase, not MCP."""
