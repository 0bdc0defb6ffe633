"""Reads the texts of a dataset from `metadata.json`: a list, or an object with "documents"."""

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from vector_index_mcp.datasets.limits import (
    LARGEST_METADATA_BYTES,
    LONGEST_PATH,
    LONGEST_SNIPPET,
    LONGEST_TITLE,
)
from vector_index_mcp.datasets.refusal import BadDatasetError
from vector_index_mcp.errors import encodable
from vector_index_mcp.files.plain import opened

DEFAULT_MODEL = "sentence-transformers/all-MiniLM-L6-v2"
"""The model of a dataset that does not name one."""
_SHORT_CHARS = 200


@dataclass(frozen=True, slots=True)
class Text:
    """A text of a dataset, which one row of the index stands for."""

    title: str
    path: str
    content: str
    snippet: str
    """The part that a result shows."""

    @classmethod
    def of(cls, title: str, path: str, content: str, snippet: str) -> "Text":
        """Return a text, with title, path and snippet cut to the lengths that a result allows."""
        return cls(title[:LONGEST_TITLE], path[:LONGEST_PATH], content, snippet[:LONGEST_SNIPPET])


@dataclass(frozen=True, slots=True)
class Metadata:
    """The texts of a dataset, and its model."""

    texts: tuple[Text, ...]
    """In the order of the rows of the index."""
    model: str
    """The model that made the vectors."""


def read(path: Path) -> Metadata:
    """Read the texts from a file.

    Raises:
        BadDatasetError: If the file is not valid.
    """
    try:
        with opened(path) as file:
            size = os.fstat(file.fileno()).st_size
            if size > LARGEST_METADATA_BYTES:
                raise BadDatasetError(
                    f"the metadata has {size:,} bytes; at most {LARGEST_METADATA_BYTES:,} are read"
                )
            found = json.loads(file.read(size))
    except (OSError, ValueError, RecursionError) as error:
        raise BadDatasetError(f"the metadata cannot be read ({error})") from error
    return _understood(found)


def _understood(found: object) -> Metadata:
    model = DEFAULT_MODEL
    if isinstance(found, Mapping):
        named = found.get("model")
        if isinstance(named, str) and named.strip():
            model = named.strip()
        found = found.get("documents")
    if not isinstance(found, Sequence) or isinstance(found, str):
        raise BadDatasetError('the metadata is neither a list nor an object with "documents"')
    return Metadata(tuple(_text(number, each) for number, each in enumerate(found)), model)


def _text(number: int, found: object) -> Text:
    if not isinstance(found, Mapping):
        raise BadDatasetError(f"document {number} of the metadata is no object")
    content = _first(found, "content", "text")
    path = _first(found, "path", "id", "url")
    title = _first(found, "title") or PurePosixPath(path).name or f"Document {number}"
    path = path or f"document-{number}"
    snippet = _first(found, "snippet") or content[:_SHORT_CHARS]
    return Text.of(title, path, content, snippet)


def _first(found: Mapping[object, object], *names: str) -> str:
    """Return the first of the named fields that is a text and not blank; empty if none is."""
    values = (found.get(name) for name in names)
    text = next((v for v in values if isinstance(v, str) and v.strip()), "")
    # JSON can contain half a surrogate pair, which UTF-8 cannot encode.
    return encodable(text)
