"""The MCP clients of this machine: which there are, and our entry in their configuration files.

Must not know what our entry serves.
"""
