"""Answers a query that names places: a file's path, a folder, or a message that cites lines.

All chunks of a file have the words of its path, so a search could only prefer the shortest.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import anyio.to_thread

from vector_index_mcp.codebase.cited import Readings, cited, spots_of
from vector_index_mcp.codebase.filters import why_unsearched
from vector_index_mcp.codebase.introduction import AROUND
from vector_index_mcp.codebase.lead import led
from vector_index_mcp.codebase.places import (
    Place,
    Spot,
    alike,
    files_at,
    files_in,
    may_be_path,
    place_of,
)
from vector_index_mcp.engine.ranking.search import SHORT_CHARS, worked_out
from vector_index_mcp.engine.store import Store
from vector_index_mcp.engine.text.words import last_name
from vector_index_mcp.engine.types import NO_FILTERS, Filters, Hit, StoredChunk
from vector_index_mcp.errors import quoted
from vector_index_mcp.files.folder import Folder
from vector_index_mcp.files.language import OTHER, language_of
from vector_index_mcp.indexing.ledger import Ledger

_LIKELY = 0.95  # whoever writes a path means that file, or one of those with that name
_MOST_FILES = 3  # of one name, or in one folder
_READ_AT_ONCE, _MOST_LOOKED_AT = 20, 200  # places; some lie behind the end of their file
_MANY_KEYS = 5_000  # 5 ms
_MOST_CITED = 5  # places of a trace, from its innermost call
_NAME = "path"  # in explanations
_HAS_SPACE = re.compile(r"\s")
_AROUND_PATH = AROUND | frozenset("contents file inside open read see view".split())


@dataclass(frozen=True, slots=True)
class Named:
    """What a query names."""

    hits: list[Hit] = field(default_factory=list)
    """The chunks there, and what the search has found behind them; empty if there are none."""
    remark: str = ""
    """What there is to say of the place, in a sentence; empty for nothing."""
    without_text: tuple[str, ...] = ()
    """The files that are named and that have no text in the index."""
    no_file: str = ""
    """The path that the query is and that no file has; empty for none."""
    meant: str = ""
    """The file with a path like that one, whose chunks come first; empty for none."""


@dataclass(frozen=True, slots=True)
class Namer:
    """Finds what one query names."""

    text: str
    """The query."""
    hits: Sequence[Hit]
    """What a search for it has found, best first."""
    limit: int
    """How many hits are wanted."""
    store: Store
    ledger: Ledger
    filters: Filters
    project: Folder

    async def named(self) -> Named:
        """Find it; nothing if the query names no place, or if a filter chooses the files.

        Raises:
            StoreError: If the index cannot be read.
        """
        if replace(self.filters, folder="") != NO_FILTERS:
            return Named()
        place = place_of(self.text).below(self.project.path)
        places = await worked_out(len(self.text) > SHORT_CHARS, partial(cited, self.text))
        if not (places or may_be_path(place)):
            return Named()
        if any(place.path in hit.chunk.symbols for hit in self.hits):
            return Named()  # a name that the code defines, such as a constant `LICENSE`
        above = f"{self.filters.folder}/" if self.filters.folder else ""
        known = self.ledger.keys()
        keys = [key for key in known if key.startswith(above)] if above else list(known)
        asked = place_of(_asked_about(self.text)).below(self.project.path)
        return (
            await self._at_path(asked, keys)
            or await self._at_cited(places, keys)
            or await self._unsearched(place)
            or (await self._outside(place, known) if above else None)
            or await self._at_path_like(place, keys)
            or self._nowhere(place)
        )

    async def _at_path(self, place: Place, keys: Sequence[str]) -> Named | None:
        files = await self._files_at(place, keys)
        inside = [] if files else await worked_out(_are_many(keys), partial(files_in, place, keys))
        spots = [Spot(file, place.line) for file in files or inside]
        at_spots = await self._behind(spots, _MOST_FILES)
        return at_spots or (Named(without_text=tuple(files)) if files else None)

    async def _files_at(self, place: Place, keys: Sequence[str]) -> list[str]:
        look = partial(files_at, place, keys, self.project.path.name)
        return await worked_out(_are_many(keys), look)

    async def _at_cited(self, places: Sequence[Readings], keys: Sequence[str]) -> Named | None:
        spots = await anyio.to_thread.run_sync(spots_of, places, keys, self.project.path)
        return await self._behind(spots, _MOST_CITED)

    async def _unsearched(self, place: Place) -> Named | None:
        """Say why what exists there is not searched; None if nothing does, or if it is."""
        why = partial(why_unsearched, place.path, self.project, self.ledger)
        remark = await anyio.to_thread.run_sync(why)
        return Named(remark=remark) if remark else None

    async def _outside(self, place: Place, keys: Iterable[str]) -> Named | None:
        """Say that a file lies outside of the folder that is searched; None if there is none."""
        if not (files := await self._files_at(place, list(keys))):
            return None
        where = quoted(self.filters.folder)
        return Named(remark=f"{quoted(files[0])} lies outside of {where}, which was searched.")

    async def _at_path_like(self, place: Place, keys: Sequence[str]) -> Named | None:
        """Find what a mistyped path means; None if the query is no such path.

        Nor is it one if a text has it as it is typed: the address of a page, the name of a product.
        """
        if any(place.path in hit.chunk.text for hit in self.hits):
            return None
        file = await anyio.to_thread.run_sync(alike, place, keys)
        found = await self._behind([Spot(file, place.line)], _MOST_FILES) if file else None
        if found is None:
            return None
        return replace(found, no_file=place.path, meant=file)

    def _nowhere(self, place: Place) -> Named:
        """Return the path as one that no file has, if the query looks like nothing else."""
        is_path = "/" in place.path and "://" not in self.text and not place.path.endswith("/")
        is_file = is_path and not _HAS_SPACE.search(place.path) and language_of(place.name) != OTHER
        return Named(no_file=place.path if is_file else "")

    async def _behind(self, spots: Sequence[Spot], most: int) -> Named | None:
        """Return the hits behind the first `most` of these spots; None if they have no text.

        Spots behind the end of their file are left out, unless all are.
        """
        of_file = await self._texts_of(spots, most)
        known = [spot for spot in spots if of_file.get(spot.key)]
        if not known:
            return None
        reached = [spot for spot in known if spot.line <= of_file[spot.key][-1].end_line]
        firsts = _chunks_at(reached or known, of_file)[:most]
        hits = led(firsts, self.hits, self.limit, name=_NAME, likely=_LIKELY)
        return Named(hits, remark="" if reached else _past(known[0].key, of_file))

    async def _texts_of(self, spots: Sequence[Spot], most: int) -> dict[str, list[StoredChunk]]:
        """Read the files of these spots in order, until `most` spots lie in what was read.

        Of `index.ts` or `__init__.py`, a project may have thousands.
        """
        of_file: dict[str, list[StoredChunk]] = {}
        left = [spot for spot in spots if self._has_text(spot.key)][:_MOST_LOOKED_AT]
        reached = 0
        while left and reached < most:
            now, left = left[:_READ_AT_ONCE], left[_READ_AT_ONCE:]
            new = {spot.key for spot in now} - of_file.keys()
            rows = await self.store.rows(new) if new else {}
            of_file |= {key: [chunk for chunk, _ in found] for key, found in rows.items()}
            lines = {key: chunks[-1].end_line for key, chunks in of_file.items() if chunks}
            reached += sum(spot.line <= lines.get(spot.key, -1) for spot in now)
        return of_file

    def _has_text(self, key: str) -> bool:
        record = self.ledger.get(key)
        return record is None or record.chunk_count > 0


def _are_many(keys: Sequence[str]) -> bool:
    """Whether looking at each of these keys takes longer than others should wait."""
    return len(keys) > _MANY_KEYS


def _asked_about(query: str) -> str:
    """Return the path that a query asks to see, as in "explain src/app.py"; else the query."""
    said = query.rstrip("?.! ").split() if len(query) <= SHORT_CHARS else []
    others = [word for word in said if word.lower() not in _AROUND_PATH]
    return others[0] if len(others) == 1 < len(said) else query


def _past(key: str, of_file: Mapping[str, Sequence[StoredChunk]]) -> str:
    """Say that a file ends before the line that is asked for."""
    return f"The text of {quoted(key)} ends at line {of_file[key][-1].end_line}."


def _chunks_at(
    spots: Iterable[Spot], of_file: Mapping[str, Sequence[StoredChunk]]
) -> list[tuple[StoredChunk, list[StoredChunk]]]:
    """Return the chunk at each of these places, once, with those of its file that follow it.

    That is the chunk of the line, or else the last of the file.
    """
    leading: dict[str, tuple[StoredChunk, list[StoredChunk]]] = {}
    for spot in spots:
        chunks = of_file[spot.key]
        first = _at(chunks, spot)
        behind = [chunk for chunk in chunks if chunk.chunk_index > first.chunk_index]
        leading.setdefault(first.document_id, (first, behind))
    return [*leading.values()]


def _at(chunks: Sequence[StoredChunk], spot: Spot) -> StoredChunk:
    if spot.symbol:
        defining = [c for c in chunks if spot.symbol in map(last_name, c.symbols)]
        return defining[0] if defining else chunks[0]
    return next((chunk for chunk in chunks if spot.line <= chunk.end_line), chunks[-1])
