"""Finds where the definitions and sections of a text begin and end."""

from vector_index_mcp.engine.chunk import headings
from vector_index_mcp.engine.chunk.grammars import GRAMMARS
from vector_index_mcp.engine.chunk.parts import Part

VERSION = "outline-10"
"""Change this whenever the same text is cut differently, so that old chunks are replaced."""


def outline(text: str, language: str) -> tuple[list[Part], str]:
    """Find the definitions or sections of `text`.

    Returns:
        The outermost parts, none if the text has none; and why its syntax could not be used, empty
        if there was no problem.
    """
    if language in headings.STYLES:
        return headings.sections(text, language), ""
    if language in GRAMMARS:
        # Imported only here, because only children of the service may parse, never the service.
        from vector_index_mcp.engine.chunk import syntax

        try:
            return syntax.definitions(text, language), ""
        except syntax.TooSlowError as error:
            return [], str(error)
    return [], ""
