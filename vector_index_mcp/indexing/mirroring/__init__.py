"""An index that one machine publishes and others fetch instead of making it.

Must not know: MCP, settings, commands; what a tool set searches.
"""
