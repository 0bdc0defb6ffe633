"""The index in a browser: search, progress, a map and the last queries.

Must not know MCP, processes or settings.
"""
