"""What a row of our table says of a text of a dataset.

The table is the engine's, whose columns were made for files. Its text is what a result shows: the
words of all of it are searched, and a search reads no more than it shows. The title stands where
the headings of a chunk do.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from vector_index_mcp.datasets.limits import LONGEST_SNIPPET
from vector_index_mcp.datasets.metadata import Text
from vector_index_mcp.engine.prose.stems import stemmed
from vector_index_mcp.engine.types import Chunk, Document, Entry

CHUNKER = "dataset-2"
"""Changes when the same dataset would become another table."""
_LANGUAGE = "text"


def document(number: int, text: Text) -> Document:
    """A row, by its number, as a document of the engine."""
    chunk = Chunk(text.snippet, 1, 1, text.title)
    matched = stemmed(f"{text.title}\n{text.content or text.snippet}\n{text.path}")
    entry = Entry(chunk, hash_of(number), matched)
    return Document(_key(number, text.path), text.path, "", 0.0, _LANGUAGE, (entry,))


def _key(number: int, path: str) -> str:
    return f"{number}/{path}"


def number_in(key: str) -> int:
    """The number of a row."""
    number = key.partition("/")[0]
    return int(number) if number.isdecimal() else 0


def path_in(key: str) -> str:
    """The path of the text of a row."""
    return key.partition("/")[2]


def hash_of(number: int) -> str:
    """By which the vector of a row is found; rows may say the same and have different ones."""
    return hashlib.sha256(b"%d" % number).hexdigest()


@dataclass(frozen=True, slots=True)
class Shown:
    """What a result shows of a row."""

    title: str
    path: str
    snippet: str


COLUMNS = ("scope", "metadata", "extracted_text_chunk")
"""Of the table, that a result is made of."""


def shown(row: Mapping[str, Any]) -> Shown:
    """What is shown of a row that was found, by its columns."""
    text = row["extracted_text_chunk"][:LONGEST_SNIPPET]
    return Shown(row["scope"], row["metadata"]["original_path"], text)
