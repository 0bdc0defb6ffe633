"""Prepares texts for a server with OpenAI's API, and checks the vectors it answers with. Pure."""

import base64
import binascii
from collections.abc import Iterator, Sequence
from typing import Any, Literal

import numpy as np

from vector_index_mcp.engine.types import Vectors
from vector_index_mcp.errors import ServerError, counted

Encoding = Literal["base64", "float"]
"""In base64 a vector takes a quarter of the bytes, but not every server supports it."""

# Servers refuse more. Of the servers tried, infinity refused 2,048 texts of 122,880 characters.
_MOST_TEXTS = 64
_MOST_CHARS = 64_000
_LONGEST_TEXT_CHARS = 64_000  # no model reads more of a text
_LONGEST_VECTOR = 65_536
_BYTES_PER_NUMBER = 32  # in JSON
_BYTES_AROUND = 4_096


def in_requests(texts: Sequence[str]) -> Iterator[Sequence[str]]:
    """Yield `texts` in order, in groups small enough for one request."""
    first, chars = 0, 0
    for place, text in enumerate(texts):
        if place > first and (place - first >= _MOST_TEXTS or chars + len(text) > _MOST_CHARS):
            yield texts[first:place]
            first, chars = place, 0
        chars += len(text)
    if first < len(texts):
        yield texts[first:]


def sendable(text: str) -> str:
    """Return `text` as every server accepts it: not empty, bounded, without lone surrogates."""
    whole = text[:_LONGEST_TEXT_CHARS].encode("utf-8", "replace").decode("utf-8")
    return whole or " "


def most_bytes(count: int, dimension: int) -> int:
    """Return the greatest length of an answer with `count` vectors, in bytes.

    Args:
        count: How many vectors.
        dimension: Their length; 0 if it is not known yet.
    """
    return count * ((dimension or _LONGEST_VECTOR) * _BYTES_PER_NUMBER + _BYTES_AROUND)


def vectors_in(answer: Any, count: int) -> Vectors:
    """Return the vectors of an answer, in the order of the texts, of unit length.

    Raises:
        ServerError: If the answer does not contain `count` usable vectors of one length.
    """
    try:
        found = {row.get("index", place): row["embedding"] for place, row in _rows(answer)}
        raw = [_numbers(found[place]) for place in range(count)]
        total = len(answer["data"])
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError, binascii.Error):
        raise ServerError(f"answers without the vectors of {counted(count, 'text')}") from None
    if total != count:
        raise ServerError(f"answers with {counted(total, 'vector')} for {counted(count, 'text')}")
    lengths = {len(each) for each in raw}
    if len(lengths) != 1 or not 0 < max(lengths) <= _LONGEST_VECTOR:
        raise ServerError("answers with vectors of different or impossible lengths")
    return normalised(np.stack(raw))


def normalised(vectors: Any) -> Vectors:
    """Return `vectors` as rows of unit length.

    Raises:
        ServerError: If a vector is zero, NaN or infinite.
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
        raise ValueError("not a list of numbers")
    return numbers
