"""Vectors that a team shares, read ahead of the model, which never waits for them.

What lacks a vector is noted here as soon as it is known; a task of its own looks for it in the
store's packs, while the model works, and puts what it finds into the embedding cache. No vector is
used before some of its pack, chosen at random, are compared with what the model makes of the same
texts here.
"""

import logging
import random
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import anyio
import anyio.to_thread

from vector_index_mcp.engine.cache import EmbeddingCache
from vector_index_mcp.engine.types import ModelIdentity, Vector
from vector_index_mcp.errors import EmbeddingError, StorageError
from vector_index_mcp.indexing.packs import Listed, Packs
from vector_index_mcp.objects.store import opened

_log = logging.getLogger(__name__)

Makes = Callable[[ModelIdentity, Sequence[tuple[str, Vector]]], Awaitable[bool]]
"""Says whether a model makes such vectors of texts."""

# Fewer are embedded in less time than it takes to ask and to compare: so a saved file asks nobody.
_FEWEST = 32
_MOST_WANTED = 16_384  # texts of about 1 KB; what is more is wanted again
_LOOK_SECONDS = 60.0  # between two looks which packs there are
_REST_SECONDS = 300.0  # after which a store that failed is asked again
_SAMPLE, _LATER_SAMPLE = 8, 2  # vectors compared when a pack is read for the first time, and later


OFF = "switched off"
"""Stands in the notice of a store that has lied."""


@dataclass(frozen=True, slots=True)
class TeamPlace:
    """Where a team's vectors are."""

    uri: str
    """A folder or a bucket; empty for none."""
    folder: Path
    """For what is kept of them on this machine."""


class TeamVectors:
    """What a team's store has of the vectors that are lacking here."""

    def __init__(
        self,
        place: TeamPlace | None,
        cache: EmbeddingCache,
        told: Callable[[StorageError], str] = str,
    ) -> None:
        """Ask nothing yet.

        Args:
            place: Where it is; None for nowhere.
            cache: Gets what is found.
            told: What is wrong with a store, and what to do about it.
        """
        self._told = told
        self.deliveries = 0
        """Grows whenever the cache has got vectors."""
        self._place, self._cache = place, cache
        self._model: ModelIdentity | None = None
        self._packs: Packs | None = None
        self._wanted: dict[str, str] = {}
        self._nowhere: set[str] = set()
        self._used: dict[str, int] = {}  # vectors by pack, of packs that were compared
        # Used already, and to be compared with what the model makes.
        self._samples: list[tuple[ModelIdentity, str, Vector, Listed]] = []
        self._is_wanted = anyio.Event()
        self._last_look = -_LOOK_SECONDS
        self._rests_until = 0.0
        self._problem = ""
        self._is_off = place is None

    @property
    def notice(self) -> str:
        """What there is to say about it; empty if there is no store."""
        if self._place is None:
            return ""
        return f"{self._place.uri}: {'; '.join(filter(None, (self._so_far, self._problem)))}"

    @property
    def is_used(self) -> bool:
        """Whether there is a store, and it has not lied."""
        return not self._is_off

    @property
    def _so_far(self) -> str:
        packs = self._packs
        if packs is None:
            return "not asked yet"
        read = f"{sum(self._used.values()):,} vectors used of {len(self._used)} packs"
        return f"{read} ({packs.requests:,} requests, {packs.bytes_read / 1e6:,.1f} MB)"

    def want(self, model: ModelIdentity, texts: Mapping[str, str]) -> None:
        """Have vectors of `texts`, by hash, looked for. Returns at once.

        Args:
            model: Whose vectors.
            texts: As they are embedded; some of them are, to compare.
        """
        now = anyio.current_time()
        if self._is_off or now < self._rests_until:
            return
        if self._model is None or model.digest != self._model.digest:
            self._model, self._packs = model, None
            self._wanted.clear()
            self._nowhere.clear()
            self._samples.clear()
        if now >= self._last_look + _LOOK_SECONDS:
            self._nowhere.clear()  # somebody may have written them meanwhile
        free = _MOST_WANTED - len(self._wanted)
        new = [key for key in texts if key not in self._nowhere and key not in self._wanted]
        self._wanted |= {key: texts[key] for key in new[:free]}
        if len(self._wanted) >= _FEWEST:
            self._is_wanted.set()

    async def at_hand(self, model: ModelIdentity, texts: Mapping[str, str]) -> dict[str, Vector]:
        """Vectors of `texts`, by hash, from packs that lie here whole; the others are wanted.

        Only packs of which vectors were compared before; two more are, a little later.
        """
        found: dict[str, Vector] = {}
        packs = self._packs
        if self.is_used and packs is not None and packs.model.digest == model.digest:
            for listed in [packs.listed[name] for name in self._used if name in packs.listed]:
                lacking = [key for key in texts if key not in found]
                if len(lacking) < _FEWEST:
                    break
                new = await packs.vectors_here(listed, await packs.rows_of(listed, lacking))
                self._used[listed.name] += len(new)
                for key in _some(new, _LATER_SAMPLE):
                    self._samples.append((model, texts[key], new[key], listed))
                    self._is_wanted.set()
                found |= new
            await anyio.to_thread.run_sync(self._cache.put, model, found)
        self.want(model, {key: text for key, text in texts.items() if key not in found})
        return found

    def may_have(self, key: str) -> bool:
        """Whether a vector may still be found: the model makes the others first."""
        return key in self._wanted

    def forget(self, keys: Mapping[str, Vector]) -> None:
        """Look no longer for what the model has made meanwhile."""
        for key in keys:
            self._wanted.pop(key, None)

    async def read_forever(self, makes: Makes) -> None:
        """Look for what is wanted, until cancelled or until the store has lied.

        Args:
            makes: Compares vectors with what the model makes here.
        """
        while not self._is_off:
            await self._is_wanted.wait()
            self._is_wanted = anyio.Event()
            try:
                await self._compare(makes)
                if len(self._wanted) >= _FEWEST:  # else made or given up meanwhile
                    await self._read(makes)
            except StorageError as error:
                self._rests_until = anyio.current_time() + _REST_SECONDS
                self._problem = f"left alone for {_REST_SECONDS / 60:g} min: {self._told(error)}"
                _log.warning("the team's vectors: %s", self._problem)
                self._wanted.clear()
            except EmbeddingError:  # without the model nothing can be compared, and nothing asked
                self._wanted.clear()

    async def _compare(self, makes: Makes) -> None:
        """Compare vectors that are used already, as some of their packs were before."""
        samples, self._samples = self._samples, []
        for model, text, vector, listed in samples:
            is_current = self._model is not None and self._model.digest == model.digest
            if is_current and not await makes(model, [(text, vector)]):
                self._switch_off(listed)
                return

    async def _read(self, makes: Makes) -> None:
        packs = await self._looked()
        if self._packs is not packs:  # another model is wanted by now, of which `want` has told
            return
        wanted = dict(self._wanted)
        for listed in list(packs.listed.values()):
            if len(wanted) < _FEWEST:
                break
            rows = await packs.rows_of(listed, list(wanted))
            if len(rows) < _FEWEST:
                continue
            vectors = await packs.vectors(listed, rows)
            if not vectors:
                continue
            count = _LATER_SAMPLE if listed.name in self._used else _SAMPLE
            keys = _some(vectors, count)
            if not await makes(packs.model, [(wanted[key], vectors[key]) for key in keys]):
                self._switch_off(listed)
                return
            await anyio.to_thread.run_sync(self._cache.put, packs.model, vectors)
            if self._packs is not packs:
                return
            self._used[listed.name] = self._used.get(listed.name, 0) + len(vectors)
            self.deliveries += 1
            self.forget(vectors)
            wanted = {key: text for key, text in wanted.items() if key not in vectors}
        for key in wanted:
            self._wanted.pop(key, None)
        self._nowhere |= wanted.keys()

    async def _looked(self) -> Packs:
        """The packs of the model, as they were a minute ago or later."""
        assert self._place is not None
        assert self._model is not None
        packs = self._packs
        if packs is None:
            packs = self._packs = Packs(opened(self._place.uri), self._model, self._place.folder)
            self._last_look = -_LOOK_SECONDS
        now = anyio.current_time()
        if now >= self._last_look + _LOOK_SECONDS:
            self._last_look = now
            if await packs.look():
                self._nowhere.clear()
            self._problem = ""
        return packs

    def _switch_off(self, listed: Listed) -> None:
        self._is_off = True
        self._wanted.clear()
        self._problem = (
            f"{OFF}: the pack {listed.name} has vectors that this model does not make of "
            "their texts; delete it there, and find out who has written it"
        )
        _log.warning("the team's vectors: %s", self._problem)


def _some(vectors: Mapping[str, Vector], count: int) -> list[str]:
    """Some of the hashes, chosen so that nobody can foresee them."""
    return random.SystemRandom().sample(list(vectors), min(count, len(vectors)))
