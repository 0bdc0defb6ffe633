"""The status of a live index: one value, which tools, page and terminal show in their own ways."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import TYPE_CHECKING, Self

from vector_index_mcp.engine.models.embedder import Embedder
from vector_index_mcp.engine.types import FileRecord, ModelIdentity
from vector_index_mcp.errors import ModelNotFoundError, StorageError
from vector_index_mcp.indexing.ledger import Ledger
from vector_index_mcp.indexing.noticing import Noticing
from vector_index_mcp.indexing.reasons import INDEXED, SKIPPED
from vector_index_mcp.indexing.state import State, StateMachine
from vector_index_mcp.indexing.writing.run import TRIES_OF_A_RUN, Kind, Run

if TYPE_CHECKING:
    from vector_index_mcp.indexing.keeper import Kept
    from vector_index_mcp.indexing.looking.outlook import Outlook
    from vector_index_mcp.indexing.opening.local import Opener
    from vector_index_mcp.indexing.opening.remote import RemoteOpener
    from vector_index_mcp.indexing.vectors.cached_embedder import CachedEmbedder
    from vector_index_mcp.indexing.writing.pipeline import Change

MOST_LISTED = 20
"""How many files a list names at most, such as that of failed files."""
_OVER_LIMIT = "over the limit of files"


@dataclass(frozen=True, slots=True)
class Progress:
    """The writer's progress. If two values are equal, nothing that a user sees has changed."""

    state: State
    error: str
    """Why the state is ERROR; otherwise empty."""
    is_writer: bool
    """False while another process writes the index; all counts are 0 then."""
    files_done: int
    files_to_do: int
    """Like `files_done`, of the run under way; 0 if there is none."""
    run_number: int
    """The number of the run under way; 0 if there is none."""
    is_catching_up: bool
    """Whether the index was opened just now, and is still being compared with the disk."""
    pending: int
    """How many changed files and folders are not indexed yet."""
    chunks: int
    embedded: int
    """How many chunks have a vector."""
    lacks_vectors: bool
    """Whether chunks wait for vectors, or may have to be embedded again."""
    vectors_failure: str
    """Why vectors cannot be made or stored; empty if they can, as far as is known."""
    embedder_state: str
    embedder_reason: str
    embedder_sharers: int
    """How many services share the embedding worker; 0 if this service has one of its own."""
    embedder_notice: str
    """What users must know if a server embeds their texts; empty if a worker does it."""
    revision: tuple[int, int]
    """Changes whenever the ledger changes."""
    is_failing: bool
    """Whether the index could not be written in as many tries as a run has."""

    @classmethod
    def of(cls, kept: "Kept | None", state: StateMachine, embedder: Embedder) -> Self:
        """The progress of the parts that keep an index.

        Args:
            kept: The parts; None if another process writes the index.
            state: The state of the service.
            embedder: Makes the vectors.
        """
        run = kept.indexer.runs.current if kept is not None else None
        ledger = kept.indexer.live.ledger if kept is not None else Ledger()
        return cls(
            state=state.current,
            error=state.error or "",
            is_writer=kept is not None,
            files_done=run.files_done if run is not None else 0,
            files_to_do=run.files_to_do if run is not None else 0,
            run_number=run.number if run is not None else 0,
            is_catching_up=run is not None and run.kind is Kind.START,
            pending=kept.indexer.outdated_path_count if kept is not None else 0,
            chunks=ledger.chunk_count,
            embedded=ledger.chunk_count - ledger.unembedded_count,
            lacks_vectors=kept is not None and kept.vectors.are_lacking,
            vectors_failure=kept.vectors.failure if kept is not None else "",
            embedder_state=embedder.state,
            embedder_reason=embedder.reason,
            embedder_sharers=embedder.sharers,
            embedder_notice=embedder.notice,
            # A rebuild replaces the ledger.
            revision=(id(ledger), ledger.revision) if kept is not None else (0, 0),
            is_failing=kept is not None and kept.indexer.failures >= TRIES_OF_A_RUN,
        )

    @property
    def waits_for_vectors(self) -> bool:
        """Whether chunks wait for vectors, the model can make them and the index takes them."""
        can_be_made = self.embedder_state != "unavailable" and not self.vectors_failure
        return self.lacks_vectors and can_be_made

    @property
    def is_embedding(self) -> bool:
        """Whether vectors are being made. An index that cannot be written gets none."""
        return self.waits_for_vectors and not self.is_failing

    def check_vectors(self) -> None:
        """Check that no chunk lacks its vector, if nobody waits for one.

        Raises:
            ModelNotFoundError: If the model is missing.
            StorageError: If vectors cannot be compared or stored.
        """
        if self.vectors_failure:
            raise StorageError(self.vectors_failure)
        if self.lacks_vectors:
            raise ModelNotFoundError(self.embedder_reason)

    @property
    def is_busy(self) -> bool:
        """Whether there is work that does not have to wait for an unavailable model."""
        return bool(self.pending) or self.is_lengthy

    @property
    def is_lengthy(self) -> bool:
        """The same without changes that are followed at once: some files change all the time."""
        return bool(self.run_number or self.waits_for_vectors)


@dataclass(frozen=True, slots=True)
class Status:
    """Everything that is known about an index."""

    progress: Progress
    error: str
    """What is wrong with the index as a whole; empty if nothing is."""
    run: Run | None
    """The run under way."""
    last_run: Run | None
    """The run that ended last."""
    indexed: int
    """How many files are indexed."""
    chunks: int
    embedded: int
    """How many chunks have a vector."""
    given_up: int
    """How many chunks will get none, because the model failed on them."""
    masked: int
    """How many credentials in indexed texts were masked."""
    masked_files: Sequence[str]
    """Some of the files that they stand in."""
    skipped: Mapping[str, int]
    """How many files are not indexed on purpose, by reason."""
    passed_over: Sequence[FileRecord]
    """Some of these that may be texts."""
    failed: Sequence[FileRecord]
    cut_by_lines: Sequence[FileRecord]
    unreadable: Sequence[str]
    """Keys of folders inside of the index's that cannot be read."""
    disobeyed: Mapping[str, str]
    """Keys of ignore files that git obeys and this does not, being too large or unreadable."""
    absent: Mapping[str, str]
    """Folders of the index that are out of reach, by name, and why."""
    last_changes: Sequence["Change"]
    """The last changes, the newest first."""
    stalls: Sequence[str]
    """The steps that take unusually long, each with its time so far."""
    model: ModelIdentity | None
    """The model of the index's vectors."""
    precision: str
    chunks_computed: int
    """How many chunks the model embedded since the start; the cache's do not count."""
    worker_pid: int | None
    noticing: Noticing
    uri: str
    displaced: str
    """Why the index does not lie at the configured place; empty if it does."""
    writer: str
    """The writer of an index that does not lie on this machine; empty for a local one."""
    size_bytes: int | None
    """The size on disk; None if it is unknown."""
    shared: str = ""
    """The state of the shared index, as a phrase; empty if there is none."""

    @property
    def scan(self) -> Run | None:
        """The run under way, or the last one."""
        return self.run or self.last_run

    @property
    def last_scan(self) -> tuple[datetime | None, datetime | None]:
        """When `scan` began and ended; None for what is not known yet."""
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
        kept: The parts that keep the index; None if another process does.
        ledger: What is known of its files.
        progress: The writer's progress.
        model: The model of the index's vectors.
        cached: Makes vectors.
        last_changes: The last changes, the newest first.
        stalls: The steps that take unusually long.
        problem: Why the index cannot be read; empty if it can.
        absent: Folders that are out of reach, by name, and why.
        opener: Knows the index's place and its writer.
        size_bytes: The size on disk.
    """
    outlook, runs = (kept.indexer.outlook, kept.indexer.runs) if kept else (None, None)
    return Status(
        progress=progress,
        error=progress.error or progress.vectors_failure or problem,
        run=runs.current if runs is not None else None,
        last_run=runs.last if runs is not None else None,
        indexed=ledger.count(INDEXED),
        chunks=ledger.chunk_count,
        embedded=ledger.chunk_count - ledger.unembedded_count,
        given_up=ledger.given_up_count,
        masked=ledger.masked_count,
        masked_files=[*islice(ledger.masked, MOST_LISTED)],
        skipped=_skipped(ledger, outlook),
        passed_over=[*islice(ledger.passed_over.values(), MOST_LISTED)],
        failed=[*islice(ledger.failed.values(), MOST_LISTED)],
        cut_by_lines=[*islice(ledger.cut_by_lines.values(), MOST_LISTED)],
        unreadable=outlook.unreadable[:MOST_LISTED] if outlook is not None else [],
        disobeyed=dict(islice(outlook.disobeyed.items(), MOST_LISTED)) if outlook else {},
        absent=absent,
        last_changes=last_changes,
        stalls=stalls,
        model=model,
        precision=cached.embedder.precision,
        chunks_computed=cached.embedded,
        worker_pid=cached.embedder.pid,
        noticing=kept.freshness.noticing if kept is not None else Noticing("off"),
        uri=opener.uri,
        displaced=opener.displaced,
        writer=opener.writer,
        size_bytes=size_bytes,
    )


def _skipped(ledger: Ledger, outlook: "Outlook | None") -> dict[str, int]:
    left_out = outlook.left_out if outlook is not None else 0
    return ledger.reasons(SKIPPED) | ({_OVER_LIMIT: left_out} if left_out else {})
