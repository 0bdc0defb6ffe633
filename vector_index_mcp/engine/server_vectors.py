"""Vectors as a server with OpenAI's API gives them: asked for, and looked at closely. Pure."""

import base64
import binascii
from collections.abc import Iterator, Sequence
from typing import Any, Literal

import numpy as np

from vector_index_mcp.engine.types import Vectors
from vector_index_mcp.errors import ServerError

Encoding = Literal["base64", "float"]
"""A vector takes a quarter of the bytes in base64, and not every server knows that."""

# Servers refuse more: of those that were tried, infinity 2,048 texts of 122,880 characters.
_MOST_TEXTS = 64
_MOST_CHARS = 64_000
_LONGEST_TEXT_CHARS = 64_000  # no model reads more of one
_LONGEST_VECTOR = 65_536
_BYTES_PER_NUMBER = 32  # in JSON
_BYTES_AROUND = 4_096


def in_requests(texts: Sequence[str]) -> Iterator[Sequence[str]]:
    """`texts` in order, in groups that a server takes."""
    first, chars = 0, 0
    for place, text in enumerate(texts):
        if place > first and (place - first >= _MOST_TEXTS or chars + len(text) > _MOST_CHARS):
            yield texts[first:place]
            first, chars = place, 0
        chars += len(text)
    if first < len(texts):
        yield texts[first:]


def sendable(text: str) -> str:
    """`text` as every server takes it: not empty, not endless, without halves of characters."""
    whole = text[:_LONGEST_TEXT_CHARS].encode("utf-8", "replace").decode("utf-8")
    return whole or " "


def most_bytes(count: int, dimension: int) -> int:
    """The longest answer of `count` vectors; of a dimension that is not known yet if it is 0."""
    return count * ((dimension or _LONGEST_VECTOR) * _BYTES_PER_NUMBER + _BYTES_AROUND)


def vectors_in(answer: Any, count: int) -> Vectors:
    """The vectors of an answer, in the order of the texts, of unit length.

    Raises:
        ServerError: If these are not `count` vectors that one can compute with.
    """
    try:
        found = {row.get("index", place): row["embedding"] for place, row in _rows(answer)}
        raw = [_numbers(found[place]) for place in range(count)]
        total = len(answer["data"])
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError, binascii.Error):
        raise ServerError(f"answers without the vectors of {count} texts") from None
    if total != count:
        raise ServerError(f"answers with {total} vectors for {count} texts")
    lengths = {len(each) for each in raw}
    if len(lengths) != 1 or not 0 < max(lengths) <= _LONGEST_VECTOR:
        raise ServerError("answers with vectors of different or impossible lengths")
    return normalised(np.stack(raw))


def normalised(vectors: Any) -> Vectors:
    """`vectors` as rows of unit length.

    Raises:
        ServerError: If one has none.
    """
    with np.errstate(all="ignore"):
        norms = np.linalg.norm(vectors, axis=1, keepdims=True)
        if not (np.isfinite(norms).all() and (norms > 0).all()):
            raise ServerError("answers with vectors that are zero or no numbers")
        result: Vectors = (vectors / norms).astype("<f4")
    return result


def _rows(answer: Any) -> Iterator[tuple[int, Any]]:
    return enumerate(answer["data"])


def _numbers(embedding: Any) -> Any:
    if isinstance(embedding, str):
        return np.frombuffer(base64.b64decode(embedding, validate=True), "<f4").astype("f8")
    numbers = np.asarray(embedding, dtype="f8")
    if numbers.ndim != 1:
        raise ValueError("no list of numbers")
    return numbers
