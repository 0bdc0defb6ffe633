"""Cuts texts into chunks: along the syntax tree, headings, or blank lines and indentation.

    text ── outline (syntax | headings | cells) ──▶ cut ──▶ chunks

The outline lists where definitions begin and end. `cut` packs lines into chunks and keeps
definitions whole where they fit. A text without an outline, or with a broken one, is cut by lines.
"""

from vector_index_mcp.engine.chunk.cut import chunk_text, cut_text
from vector_index_mcp.engine.chunk.outline import VERSION

__all__ = ["VERSION", "chunk_text", "cut_text"]
