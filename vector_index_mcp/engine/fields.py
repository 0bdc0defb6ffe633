"""What of a chunk is embedded and matched: its text, its place, what it defines. Pure.

Both see more than the chunk's own text: where it stands and what it defines. What a search returns
is the chunk's own text only.
"""

import hashlib
from collections.abc import Iterable, Iterator

from vector_index_mcp.engine.types import Chunk, Entry
from vector_index_mcp.engine.words import joined, last_name, spelled_out

# How often a word counts that stands in another field than the text. Repeating the words of a
# field is BM25F with these weights: Robertson, Zaragoza, Taylor, Simple BM25 Extension to Multiple
# Weighted Fields (CIKM 2004). Chosen with benchmarks/quality.py.
STEM_WEIGHT = 2
FOLDER_WEIGHT = 1
SYMBOL_WEIGHT = 2
SCOPE_WEIGHT = 1
_FOLDERS = 3  # the nearest ones: the outer ones are the same for every file

VERSION = "texts-2"
"""Changes whenever the same chunk would be embedded or matched differently; stored in indexes."""


def entries(key: str, chunks: Iterable[Chunk]) -> tuple[Entry, ...]:
    """The chunks of the file `key`, ready to be stored."""
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
    """What the model sees of a chunk: the file's name, not its folders, and what encloses it.

    So that moving a folder embeds nothing anew. In the file's own spelling: models have theirs, and
    what is embedded otherwise would have to be embedded anew.
    """
    name = key.rpartition("/")[2]
    return f"{name} {scope}\n{text}" if scope else f"{name}\n{text}"


def chunk_hash(key: str, scope: str, text: str) -> str:
    """SHA-256 of what is embedded, in hex: equal hash, equal vector."""
    return hashlib.sha256(embedded_text(key, scope, text).encode("utf-8", "replace")).hexdigest()


def symbol_word(name: str) -> str:
    """The word under which the definition of `name` is found, in any spelling of it."""
    return f"={joined(name)}"


def _place_words(key: str) -> str:
    """The words that all chunks of the file `key` are found by."""
    folders, _, name = key.rpartition("/")
    nearest = " ".join(folders.split("/")[-_FOLDERS:])
    fields = [name.partition(".")[0]] * STEM_WEIGHT + [name] + [nearest] * FOLDER_WEIGHT
    return spelled_out(" ".join(fields))


def _matched_words(place: str, chunk: Chunk) -> Iterator[str]:
    yield place
    yield from [spelled_out(chunk.scope)] * SCOPE_WEIGHT
    for symbol in chunk.symbols:
        yield from [spelled_out(symbol)] * SYMBOL_WEIGHT
        yield symbol_word(last_name(symbol))
    yield spelled_out(chunk.text)
