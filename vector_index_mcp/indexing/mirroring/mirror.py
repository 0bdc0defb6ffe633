"""Fills an empty index with one that somebody has published of the same project.

If anything goes wrong, that is reported once, and the files are then indexed as usual.
"""

import logging
import shutil
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import anyio
import anyio.to_thread

from vector_index_mcp.engine.models.embedder import Embedder
from vector_index_mcp.engine.store import Index
from vector_index_mcp.engine.store.entries import is_table
from vector_index_mcp.engine.store.index import discard
from vector_index_mcp.engine.store.reach import is_local
from vector_index_mcp.errors import StorageError, sentence
from vector_index_mcp.indexing.mirroring import limits
from vector_index_mcp.indexing.mirroring.fetching import RECORDS, Fetch, fetch
from vector_index_mcp.indexing.mirroring.layout import Snapshot
from vector_index_mcp.indexing.mirroring.origin import Origin
from vector_index_mcp.indexing.mirroring.reading import branches_of, first_snapshot_of
from vector_index_mcp.indexing.place import Place
from vector_index_mcp.indexing.remedies import Remedies
from vector_index_mcp.objects.opening import opened
from vector_index_mcp.objects.store import Objects
from vector_index_mcp.processes import errand

_log = logging.getLogger(__name__)

FETCHED = "index.fetched"
"""The folder to fetch to. It lies in the index's folder, so that moving the files is instant."""
_PROVING = "vector_index_mcp.indexing.mirroring.proving"
_NOTHING = "nothing is published there for a branch of this project"
_MANIFEST = "manifest.lance"


@dataclass(frozen=True, slots=True)
class Shared:
    """Where somebody publishes the index of a project."""

    uri: str
    branch: str = ""
    """The branch to fetch; empty for the one that the project is on."""

    @classmethod
    def of(cls, configured: str, branch: str) -> "Shared | None":
        """Make one of the setting's value; None if that is empty."""
        return cls(configured, branch) if configured else None


class Mirror:
    """Fetches the published index of one project."""

    def __init__(
        self,
        shared: Shared,
        place: Place,
        chunker: str,
        embedder: Embedder,
        remedies: Remedies,
    ) -> None:
        """Prepare; `fill` does the work.

        Args:
            shared: Where the index is published.
            place: Where the index of the project lies.
            chunker: The chunker's version that the published chunks must have.
            embedder: Knows the model that the published vectors must be of.
            remedies: What to do about an error.
        """
        self.refusal = ""
        """Why nothing was fetched; empty if something was fetched, or nothing was needed."""
        self.progress: Fetch | None = None
        """The progress of the fetch under way; None if there is none."""
        self._of = ""
        self._shared = shared
        self._place = place
        self._chunker = chunker
        self._embedder = embedder
        self._remedies = remedies

    @property
    def description(self) -> str:
        """The progress of the fetch, or why there was none; empty if there is nothing to report."""
        if self.progress is None:
            return f"not used: {self.refusal}" if self.refusal else ""
        done, total = (size / 1e6 for size in (self.progress.bytes_done, self.progress.total))
        return f"fetching the shared index of {self._of}, {done:,.0f} of {total:,.0f} MB"

    async def fill(self, uri: str, index: Index | None, check: Callable[[], None]) -> bool:
        """Replace an empty or missing index by the published one.

        Args:
            uri: Where the index lies. The caller holds the writer's lock.
            index: The open index; None if there is none.
            check: Raises LostIndexError once the index's folder was replaced.

        Returns:
            False if nothing was replaced; `refusal` may say why.

        Raises:
            StoreError: If the index cannot be read or replaced.
        """
        if not is_local(uri):
            return False
        if index is not None and (await index.store.count() or await index.store.records()):
            return False
        self.refusal = ""
        try:
            objects = opened(self._shared.uri)
            snapshot = await self._snapshot(objects)
            if snapshot is None:
                self.refusal = _NOTHING
                return False
            self.refusal = await self._why_not(snapshot)
            if not self.refusal:
                await self._fetch(objects, snapshot, Path(uri), check)
        except StorageError as error:
            self.refusal = self._remedies.message(error)
        except OSError as error:
            self.refusal = sentence(error)
        if self.refusal:
            _log.warning("the shared index is not used: %s; indexing as usual", self.refusal)
        return not self.refusal

    async def _snapshot(self, objects: Objects) -> Snapshot | None:
        """The published snapshot of the project's branch, or else of the default branch."""
        names = await anyio.to_thread.run_sync(branches_of, self._place.home, self._shared.branch)
        try:
            with anyio.fail_after(limits.ASKING_SECONDS):
                return await first_snapshot_of(objects, names)
        except TimeoutError:
            raise StorageError(f"no answer within {limits.ASKING_SECONDS:.0f} s") from None

    async def _why_not(self, snapshot: Snapshot) -> str:
        """Why a snapshot cannot be used here; empty if it can."""
        model = await self._embedder.identity_at_hand()
        lack = snapshot.made.why_not(self._chunker, model)
        return f"that of {snapshot.description} {lack}" if lack else ""

    async def _fetch(
        self, objects: Objects, snapshot: Snapshot, folder: Path, check: Callable[[], None]
    ) -> None:
        self._of, self.progress = snapshot.description, Fetch(snapshot.size)
        beside = folder / FETCHED
        try:
            async with errand.begun(_PROVING) as prover:  # the process starts during the fetch
                await _bounded_fetch(objects, snapshot, beside, self.progress)
                await self._prove(prover, snapshot, beside)
            check()
            await discard(str(folder))
            await anyio.to_thread.run_sync(_move, beside, folder, Origin(snapshot.description))
            _log.info("fetched the shared index of %s", snapshot.description)
        finally:
            self.progress = None

    async def _prove(self, prover: errand.Errand, snapshot: Snapshot, beside: Path) -> None:
        """Have a separate process read the fetched files, and make an index of them.

        Raises:
            StorageError: If the files make no sound index.
        """
        await prover.tell(
            {
                "folder": str(beside),
                "records": str(beside / RECORDS),
                "owner": self._place.owner,
                "chunker": self._chunker,
                "model": asdict(snapshot.made.model),
            }
        )
        seconds = limits.PROVING_SECONDS + snapshot.size / limits.PROVED_BYTES_PER_SECOND
        try:
            problem = (await prover.answer(seconds)).get("error")
        except errand.ErrandError as error:
            problem = str(error)
        if problem:  # a further fetch would bring the same files
            await anyio.to_thread.run_sync(partial(shutil.rmtree, beside, ignore_errors=True))
            raise StorageError(f"that of {snapshot.description} is damaged: {problem:.300}")


async def _bounded_fetch(
    objects: Objects, snapshot: Snapshot, folder: Path, progress: Fetch
) -> None:
    """Fetch, but not for longer than indexing would take.

    Raises:
        StorageError: If it takes longer, or as `fetch` does.
    """
    seconds = limits.FETCHING_SECONDS + snapshot.size / limits.FETCHED_BYTES_PER_SECOND
    seconds = min(seconds, limits.MOST_FETCHING_SECONDS)
    try:
        with anyio.fail_after(seconds):
            await fetch(objects, snapshot, folder, progress)
    except TimeoutError:
        raise StorageError(
            f"it was not fetched within {seconds:.0f} s, and indexing takes no longer than that"
        ) from None


def _move(source: Path, folder: Path, origin: Origin) -> None:
    """Move the fetched tables into the folder of an index, and note their origin there.

    The manifest comes last, since a folder without it counts as no index.
    """
    names = [path.name for path in source.iterdir() if is_table(path.name)]
    origin.write(folder)
    for name in sorted(names, key=lambda name: name == _MANIFEST):
        (source / name).rename(folder / name)
    shutil.rmtree(source, ignore_errors=True)
