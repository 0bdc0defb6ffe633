"""Finds the MCP clients of this machine, and edits our entry in their configuration files.

Must not know what our entry serves.
"""
