"""Publishes an index on one machine, so that others fetch it instead of making their own.

Must not know: MCP, settings, commands, and what a tool set searches.
"""
