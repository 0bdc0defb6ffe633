"""Makes the table of a dataset in our own format, and keeps the facts about it."""

import hashlib
import json
import os
import secrets
import shutil
import time
from collections.abc import (
    AsyncIterator,
    Callable,
    Collection,
    Iterable,
    Mapping,
    Sequence,
    Set,
)
from contextlib import asynccontextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from vector_index_mcp.datasets import rows
from vector_index_mcp.datasets.finding import Stamp
from vector_index_mcp.datasets.limits import MOST_DIMENSIONS, MOST_NUMBERS
from vector_index_mcp.datasets.manifest import FACTS
from vector_index_mcp.datasets.metadata import Text
from vector_index_mcp.datasets.refusal import BadDatasetError
from vector_index_mcp.engine.store import Index
from vector_index_mcp.engine.store.index import Manifest
from vector_index_mcp.engine.types import ModelIdentity, Vector
from vector_index_mcp.errors import OtherVersionError
from vector_index_mcp.files import plain

PART = ".part"
"""The ending of the name of a folder that is not finished yet."""
_PART_SECONDS = 3_600.0  # after that, its process was killed
_LARGEST_FACTS_BYTES = 10_000
_LONGEST_MODEL = 512
_TOKEN_BYTES = 4
_HASH_CHARS = 24
# How long an unused table is kept: its dataset may come back, another process may be writing it.
_UNUSED_SECONDS = 3_600.0
_AWAY_SECONDS = 30 * 86_400.0  # the same, while its dataset may be on a drive that is away
_NOTED_SECONDS = 60.0  # how often it is noted that a table is used
Metric = Literal["product", "distance"]


def is_left(part: Path) -> bool:
    """Return whether a folder that is not finished was left by a process that was killed."""
    try:
        return time.time() - part.lstat().st_mtime > _PART_SECONDS
    except OSError:
        return False


@dataclass(frozen=True, slots=True)
class Facts:
    """The facts about a dataset's table."""

    model: str
    dimension: int
    count: int
    """How many rows the table has."""
    metric: Metric
    """Whether near vectors have a large inner product, or a small distance."""
    is_unit: bool
    """Whether all vectors have unit length, so that both metrics give the same order."""


class Rows:
    """A table that is being written."""

    def __init__(self, index: Index, first: int = 0) -> None:
        """Add rows to `index`; the next row gets the number `first`."""
        self._index = index
        self._next = first
        self.count = 0
        """How many rows were added."""

    async def add(self, texts: Sequence[Text], vectors: Iterable[Vector | None]) -> None:
        """Add rows, in order. A row without a vector is found only by its words."""
        numbers = range(self._next, self._next + len(texts))
        documents = [rows.document(n, text) for n, text in zip(numbers, texts, strict=True)]
        given = zip(numbers, vectors, strict=True)
        by_hash = {rows.hash_of(n): vector for n, vector in given if vector is not None}
        await self._index.store.append(documents, self._next + 1, by_hash)
        self._next = numbers.stop
        self.count += len(numbers)


@asynccontextmanager
async def making(folder: Path, model: ModelIdentity) -> AsyncIterator[Rows]:
    """Create a table in `folder`, and build its search indexes at the end of this context.

    Raises:
        StoreError: If it cannot be written.
    """
    index = await Index.create(str(folder), Manifest("", rows.CHUNKER, model=model))
    try:
        yield Rows(index)
        await index.store.maintain(is_private=True)
    finally:
        index.close()


async def opened(folder: Path) -> Index:
    """Open the table in `folder`.

    Raises:
        BadDatasetError: If there is none, or if another version of this program has made it.
        StoreError: If it cannot be read.
    """
    index = None
    with suppress(OtherVersionError):
        index = await Index.open(str(folder))
    if index is None or index.manifest.chunker != rows.CHUNKER:
        raise BadDatasetError(
            "its table was made by another version of this program; make it again"
        )
    return index


@asynccontextmanager
async def adding(folder: Path, known: Collection[str]) -> AsyncIterator[tuple[Index, Rows]]:
    """Add rows to the table in `folder`, after removing those with the paths in `known`.

    Raises:
        BadDatasetError: See `opened`.
        StoreError: If it cannot be read or written.
    """
    index = await opened(folder)
    try:
        keys = [*await index.store.holdings()]
        first = 1 + max((rows.number_in(key) for key in keys), default=-1)
        replaced = [key for key in keys if rows.path_in(key) in known]
        await index.store.delete(replaced)
        yield index, Rows(index, first)
        if replaced:  # a dataset may be given away: remove the old rows from its files, too
            await index.store.renew()
        else:
            await index.store.maintain(is_private=True)
    finally:
        index.close()


def write_facts(folder: Path, facts: Facts) -> None:
    """Write the facts about a table, in one step.

    The file is replaced, not changed: a hard link to the old one may belong to another table.
    """
    part = folder / f".{FACTS}{PART}"
    part.write_text(json.dumps(asdict(facts)), encoding="utf-8")
    part.replace(folder / FACTS)


def name_of(stamp: Stamp) -> str:
    """Return the name in the cache for the table of a dataset with this stamp."""
    facts = (rows.CHUNKER, stamp)
    return hashlib.sha256(repr(facts).encode("utf-8", "replace")).hexdigest()[:_HASH_CHARS]


def put_in_place(part: Path, folder: Path) -> None:
    """Rename a finished table from `part` to `folder`, in our own cache.

    Raises:
        OSError: If it cannot be renamed.
    """
    try:
        part.rename(folder)
    except OSError:  # another process was faster, or has left an unfinished table
        shutil.rmtree(folder, ignore_errors=True)
        part.rename(folder)


def is_ours(folder: Path) -> bool:
    """Return whether a folder holds a table in our format."""
    return os.path.isfile(folder / FACTS)  # `Path.is_file` raises if the folder cannot be entered


def facts_of(folder: Path) -> Facts:
    """Read the facts about the table in a folder, which may be foreign.

    Raises:
        BadDatasetError: If they cannot be read.
    """
    try:
        with plain.opened(folder / FACTS) as file:
            found: dict[str, Any] = json.loads(file.read(_LARGEST_FACTS_BYTES))
        facts = Facts(**found)
    except (OSError, ValueError, TypeError, RecursionError) as error:
        raise BadDatasetError(f"its table's {FACTS} cannot be read ({error})") from error
    if not _make_sense(found):
        raise BadDatasetError(f"its table's {FACTS} is not valid; get the dataset once more")
    return facts


def _make_sense(found: Mapping[str, Any]) -> bool:
    numbers, model = (found["dimension"], found["count"]), found["model"]
    if {type(number) for number in numbers} != {int} or not isinstance(model, str):
        return False
    return (
        0 < numbers[0] <= MOST_DIMENSIONS
        and 0 <= numbers[1] <= MOST_NUMBERS
        and 0 < len(model) <= _LONGEST_MODEL
        and found["metric"] in ("product", "distance")
        and isinstance(found["is_unit"], bool)
    )


def out_of_the_way(folder: Path) -> Path:
    """Rename a table, so that a new one can be made at once; return where it is now."""
    gone = folder.with_name(f"{folder.name}.{secrets.token_hex(_TOKEN_BYTES)}{PART}")
    try:
        folder.rename(gone)
    except FileNotFoundError:  # there is nothing to remove, but soon a new table
        return gone
    except OSError:  # as on Windows, while a search has its files open
        return folder
    return gone


def remove_unused(folder: Path, needed: Callable[[], tuple[Set[str], bool]]) -> None:
    """Remove the tables in a folder that nobody has used for an hour, also unfinished ones.

    The time of a table's folder says when it was last used, for all processes: it is set anew here.

    Args:
        folder: The folder.
        needed: Returns the names of the tables that are used, and whether these are surely all: if
            not, others are kept for a month. Called if any table has not been used just now.
    """
    now, old = time.time(), []
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            with suppress(OSError):  # another process has just removed it
                age = now - entry.stat(follow_symlinks=False).st_mtime
                if age >= _NOTED_SECONDS and not entry.is_symlink():
                    old.append((entry, age))
    if not old:
        return
    names, are_all = needed()
    longest = _UNUSED_SECONDS if are_all else _AWAY_SECONDS
    for entry, age in old:
        if entry.name in names:
            with suppress(OSError):
                os.utime(entry)
        elif age >= longest:
            shutil.rmtree(entry, ignore_errors=True)
