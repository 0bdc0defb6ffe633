"""Prepares documents for search: the properties of each document, and its chunks.

    text ── properties (front matter, links) ─▶ title, tags, dates, links
         └─ chunks along headings ── fields (stems) ─▶ entries

Front matter is data about a text, such as its title and tags. It is part of no chunk.
"""

from vector_index_mcp.engine.prose.chunks import chunks_of
from vector_index_mcp.engine.prose.fields import entries
from vector_index_mcp.engine.prose.properties import Properties, properties_of

__all__ = ["VERSION", "Properties", "chunks_of", "entries", "properties_of"]

VERSION = "prose-5"
"""Change this whenever the same text gets other properties, chunks or words; indexes store it."""
