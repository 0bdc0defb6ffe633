"""The pages in a browser: a project's index, documents, notes and datasets.

Must not know MCP, processes or settings.
"""
