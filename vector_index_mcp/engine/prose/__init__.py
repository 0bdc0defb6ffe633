"""Texts for people to read: what is known of one as a whole, and what of its chunks is searched.

    text ── properties (front_matter, links) ─▶ title, tags, dates, links
         └─ chunks along headings ── fields (stems) ─▶ entries

Front matter is data: it says what a text is called and what it is about, and is part of no chunk.
"""

from vector_index_mcp.engine.prose.chunks import chunks_of
from vector_index_mcp.engine.prose.fields import entries
from vector_index_mcp.engine.prose.properties import Properties, properties_of

__all__ = ["VERSION", "Properties", "chunks_of", "entries", "properties_of"]

VERSION = "prose-2"
"""Changes whenever the same text would get other properties, chunks or words; stored in indexes."""
