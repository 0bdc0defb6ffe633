"""Writes the vectors of an index to a team's store, and merges the store's small packs.

Any number of machines may do that at once: packs are never changed, and vectors that two machines
have written are removed later.
"""

import logging
import time
from collections.abc import AsyncIterator, Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from vector_index_mcp.engine.batched import batched
from vector_index_mcp.engine.models import packs as layout
from vector_index_mcp.engine.store import Index
from vector_index_mcp.engine.store.contents import Contents
from vector_index_mcp.engine.types import Vector
from vector_index_mcp.errors import StorageError, StoreError
from vector_index_mcp.indexing.vectors.packs import Listed, Packs
from vector_index_mcp.indexing.vectors.team import TeamPlace
from vector_index_mcp.objects.opening import opened

_log = logging.getLogger(__name__)

_FILES_AT_ONCE = 500
_MOST_SMALL = 16  # packs that are less than half full; if there are more, they are merged
_KEPT_SECONDS = 86_400.0  # a machine that has listed a pack may still read it for a day

Hashes = npt.NDArray[np.uint64]
"""The first 64 bits of each hash."""


@dataclass(frozen=True, slots=True)
class Given:
    """The result of sharing the vectors of an index."""

    written: int
    """How many vectors were written."""
    known: int
    """How many vectors the store had already."""
    packs: int
    """How many packs were written."""
    requests: int
    bytes_written: int


async def share_vectors(index: Index, place: TeamPlace) -> Given:
    """Write those vectors of `index` to a team's store that the store does not have yet.

    Raises:
        StorageError: If the store refuses or is silent.
        StoreError: If the index cannot be read, or has no vectors.
    """
    model, contents = index.manifest.model, index.store.contents
    if model is None:
        raise StoreError("the index has no vectors yet, so there are none to share")
    packs = Packs(opened(place.uri), model, place.folder)
    await packs.look()
    hashes = await contents.hashes()
    ours = {key for of_file in hashes.values() for key in of_file}
    new = await _unknown(packs, ours)
    count, written = len(new), 0
    async for batch in _batches(contents, hashes, new, layout.most_rows(model)):
        await packs.add(batch)
        written += 1
    try:
        await tidy(packs, time.time())
    except StorageError as error:  # whoever shares next will try it again
        _log.warning("the packs of vectors could not be tidied up: %s", error)
    return Given(count, len(ours) - count, written, packs.requests, packs.bytes_written)


async def _unknown(packs: Packs, hashes: Iterable[str]) -> set[str]:
    """The hashes that no pack has."""
    lacking = set(hashes)
    for listed in packs.listed.values():
        lacking -= (await packs.rows_of(listed, list(lacking))).keys()
    return lacking


async def _batches(
    contents: Contents, hashes: Mapping[str, list[str]], new: set[str], rows: int
) -> AsyncIterator[dict[str, Vector]]:
    """Yield the vectors of `new` hashes, in the order of the files, `rows` at a time."""
    batch: dict[str, Vector] = {}
    wanted = [key for key in sorted(hashes) if not new.isdisjoint(hashes[key])]
    for keys in batched(wanted, _FILES_AT_ONCE):
        for key, vector in (await contents.vectors(keys)).items():
            if key in new:
                new.discard(key)
                batch[key] = vector
            if len(batch) == rows:
                yield batch
                batch = {}
    if batch:
        yield batch


async def tidy(packs: Packs, now: float) -> None:
    """Remove redundant packs, and merge small packs if there are many.

    A pack is redundant if each of its hashes is in a larger pack. All machines agree which of two
    packs is the larger one, so the last pack with a hash is never removed.

    Args:
        packs: The packs of a store.
        now: The current time, in seconds since 1970.

    Raises:
        StorageError: If the store refuses or is silent.
    """
    await packs.look()
    heads = {name: await packs.heads_of(listed) for name, listed in packs.listed.items()}
    old = [each for each in packs.listed.values() if each.modified < now - _KEPT_SECONDS]
    await packs.delete(_replaced(old, heads))
    replaced = set(_replaced(packs.listed.values(), heads))
    room = layout.most_rows(packs.model)
    small = [
        each
        for each in sorted(packs.listed.values(), key=_size)
        if each.name not in replaced and each.shape.rows < room / 2
    ]
    if len(small) > _MOST_SMALL:
        await _merge(packs, small, room)


def _size(listed: Listed) -> tuple[int, str]:
    """The order of packs, which is the same on all machines."""
    return listed.shape.rows, listed.name


def _replaced(listed: Iterable[Listed], heads: Mapping[str, Hashes]) -> list[str]:
    """The names of redundant packs: each of their hashes is in a larger one of `listed`."""
    seen, found = np.array([], "<u8"), []
    for each in sorted(listed, key=_size, reverse=True):
        own = heads[each.name]
        if not len(own):  # its hashes are not known
            continue
        if np.isin(own, seen).all():
            found.append(each.name)
        else:
            seen = np.concatenate([seen, own])
    return found


async def _merge(packs: Packs, small: Iterable[Listed], room: int) -> None:
    """Write one pack with the vectors of the smallest packs, at most `room` vectors.

    A pack with invalid rows is left out: the new pack cannot make it redundant, since only valid
    vectors can be copied.
    """
    merged: dict[str, Vector] = {}
    count = 0
    for listed in small:
        if len(merged) + listed.shape.rows > room:
            break
        vectors = await packs.all_of(listed)
        if len(vectors) == listed.shape.rows:
            merged |= vectors
            count += 1
    if count > _MOST_SMALL:
        await packs.add(merged)
