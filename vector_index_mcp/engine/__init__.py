"""Text in, ranked chunks out. Knows no file system, watcher, MCP or settings."""
