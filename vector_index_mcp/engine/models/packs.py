"""The format of packs: files of vectors by chunk hash that machines share. Pure.

A pack is written once and never changed. It has a head, the hashes in ascending order, and the
vectors in the order of the hashes, in half precision. Anybody may have written a pack, so every
number is checked before it is used, and a vector that is not of unit length is left out.
"""

import struct
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter

import numpy as np
import numpy.typing as npt

from vector_index_mcp.engine.types import ModelIdentity, Vector, Vectors

_MAGIC = b"VIMPACK1"
_HEAD = struct.Struct("<8s32sII16x")  # the magic, the model's digest, rows, numbers of a vector
_KEY_BYTES = 32
_NUMBER = np.dtype("<f2")  # this precision turns a unit vector by less than 0.03 degrees
_KEYS = np.dtype([("head", ">u8"), ("tail", "V24")])
_MOST_ROWS = 32_768
MOST_BYTES = 64_000_000
"""The greatest size of a pack; a larger file is ignored."""
_BYTES_WRITTEN = 48_000_000
# A request takes as long as reading so many bytes: 20 ms each, 16 at once, at 25 MB a second.
_BYTES_OF_A_REQUEST = 32_768
_SHARE_READ_WHOLE = 0.25
_LENGTH_TOLERANCE = 0.01  # a vector's length should be 1; half precision is off by 0.0005


@dataclass(frozen=True, slots=True)
class Shape:
    """The shape of a pack, as its head states it."""

    rows: int
    dimension: int

    @property
    def row_bytes(self) -> int:
        """The bytes of one vector."""
        return self.dimension * _NUMBER.itemsize

    @property
    def keys_end(self) -> int:
        """The offset at which the hashes end and the vectors begin, in bytes."""
        return _HEAD.size + self.rows * _KEY_BYTES

    @property
    def size(self) -> int:
        """The size of the whole pack, in bytes."""
        return self.keys_end + self.rows * self.row_bytes


@dataclass(frozen=True, slots=True)
class Span:
    """Consecutive rows of a pack that are read with one request."""

    first: int
    last: int
    """Inclusive."""

    def place(self, shape: Shape) -> tuple[int, int]:
        """Return the span's offset in the pack and its length, in bytes."""
        start = shape.keys_end + self.first * shape.row_bytes
        return start, (self.last - self.first + 1) * shape.row_bytes


def most_rows(model: ModelIdentity) -> int:
    """Return how many vectors of a model a pack has at most."""
    return max(1, min(_MOST_ROWS, _BYTES_WRITTEN // (model.dimension * _NUMBER.itemsize)))


def pack_of(model: ModelIdentity, vectors: Mapping[str, Vector]) -> bytes:
    """Return a pack of `vectors`, given by hash (hex): at least one, at most `most_rows`."""
    keys = sorted(vectors)
    head = _HEAD.pack(_MAGIC, bytes.fromhex(model.digest), len(keys), model.dimension)
    numbers = np.stack([vectors[key] for key in keys]).astype(_NUMBER)
    return head + bytes.fromhex("".join(keys)) + numbers.tobytes()


def size_fits(size: int, model: ModelIdentity) -> Shape | None:
    """Return the shape of a pack of `model` with `size` bytes; None if no pack has that size."""
    rows, rest = divmod(size - _HEAD.size, _KEY_BYTES + model.dimension * _NUMBER.itemsize)
    is_one = 0 < size <= MOST_BYTES and rows > 0 and not rest
    return Shape(rows, model.dimension) if is_one else None


def is_head_of(data: bytes, model: ModelIdentity, shape: Shape) -> bool:
    """Return whether `data` begins with the head of a pack of `model` and has all its hashes."""
    expected = _HEAD.pack(_MAGIC, bytes.fromhex(model.digest), shape.rows, shape.dimension)
    return data.startswith(expected) and len(data) >= shape.keys_end


def heads_in(pack: bytes, shape: Shape) -> npt.NDArray[np.uint64]:
    """Return the first 64 bits of each hash of a pack, whose vectors may be missing."""
    return np.frombuffer(pack, _KEYS, shape.rows, _HEAD.size)["head"].astype("<u8")


def hashes_in(pack: bytes, shape: Shape) -> list[str]:
    """Return the hashes (hex) of a pack, whose vectors may be missing."""
    keys = pack[_HEAD.size : shape.keys_end].hex()
    return [keys[start : start + 2 * _KEY_BYTES] for start in range(0, len(keys), 2 * _KEY_BYTES)]


def rows_of(pack: bytes, shape: Shape, wanted: Sequence[str]) -> dict[str, int]:
    """Return the rows that hold the vectors of `wanted`, by hash, in the order of the rows.

    Args:
        pack: Head and hashes; the vectors may be missing.
        shape: The shape of the pack.
        wanted: Hashes (hex). They are not found in a pack whose hashes are out of order.
    """
    if not wanted:
        return {}
    heads = heads_in(pack, shape)
    asked = np.array([int(key[:16], 16) for key in wanted], "<u8")
    places = np.minimum(np.searchsorted(heads, asked), shape.rows - 1)
    found = {}
    for at in np.flatnonzero(heads[places] == asked).tolist():
        row, key = int(places[at]), wanted[at]
        start = _HEAD.size + row * _KEY_BYTES
        if pack[start : start + _KEY_BYTES] == bytes.fromhex(key):
            found[key] = row
    return dict(sorted(found.items(), key=lambda item: item[1]))


def spans_of(rows: Iterable[int], shape: Shape, *, is_near: bool = False) -> list[Span]:
    """Return spans that cover `rows`; rows that lie close together share a span.

    Args:
        rows: Rows of the pack, in order.
        shape: The shape of the pack.
        is_near: Whether the pack lies on this disk, where reading a gap saves no time.
    """
    gap = 1 if is_near else _BYTES_OF_A_REQUEST // shape.row_bytes
    spans: list[Span] = []
    for row in rows:
        if spans and row - spans[-1].last <= gap:
            spans[-1] = Span(spans[-1].first, row)
        else:
            spans.append(Span(row, row))
    return spans


def cost_of(spans: Sequence[Span], shape: Shape) -> int:
    """Return the cost of reading `spans`, as the number of bytes read in the same time."""
    return sum(_BYTES_OF_A_REQUEST + span.place(shape)[1] for span in spans)


def is_better_whole(cost: int, shape: Shape) -> bool:
    """Return whether to read the whole pack, given what its parts have cost so far."""
    return cost >= _SHARE_READ_WHOLE * shape.size


def vectors_in(
    pieces: Iterable[tuple[Span, bytes]], rows: Mapping[str, int], shape: Shape
) -> dict[str, Vector]:
    """Return the sound vectors in `pieces`, by hash, scaled to length 1.

    Args:
        pieces: Spans with the bytes read of them; a piece that is too short is ignored.
        rows: The rows of the wanted hashes, in order.
        shape: The shape of the pack.
    """
    wanted = list(rows.items())
    found: dict[str, Vector] = {}
    for span, data in pieces:
        begin = bisect_left(wanted, span.first, key=itemgetter(1))
        here = wanted[begin : bisect_right(wanted, span.last, key=itemgetter(1))]
        if len(data) != span.place(shape)[1] or not here:
            continue
        block = np.frombuffer(data, _NUMBER).reshape(-1, shape.dimension)
        numbers = block[[row - span.first for _, row in here]].astype("<f4")
        units, is_sound = _units(numbers)
        found |= {key: units[at] for at, (key, _) in enumerate(here) if is_sound[at]}
    return found


def _units(numbers: Vectors) -> tuple[Vectors, npt.NDArray[np.bool_]]:
    """Return the vectors scaled to length 1, and which of them had about that length before."""
    with np.errstate(invalid="ignore", over="ignore"):  # NaN and infinity
        lengths = np.linalg.norm(numbers, axis=1, keepdims=True)
        is_sound = np.abs(lengths - 1) <= _LENGTH_TOLERANCE  # false for NaN
        units = numbers / np.where(is_sound, lengths, 1)
    return units.astype("<f4"), is_sound[:, 0]
