"""Packs: files of vectors by chunk hash that machines share. Pure.

A pack is written once and never changed: a head, the hashes in order, the vectors in the order of
the hashes, in half precision. What is read may be anybody's: every number is checked before
anything is made of it, and a vector that cannot be one of a model's is left out.
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
_NUMBER = np.dtype("<f2")  # turns a unit vector by less than 0.03 degrees
_KEYS = np.dtype([("head", ">u8"), ("tail", "V24")])
_MOST_ROWS = 32_768
MOST_BYTES = 64_000_000
"""Of a pack. What is larger is nobody's."""
_BYTES_WRITTEN = 48_000_000
# A request costs about as much as so many bytes: 20 ms, 16 at once, at 25 MB a second.
_BYTES_OF_A_REQUEST = 32_768
_SHARE_READ_WHOLE = 0.25
_LENGTH_TOLERANCE = 0.01  # of a vector's length, which is 1; half precision takes 0.0005


@dataclass(frozen=True, slots=True)
class Shape:
    """What the head of a pack says."""

    rows: int
    dimension: int

    @property
    def row_bytes(self) -> int:
        """Of one vector."""
        return self.dimension * _NUMBER.itemsize

    @property
    def keys_end(self) -> int:
        """Where the hashes end and the vectors begin."""
        return _HEAD.size + self.rows * _KEY_BYTES

    @property
    def size(self) -> int:
        """Of the whole pack, in bytes."""
        return self.keys_end + self.rows * self.row_bytes


@dataclass(frozen=True, slots=True)
class Span:
    """Rows of a pack that are read at once."""

    first: int
    last: int

    def place(self, shape: Shape) -> tuple[int, int]:
        """Where it begins in the pack, and how many bytes it has."""
        start = shape.keys_end + self.first * shape.row_bytes
        return start, (self.last - self.first + 1) * shape.row_bytes


def most_rows(model: ModelIdentity) -> int:
    """How many vectors come into one pack, at most."""
    return max(1, min(_MOST_ROWS, _BYTES_WRITTEN // (model.dimension * _NUMBER.itemsize)))


def pack_of(model: ModelIdentity, vectors: Mapping[str, Vector]) -> bytes:
    """A pack of `vectors`, by hash (hex): at least one, and not more than `most_rows`."""
    keys = sorted(vectors)
    head = _HEAD.pack(_MAGIC, bytes.fromhex(model.digest), len(keys), model.dimension)
    numbers = np.stack([vectors[key] for key in keys]).astype(_NUMBER)
    return head + bytes.fromhex("".join(keys)) + numbers.tobytes()


def size_fits(size: int, model: ModelIdentity) -> Shape | None:
    """The shape of a pack of `model` that has so many bytes; None if none has."""
    rows, rest = divmod(size - _HEAD.size, _KEY_BYTES + model.dimension * _NUMBER.itemsize)
    is_one = 0 < size <= MOST_BYTES and rows > 0 and not rest
    return Shape(rows, model.dimension) if is_one else None


def is_head_of(data: bytes, model: ModelIdentity, shape: Shape) -> bool:
    """Whether `data` begins as a pack of `model` with this shape does."""
    expected = _HEAD.pack(_MAGIC, bytes.fromhex(model.digest), shape.rows, shape.dimension)
    return data.startswith(expected) and len(data) >= shape.keys_end


def heads_in(pack: bytes, shape: Shape) -> npt.NDArray[np.uint64]:
    """The first 64 bits of each hash of a pack, of which the vectors may be missing."""
    return np.frombuffer(pack, _KEYS, shape.rows, _HEAD.size)["head"].astype("<u8")


def hashes_in(pack: bytes, shape: Shape) -> list[str]:
    """The hashes (hex) of a pack, of which the vectors may be missing."""
    keys = pack[_HEAD.size : shape.keys_end].hex()
    return [keys[start : start + 2 * _KEY_BYTES] for start in range(0, len(keys), 2 * _KEY_BYTES)]


def rows_of(pack: bytes, shape: Shape, wanted: Sequence[str]) -> dict[str, int]:
    """Which rows hold the vectors of `wanted` hashes (hex), by hash, in the order of the rows.

    Args:
        pack: Head and hashes; the vectors may be missing.
        shape: Of the pack.
        wanted: Hashes. Those of a pack that is not in order are not found.
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
    """Spans that hold `rows`, which are in order; what lies close together is read at once.

    Args:
        rows: Of the pack.
        shape: Of the pack.
        is_near: Whether the pack lies on this disk, where nothing is gained by reading more.
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
    """What it costs to read `spans`, in bytes that could be read in the same time."""
    return sum(_BYTES_OF_A_REQUEST + span.place(shape)[1] for span in spans)


def is_better_whole(cost: int, shape: Shape) -> bool:
    """Whether the pack is to be read whole instead of parts that cost so much, now and before."""
    return cost >= _SHARE_READ_WHOLE * shape.size


def vectors_in(
    pieces: Iterable[tuple[Span, bytes]], rows: Mapping[str, int], shape: Shape
) -> dict[str, Vector]:
    """The vectors of hashes, as far as `pieces` have any that make sense; of length 1.

    Args:
        pieces: Spans with what was read of them, which may be too short.
        rows: By hash, in order.
        shape: Of the pack.
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
    """Vectors of length 1, and which of them have had about that length."""
    with np.errstate(invalid="ignore", over="ignore"):  # NaN, and what is too large
        lengths = np.linalg.norm(numbers, axis=1, keepdims=True)
        is_sound = np.abs(lengths - 1) <= _LENGTH_TOLERANCE  # never of NaN
        units = numbers / np.where(is_sound, lengths, 1)
    return units.astype("<f4"), is_sound[:, 0]
