"""Where the definitions and sections of a text begin and end."""

from vector_index_mcp.engine.chunk import headings
from vector_index_mcp.engine.chunk.grammars import GRAMMARS
from vector_index_mcp.engine.chunk.parts import Part

VERSION = "outline-1"
"""Changes whenever the same text would be cut differently, so that old chunks are replaced."""


def outline(text: str, language: str) -> tuple[list[Part], str]:
    """The parts of `text`, outermost ones; none where its language or its syntax gives none.

    Returns:
        Also why nothing is known of its syntax; empty if there was no difficulty.
    """
    if language in headings.STYLES:
        return headings.sections(text, language), ""
    if language in GRAMMARS:
        # Imported where something is parsed: in children of the service, and never in itself.
        from vector_index_mcp.engine.chunk import syntax

        try:
            return syntax.definitions(text, language), ""
        except syntax.TooSlowError as error:
            return [], str(error)
    return [], ""
