"""Documents as the store takes them."""

from vector_index_mcp.engine.text.fields import entries
from vector_index_mcp.engine.types import Chunk, Document


def document(key, *texts, content_hash="hash", language="python", scope="", symbols=()):
    """A file in /project with a chunk of one line for each of `texts`."""
    chunks = tuple(Chunk(text, line, line, scope, symbols) for line, text in enumerate(texts, 1))
    return Document(key, f"/project/{key}", content_hash, 1.5, language, entries(key, chunks))
