"""An index of projects, documents, notes and datasets, searched over the Model Context Protocol.

`engine` turns texts into ranked chunks, `files` finds files and their changes, `indexing` keeps an
index up to date, and the tool sets (`codebase`, `documents`, `notes`, `datasets`) offer it as MCP
tools. `ARCHITECTURE.md` beside this file is the map. Importing this package reads no environment
and loads no library.
"""

__version__ = "0.1.0"
