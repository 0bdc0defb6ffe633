"""Makes the words of a document's chunk: of its text, headings, title and tags. Pure."""

from collections.abc import Iterable

from vector_index_mcp.engine.prose.properties import Properties, bare_name_of
from vector_index_mcp.engine.prose.stems import stemmed
from vector_index_mcp.engine.text.fields import chunk_hash
from vector_index_mcp.engine.types import Chunk, Entry

# How often the words of each field are repeated beside the text: BM25F by repetition, as in
# `engine.text.fields`. Chosen with benchmarks/documents.py.
TITLE_WEIGHT = 1  # and once more with the headings
HEADINGS_WEIGHT = 1
TAGS_WEIGHT = 2
NAME_WEIGHT = 1
_FOLDERS = 3  # only the nearest ones


def entries(key: str, chunks: Iterable[Chunk], properties: Properties) -> tuple[Entry, ...]:
    """Return the chunks of the document `key`, ready to be stored."""
    place = _matched_of_all(key, properties)
    return tuple(
        Entry(
            chunk,
            chunk_hash(key, chunk.scope, chunk.text),
            " ".join(filter(None, (place, *_matched(chunk)))),
        )
        for chunk in chunks
    )


def _matched_of_all(key: str, properties: Properties) -> str:
    """Return the words by which all chunks of a document are found."""
    folders = key.rpartition("/")[0].split("/")[1:]  # the first is the collection's name
    titles = " ".join([properties.title, *properties.aliases])
    tags = " ".join(properties.tags)
    fields = [titles] * TITLE_WEIGHT + [tags] * TAGS_WEIGHT + [bare_name_of(key)] * NAME_WEIGHT
    return stemmed(" ".join([*fields, *folders[-_FOLDERS:]]))


def _matched(chunk: Chunk) -> list[str]:
    return [stemmed(chunk.scope)] * HEADINGS_WEIGHT + [stemmed(chunk.text)]
