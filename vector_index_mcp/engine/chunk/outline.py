"""Where the definitions and sections of a text begin and end."""

from vector_index_mcp.engine.chunk import headings, syntax
from vector_index_mcp.engine.chunk.grammars import GRAMMARS
from vector_index_mcp.engine.chunk.parts import Part

VERSION = "outline-1"
"""Changes whenever the same text would be cut differently, so that old chunks are replaced."""


def outline(text: str, language: str) -> list[Part]:
    """The parts of `text`, outermost ones; none where its language or its syntax gives none."""
    if language in headings.STYLES:
        return headings.sections(text, language)
    if language in GRAMMARS:
        return syntax.definitions(text, language)
    return []
