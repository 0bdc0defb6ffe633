"""A tool set behind an MCP server: on standard streams, as a background service, on HTTP.

Must not know what a terminal shows, and of a tool set only what `sets` says of all of them.
"""
