"""Maps the texts of a dataset to rows of the engine's table, and back.

The table's columns were made for chunks of files. The chunk's text holds a text's snippet, so that
a search reads no more than it shows; the words of the whole text are searched. The title is stored
in the column for a chunk's headings.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from vector_index_mcp.datasets.limits import LONGEST_PATH, LONGEST_SNIPPET, LONGEST_TITLE
from vector_index_mcp.datasets.metadata import Text
from vector_index_mcp.engine.prose.stems import stemmed
from vector_index_mcp.engine.types import Chunk, Document, Entry

CHUNKER = "dataset-2"
"""The version of this mapping. Change it when the same dataset would get another table."""
_LANGUAGE = "text"


def document(number: int, text: Text) -> Document:
    """Return the row with a number as a document of the engine."""
    chunk = Chunk(text.snippet, 1, 1, text.title)
    matched = stemmed(f"{text.title}\n{text.content or text.snippet}\n{text.path}")
    entry = Entry(chunk, hash_of(number), matched)
    return Document(_key(number, text.path), text.path, "", 0.0, _LANGUAGE, (entry,))


def _key(number: int, path: str) -> str:
    return f"{number}/{path}"


def number_in(key: str) -> int:
    """Return the number of a row from its key."""
    number = key.partition("/")[0]
    return int(number) if number.isdecimal() else 0


def path_in(key: str) -> str:
    """Return the path of a row's text from its key."""
    return key.partition("/")[2]


def hash_of(number: int) -> str:
    """Return the key of a row's vector.

    It is made from the row's number, not its text: rows with the same text may have other vectors.
    """
    return hashlib.sha256(b"%d" % number).hexdigest()


@dataclass(frozen=True, slots=True)
class Shown:
    """The part of a row that a result shows."""

    title: str
    path: str
    snippet: str


COLUMNS = ("scope", "file_path", "extracted_text_chunk")
"""The columns of the table that a result needs."""


def shown(row: Mapping[str, Any]) -> Shown:
    """Return what a result shows of a row, which is given by its columns and may be foreign."""
    path = path_in(row["file_path"])[:LONGEST_PATH] or f"document-{number_in(row['file_path'])}"
    title = row["scope"][:LONGEST_TITLE] or PurePosixPath(path).name or path
    return Shown(title, path, row["extracted_text_chunk"][:LONGEST_SNIPPET])
