"""How a live index is: one value that tools, the page and the terminal show in their own ways."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import TYPE_CHECKING, Self

from vector_index_mcp.engine.embedder import Embedder
from vector_index_mcp.engine.types import FileRecord, ModelIdentity
from vector_index_mcp.indexing.ledger import INDEXED, SKIPPED, Ledger
from vector_index_mcp.indexing.run import Run
from vector_index_mcp.indexing.state import State, StateMachine

if TYPE_CHECKING:
    from vector_index_mcp.indexing.cached_embedder import CachedEmbedder
    from vector_index_mcp.indexing.keeper import Kept
    from vector_index_mcp.indexing.opening import Opener
    from vector_index_mcp.indexing.outlook import Outlook
    from vector_index_mcp.indexing.pipeline import Change
    from vector_index_mcp.indexing.remote_opening import RemoteOpener

MOST_LISTED = 20
"""Of files that failed, and of other such lists, so many are named."""
_OVER_LIMIT = "over the limit of files"


@dataclass(frozen=True, slots=True)
class Progress:
    """How far the writer is. Equal values: nothing that somebody could see has changed."""

    state: State
    error: str
    """Why the state is ERROR; otherwise empty."""
    is_writer: bool
    """False while another process writes the index; nothing else is known then."""
    files_done: int
    files_to_do: int
    """Of the run under way; 0 if there is none."""
    run_number: int
    """0 if no run is under way."""
    pending: int
    """Changed files and folders that are not indexed yet."""
    chunks: int
    embedded: int
    """Chunks that have a vector."""
    lacks_vectors: bool
    """Whether chunks wait for their vectors, or may turn out to."""
    embedder_state: str
    embedder_reason: str
    embedder_sharers: int
    """How many services use the process that holds the model; 0 if it is ours alone."""
    embedder_notice: str
    """What must be known about where texts are embedded; empty if a worker does it."""
    revision: tuple[int, int]
    """Differs whenever the ledger does."""

    @classmethod
    def of(cls, kept: "Kept | None", state: StateMachine, embedder: Embedder) -> Self:
        """The progress of what keeps an index; None if another process writes it."""
        run = kept.indexer.runs.current if kept is not None else None
        ledger = kept.indexer.live.ledger if kept is not None else Ledger()
        return cls(
            state=state.current,
            error=state.error or "",
            is_writer=kept is not None,
            files_done=run.files_done if run is not None else 0,
            files_to_do=run.files_to_do if run is not None else 0,
            run_number=run.number if run is not None else 0,
            pending=kept.indexer.pending_path_count if kept is not None else 0,
            chunks=ledger.chunk_count,
            embedded=ledger.chunk_count - ledger.unembedded_count,
            lacks_vectors=kept is not None and kept.vectors.are_lacking,
            embedder_state=embedder.state,
            embedder_reason=embedder.reason,
            embedder_sharers=embedder.sharers,
            embedder_notice=embedder.notice,
            # A rebuild replaces the ledger.
            revision=(id(ledger), ledger.revision) if kept is not None else (0, 0),
        )

    @property
    def waits_for_vectors(self) -> bool:
        """Whether chunks will get vectors as soon as the model is through with them."""
        return self.lacks_vectors and self.embedder_state != "unavailable"

    @property
    def is_busy(self) -> bool:
        """Whether anything is still to be done that does not wait for a model."""
        return bool(self.run_number or self.pending or self.waits_for_vectors)


@dataclass(frozen=True, slots=True)
class Status:
    """Everything that can be said about an index."""

    progress: Progress
    error: str
    """What is wrong with it as a whole; empty if nothing is."""
    run: Run | None
    """Under way."""
    last_run: Run | None
    indexed: int
    """Files."""
    chunks: int
    embedded: int
    masked: int
    """Credentials in indexed texts that were replaced by asterisks."""
    skipped: Mapping[str, int]
    """Files that are not indexed on purpose, by reason."""
    failed: Sequence[FileRecord]
    cut_by_lines: Sequence[FileRecord]
    unreadable: Sequence[str]
    """Folders inside of the index's, of which nothing is known."""
    absent: Mapping[str, str]
    """Folders of the index that are out of reach, by name, and why."""
    last_changes: Sequence["Change"]
    """The newest first."""
    stalls: Sequence[str]
    """What takes unusually long, with its time so far."""
    model: ModelIdentity | None
    """Whose vectors the index holds."""
    precision: str
    chunks_computed: int
    """By the model since the start; vectors from the cache are not counted."""
    worker_pid: int | None
    watching: str
    """`events`, `polling` or `off`."""
    watching_problem: str
    blind_spot: str
    uri: str
    displaced: str
    """Why the index does not lie where it was configured to; empty if it does."""
    writer: str
    """Who writes it, where it does not lie on this machine; empty if nobody knows."""
    size_bytes: int | None
    """On disk; None where that cannot be said cheaply."""
    shared: str = ""
    """What became of the shared index; empty if there is none."""

    @property
    def scan(self) -> Run | None:
        """The run under way, or the last one."""
        return self.run or self.last_run

    @property
    def last_scan(self) -> tuple[datetime | None, datetime | None]:
        """When that began and when it ended."""
        scan = self.scan
        return (scan.started, scan.ended) if scan is not None else (None, None)


def status_of(
    kept: "Kept | None",
    ledger: Ledger,
    progress: Progress,
    *,
    model: ModelIdentity | None,
    cached: "CachedEmbedder",
    last_changes: "Sequence[Change]",
    stalls: Sequence[str],
    problem: str,
    absent: Mapping[str, str],
    opener: "Opener | RemoteOpener",
    size_bytes: int | None,
) -> Status:
    """The status of an index.

    Args:
        kept: What keeps it; None if another process does.
        ledger: What is known of its files.
        progress: How far the writer is.
        model: Whose vectors it holds.
        cached: Makes vectors.
        last_changes: What became of files, the newest first.
        stalls: What takes long.
        problem: Why it cannot be read; empty if it can.
        absent: Folders that are out of reach, by name, and why.
        opener: Knows where it lies, and who writes it.
        size_bytes: On disk.
    """
    indexer, freshness = (kept.indexer, kept.freshness) if kept is not None else (None, None)
    outlook, runs = (indexer.outlook, indexer.runs) if indexer is not None else (None, None)
    return Status(
        progress=progress,
        error=progress.error or problem,
        run=runs.current if runs is not None else None,
        last_run=runs.last if runs is not None else None,
        indexed=ledger.count(INDEXED),
        chunks=ledger.chunk_count,
        embedded=ledger.chunk_count - ledger.unembedded_count,
        masked=ledger.masked_count,
        skipped=_skipped(ledger, outlook),
        failed=[*islice(ledger.failed.values(), MOST_LISTED)],
        cut_by_lines=[*islice(ledger.cut_by_lines.values(), MOST_LISTED)],
        unreadable=outlook.unreadable[:MOST_LISTED] if outlook is not None else [],
        absent=absent,
        last_changes=last_changes,
        stalls=stalls,
        model=model,
        precision=cached.embedder.precision,
        chunks_computed=cached.embedded,
        worker_pid=cached.embedder.pid,
        watching=freshness.mode if freshness is not None else "off",
        watching_problem=freshness.problem if freshness is not None else "",
        blind_spot=freshness.blind_spot if freshness is not None else "",
        uri=opener.uri,
        displaced=opener.displaced,
        writer=opener.writer,
        size_bytes=size_bytes,
    )


def _skipped(ledger: Ledger, outlook: "Outlook | None") -> dict[str, int]:
    left_out = outlook.left_out if outlook is not None else 0
    return ledger.reasons(SKIPPED) | ({_OVER_LIMIT: left_out} if left_out else {})
