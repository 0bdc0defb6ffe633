"""A background index of one software project, searched over the Model Context Protocol.

`engine` turns texts into ranked chunks, `files` says which files there are and which changed,
`codebase` keeps the live index of one project and offers it as three MCP tools. `ARCHITECTURE.md`
beside this file is the map. Importing this package reads no environment and loads no library.
"""

__version__ = "0.1.0"
