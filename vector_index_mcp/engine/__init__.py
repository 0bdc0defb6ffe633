"""Text in, ranked chunks out: cutting, embedding, storing, searching, ranking.

Must not know settings, tools or MCP, nor what a process, a file system or a watcher is.
"""
