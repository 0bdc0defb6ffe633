"""The packs of vectors in a team's store, and the parts of them that are kept on this disk.

The hashes of each pack are read once and kept. A pack that is read as a whole is kept as a whole.
Packs never change, so what is kept is never out of date.
"""

import contextlib
import hashlib
import os
import re
import secrets
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import anyio.to_thread
import numpy as np
import numpy.typing as npt

from vector_index_mcp.engine.models import packs
from vector_index_mcp.engine.models.packs import Shape, Span
from vector_index_mcp.engine.types import ModelIdentity, Vector
from vector_index_mcp.objects.store import Objects, at_once

_ROOT = "vectors-1"
_NAME = re.compile(r"[0-9a-f]{32}\.pack")
# Only the newest packs are used: up to 2,000,000 chunks, whose hashes take 64 MB.
_MOST_PACKS = 512
_MOST_ROWS = 2_000_000
_MOST_BYTES_KEPT = 512_000_000
_HASH_CHARS = 16
_LEFT_OVER_SECONDS = 3_600  # an unfinished file that is older is left from a killed process


@dataclass(frozen=True, slots=True)
class Listed:
    """A pack as the store lists it."""

    name: str
    shape: Shape
    modified: float
    """When the pack was written, by the store's clock, in seconds since 1970."""


class Packs:
    """The packs of one model in a store."""

    def __init__(self, store: Objects, model: ModelIdentity, base: Path) -> None:
        """Prepare; this sends no request.

        Args:
            store: The store of the packs.
            model: The model whose vectors they hold.
            base: The folder below which parts of packs are kept on this disk.
        """
        known = f"{store.uri}\0{model.digest}".encode("utf-8", "surrogateescape")
        self.model = model
        self.listed: dict[str, Listed] = {}
        """The packs whose hashes are kept here, by name, the newest first."""
        self.requests = 0
        self.bytes_read = 0
        self.bytes_written = 0
        self._store = store
        self._folder = base / hashlib.sha256(known).hexdigest()[:_HASH_CHARS]
        self._prefix = f"{_ROOT}/{model.digest}/"
        self._refused: set[str] = set()  # names of objects that are no valid packs of the model
        # What reading parts of each pack has cost, see `packs.cost_of`.
        self._spent: dict[str, int] = {}

    async def look(self) -> bool:
        """List the packs, and read the hashes of new ones.

        Returns:
            Whether there are new packs.

        Raises:
            StorageError: If the store refuses or is silent.
        """
        self.requests += 1
        entries = await self._store.entries(self._prefix)
        found: dict[str, Listed] = {}
        rows = 0
        for entry in sorted(entries, key=lambda entry: entry.modified, reverse=True):
            name = entry.name.removeprefix(self._prefix)
            shape = packs.size_fits(entry.size, self.model)
            if shape is None or not _NAME.fullmatch(name) or name in self._refused:
                continue
            rows += shape.rows
            if rows > _MOST_ROWS or len(found) == _MOST_PACKS:
                break
            found[name] = Listed(name, shape, entry.modified)
        here = await anyio.to_thread.run_sync(self._tidy, set(found))
        known = here & self.listed.keys()
        new = [each for each in found.values() if each.name not in known]
        await at_once(partial(self._learn, listed, found) for listed in new)
        is_new = bool(found.keys() - self.listed.keys())
        self.listed = found
        return is_new

    async def _learn(self, listed: Listed, found: dict[str, Listed]) -> None:
        """Read and keep the hashes of a pack; remove it from `found` if it is no valid pack."""
        if await anyio.to_thread.run_sync(self._kept, listed) is None:
            self.requests += 1
            data = await self._store.part(self._prefix + listed.name, 0, listed.shape.keys_end)
            self.bytes_read += len(data or b"")
            if data is None or not packs.is_head_of(data, self.model, listed.shape):
                found.pop(listed.name, None)
                self._refused.add(listed.name)
            else:
                await anyio.to_thread.run_sync(self._keep, listed, data)

    async def rows_of(self, listed: Listed, wanted: Sequence[str]) -> dict[str, int]:
        """Which rows of a pack hold the vectors of `wanted` hashes."""

        def find() -> dict[str, int]:
            kept = self._kept(listed)
            return packs.rows_of(kept, listed.shape, wanted) if kept is not None else {}

        return await anyio.to_thread.run_sync(find)

    async def heads_of(self, listed: Listed) -> npt.NDArray[np.uint64]:
        """The first 64 bits of each hash of a pack; empty if they are not kept here any more."""
        kept = await anyio.to_thread.run_sync(self._kept, listed)
        return np.array([], "<u8") if kept is None else packs.heads_in(kept, listed.shape)

    async def all_of(self, listed: Listed) -> dict[str, Vector]:
        """All valid vectors of a pack, by hash.

        Raises:
            StorageError: If the store refuses or is silent.
        """
        kept = await anyio.to_thread.run_sync(self._kept, listed)
        if kept is None:
            return {}
        hashes = packs.hashes_in(kept, listed.shape)
        return await self.vectors(listed, {key: row for row, key in enumerate(hashes)})

    async def vectors(self, listed: Listed, rows: Mapping[str, int]) -> dict[str, Vector]:
        """The valid vectors in some rows of a pack, by hash.

        Args:
            listed: The pack.
            rows: The row of each hash, in order, as `rows_of` returns them.

        Raises:
            StorageError: If the store refuses or is silent.
        """
        pieces = await anyio.to_thread.run_sync(self._pieces_here, listed, rows)
        if pieces is None:
            spans = packs.spans_of(rows.values(), listed.shape)
            pieces = await self._pieces_there(listed, spans)
        return await anyio.to_thread.run_sync(packs.vectors_in, pieces, rows, listed.shape)

    async def vectors_here(self, listed: Listed, rows: Mapping[str, int]) -> dict[str, Vector]:
        """Like `vectors`, but only from a pack that is kept here as a whole. Sends no request."""
        pieces = await anyio.to_thread.run_sync(self._pieces_here, listed, rows) if rows else None
        return packs.vectors_in(pieces or (), rows, listed.shape)

    async def _pieces_there(
        self, listed: Listed, spans: Sequence[Span]
    ) -> list[tuple[Span, bytes]]:
        name, shape = listed.name, listed.shape
        cost = self._spent.get(name, 0) + packs.cost_of(spans, shape)
        if packs.is_better_whole(cost, shape):
            return await self._pieces_of_whole(listed, spans)
        self._spent[name] = cost
        pieces: list[tuple[Span, bytes]] = []

        async def read(span: Span) -> None:
            self.requests += 1
            data = await self._store.part(self._prefix + name, *span.place(shape)) or b""
            self.bytes_read += len(data)
            pieces.append((span, data))

        await at_once(partial(read, span) for span in spans)
        return pieces

    async def _pieces_of_whole(
        self, listed: Listed, spans: Sequence[Span]
    ) -> list[tuple[Span, bytes]]:
        self.requests += 1
        content = await self._store.get(self._prefix + listed.name, listed.shape.size)
        if content is None:
            return []
        data = content.data
        self.bytes_read += len(data)
        kept = await anyio.to_thread.run_sync(self._kept, listed)
        if len(data) != listed.shape.size or kept is None or not data.startswith(kept):
            return []  # somebody has overwritten the pack
        await anyio.to_thread.run_sync(self._keep, listed, data)
        places = ((span, *span.place(listed.shape)) for span in spans)
        return [(span, data[start : start + length]) for span, start, length in places]

    async def add(self, vectors: Mapping[str, Vector]) -> None:
        """Write one pack with at most `packs.most_rows` vectors.

        Raises:
            StorageError: If the store refuses or is silent.
        """
        data = await anyio.to_thread.run_sync(packs.pack_of, self.model, vectors)
        await self._store.put(f"{self._prefix}{secrets.token_hex(16)}.pack", data)
        self.requests += 1
        self.bytes_written += len(data)

    async def delete(self, names: Iterable[str]) -> None:
        """Remove packs from the store.

        Raises:
            StorageError: If the store refuses or is silent.
        """
        await self._store.delete([self._prefix + name for name in names])

    # -- on this disk ----------------------------------------------------------------------

    def _kept(self, listed: Listed) -> bytes | None:
        """The head and hashes of a pack; None if they are not kept here or invalid."""
        try:
            with (self._folder / listed.name).open("rb") as file:
                data = file.read(listed.shape.keys_end)
        except OSError:
            return None
        return data if packs.is_head_of(data, self.model, listed.shape) else None

    def _pieces_here(
        self, listed: Listed, rows: Mapping[str, int]
    ) -> list[tuple[Span, bytes]] | None:
        """The rows of a pack from this disk; None if only its hashes are kept."""
        path = self._folder / listed.name
        try:
            with path.open("rb") as file:
                if os.fstat(file.fileno()).st_size != listed.shape.size:
                    return None
                pieces = []
                for span in packs.spans_of(rows.values(), listed.shape, is_near=True):
                    start, length = span.place(listed.shape)
                    file.seek(start)
                    pieces.append((span, file.read(length)))
            os.utime(path)  # `_tidy` removes the file that was used longest ago first
        except OSError:
            return None
        return pieces

    def _keep(self, listed: Listed, data: bytes) -> None:
        """Write a pack, or its hashes, to this disk; on failure it will be requested again."""
        path = self._folder / listed.name
        unfinished = path.with_name(f"{listed.name}.{secrets.token_hex(8)}")
        with contextlib.suppress(OSError):
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            try:
                unfinished.touch(mode=0o600)
                unfinished.write_bytes(data)
                unfinished.replace(path)
            finally:
                unfinished.unlink(missing_ok=True)

    def _tidy(self, names: set[str]) -> set[str]:
        """Remove files of packs that the store no longer lists, and old ones over the size limit.

        Returns:
            The names of the files that remain.
        """
        left: set[str] = set()
        with contextlib.suppress(OSError):
            files = [(path, path.stat()) for path in self._folder.iterdir()]
            total = sum(status.st_size for _, status in files)
            long_ago = time.time() - _LEFT_OVER_SECONDS
            for path, status in sorted(files, key=lambda each: each[1].st_mtime):
                is_left_over = path.name not in names and status.st_mtime < long_ago
                if is_left_over or total > _MOST_BYTES_KEPT:
                    path.unlink(missing_ok=True)
                    total -= status.st_size
                else:
                    left.add(path.name)
        return left


async def count_by_model(store: Objects) -> Counter[str]:
    """How many packs a store has of each model, by its digest.

    Raises:
        StorageError: If the store refuses or is silent.
    """
    names = [entry.name.split("/") for entry in await store.entries(f"{_ROOT}/")]
    return Counter(name[1] for name in names if len(name) == 3 and _NAME.fullmatch(name[2]))
