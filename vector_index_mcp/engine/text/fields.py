"""Makes the text of a chunk that is embedded, and the words that full-text search matches. Pure.

Both contain more than the chunk's own text: where the chunk stands and what it defines. A search
returns only the chunk's own text.
"""

import hashlib
from collections.abc import Iterable, Iterator

from vector_index_mcp.engine.text.words import joined, last_name, spelled_out, without_ending
from vector_index_mcp.engine.types import Chunk, Entry

# How often the words of each field are repeated beside the chunk's text. That is BM25F with these
# weights: Robertson, Zaragoza, Taylor, Simple BM25 Extension to Multiple Weighted Fields (CIKM
# 2004). Chosen with benchmarks/quality.py.
BARE_NAME_WEIGHT = 2
FOLDER_WEIGHT = 1
SYMBOL_WEIGHT = 2
SCOPE_WEIGHT = 1
_FOLDERS = 3  # only the nearest ones: the outer ones are the same for every file

VERSION = "texts-3"
"""Change this whenever the same chunk is embedded or matched differently; indexes store it."""


def entries(key: str, chunks: Iterable[Chunk]) -> tuple[Entry, ...]:
    """Return the chunks of the file `key`, ready to be stored."""
    place = _place_words(key)
    return tuple(
        Entry(
            chunk,
            chunk_hash(key, chunk.scope, chunk.text),
            " ".join(filter(None, _matched_words(place, chunk))),
        )
        for chunk in chunks
    )


def embedded_text(key: str, scope: str, text: str) -> str:
    """Return the text of a chunk that is embedded: the file's name, its scope, and its own text.

    Folders are left out, so that moving a folder embeds nothing again. The spelling is the file's
    own: models normalize text themselves, and another spelling would embed everything again.
    """
    name = key.rpartition("/")[2]
    return f"{name} {scope}\n{text}" if scope else f"{name}\n{text}"


def chunk_hash(key: str, scope: str, text: str) -> str:
    """Return the SHA-256 of the embedded text, in hex: equal hash, equal vector."""
    return hashlib.sha256(embedded_text(key, scope, text).encode("utf-8", "replace")).hexdigest()


def symbol_word(name: str) -> str:
    """Return the word that finds the definition of `name` in any of its spellings."""
    return f"={joined(name)}"


def _place_words(key: str) -> str:
    """Return the words of the path `key`, by which all chunks of the file are found."""
    folders, _, name = key.rpartition("/")
    nearest = " ".join(folders.split("/")[-_FOLDERS:])
    fields = [without_ending(name)] * BARE_NAME_WEIGHT + [name] + [nearest] * FOLDER_WEIGHT
    return spelled_out(" ".join(fields))


def _matched_words(place: str, chunk: Chunk) -> Iterator[str]:
    yield place
    yield from [spelled_out(chunk.scope)] * SCOPE_WEIGHT
    for symbol in chunk.symbols:
        yield from [spelled_out(symbol)] * SYMBOL_WEIGHT
        yield symbol_word(last_name(symbol))
    yield spelled_out(chunk.text)
