"""Serves a tool set through MCP: on standard streams, as a background service, and over HTTP.

Must not know: what a terminal shows, and of a tool set more than `ToolSet` has.
"""
