"""The texts of a dataset: `metadata.json`, in either of the shapes that people have."""

import json
import stat
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

DEFAULT_MODEL = "sentence-transformers/all-MiniLM-L6-v2"
"""Of a dataset that does not say which model made its vectors."""
_SHORT_CHARS = 200


@dataclass(frozen=True, slots=True)
class Text:
    """What a row of the index stands for."""

    title: str
    path: str
    content: str
    snippet: str
    """What a result shows of it."""

    @classmethod
    def of(cls, title: str, path: str, content: str, snippet: str) -> "Text":
        """A text, with no more of each than a result may have."""
        return cls(title[:LONGEST_TITLE], path[:LONGEST_PATH], content, snippet[:LONGEST_SNIPPET])


@dataclass(frozen=True, slots=True)
class Metadata:
    """What is known of the rows of an index, in their order."""

    texts: tuple[Text, ...]
    model: str
    """Which model made their vectors."""


def read(path: Path) -> Metadata:
    """The texts in a file.

    Raises:
        BadDatasetError: If it is not as it should be.
    """
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            raise BadDatasetError("the metadata is no plain file")
        size = status.st_size
        if size > LARGEST_METADATA_BYTES:
            raise BadDatasetError(
                f"the metadata has {size} bytes; {LARGEST_METADATA_BYTES} are read"
            )
        found = json.loads(path.read_bytes())
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
    path = _first(found, "path", "id", "url") or f"document-{number}"
    title = _first(found, "title") or PurePosixPath(path).name or f"Document {number}"
    snippet = _first(found, "snippet") or content[:_SHORT_CHARS]
    return Text.of(title, path, content, snippet)


def _first(found: Mapping[object, object], *names: str) -> str:
    """The first of some fields that says something; empty if none does."""
    values = (found.get(name) for name in names)
    said = next((v for v in values if isinstance(v, str) and v.strip()), "")
    # Half of a surrogate pair can stand in JSON, and in no text.
    return said.encode("utf-8", "replace").decode()
