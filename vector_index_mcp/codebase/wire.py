"""The models of the answers of `trigger_index` and `get_status`, made from the service's values.

`vector-index-mcp status --json` prints exactly this model; `hits` has those of a search.
"""

import os
from datetime import datetime
from typing import TYPE_CHECKING, Literal

from pydantic import BaseModel, Field

from vector_index_mcp.indexing.writing.run import Run
from vector_index_mcp.processes import memory

if TYPE_CHECKING:  # imports LanceDB, for which `tools` must not wait
    from vector_index_mcp.codebase.service import Codebase


class RunReport(BaseModel):
    """One run: a comparison of the project with the index, under way or finished."""

    kind: str = Field(description="start, rescan, request or rebuild")
    finished: bool
    error: str | None = None
    seconds: float
    seconds_left: float | None = Field(None, description="Estimate; null when there is none")
    files_seen: int = Field(description="Files that are not ignored")
    files_to_do: int = Field(description="Of these, new or changed since, plus vanished ones")
    files_done: int
    files_read: int
    files_indexed: int
    files_unchanged: int = Field(description="Read, but with the bytes they had before")
    files_skipped: int
    files_failed: int
    files_removed: int
    chunks_indexed: int


class TriggerResult(BaseModel):
    """The answer of `trigger_index`."""

    message: str
    complete: bool = Field(description="Whether the index now matches the project")
    run: RunReport
    indexed_file_count: int
    indexed_chunk_count: int
    embedded_chunk_count: int


class ModelStatus(BaseModel):
    """The embedding model."""

    name: str | None = Field(None, description="The model whose vectors the index holds")
    dimension: int | None = None
    state: str = Field(description="off (until needed), loading, ready or unavailable")
    reason: str | None = Field(None, description="Why it is unavailable, and the remedy")
    precision: str | None = None
    server: str | None = Field(
        None, description="Which server embeds, if one does, and whether texts leave this machine"
    )
    chunks_embedded: int = Field(description="Computed since the start; cached ones not counted")
    team_vectors: str | None = Field(
        None, description="How many of a team's vectors are used, and what is wrong with its store"
    )


class WatcherStatus(BaseModel):
    """How changes are noticed."""

    mode: str = Field(description="events, polling, or off")
    problem: str | None = None
    blind_spot: str | None = Field(
        None, description="Which changes are not noticed at once, and how soon they are found"
    )


class FileChange(BaseModel):
    """How the index changed for one file."""

    file_path: str = Field(description="Path relative to the project, with forward slashes")
    change: str = Field(description="indexed, skipped, failed or removed")
    time: datetime = Field(description="When the index held it")


class QueryStatus(BaseModel):
    """The queries since the start."""

    answered: int
    last_time: datetime | None = None
    last_seconds: float | None = Field(None, description="How long the last answer took")


class IndexStatus(BaseModel):
    """The answer of `get_status`."""

    project_path: str
    status: Literal["INITIALIZING", "SCANNING", "WATCHING", "ERROR"]
    last_scan_start_time: datetime | None
    last_scan_end_time: datetime | None
    indexed_chunk_count: int
    error_message: str | None
    indexed_file_count: int
    embedded_chunk_count: int
    pending_path_count: int = Field(description="Changed paths that wait to be indexed")
    current_run: RunReport | None
    last_run: RunReport | None
    waiting_for: list[str] = Field(description="What takes unusually long, with its time so far")
    model: ModelStatus
    watcher: WatcherStatus
    is_writer: bool = Field(description="False while another process keeps this index fresh")
    skipped: dict[str, int] = Field(description="Files not indexed on purpose, by reason")
    skipped_files: dict[str, str] = Field(
        {}, description="Some of these files that may be texts, with the reason"
    )
    masked_credential_count: int = Field(
        description="Credentials in indexed texts that were replaced by asterisks"
    )
    masked_files: list[str] = Field([], description="Some of the files that these stand in")
    failed: dict[str, str] = Field(description="Files that could not be indexed, with the reason")
    cut_by_lines: dict[str, str] = Field(
        description="Indexed files that could not be parsed, with the reason: no definitions known"
    )
    unreadable_folders: list[str]
    last_changes: list[FileChange] = Field(
        description="The last files that were indexed or forgotten, newest first; 10 at most"
    )
    queries: QueryStatus
    index_location: str
    index_problem: str | None = Field(
        None, description="Why the index does not lie at the configured place"
    )
    index_writer: str | None = Field(
        None, description="Who writes an index that does not lie on this machine"
    )
    index_bytes: int | None
    given_up_chunk_count: int = Field(
        0, description="Chunks that the model failed on: they are found by words alone"
    )
    shared_index: str | None = Field(
        None, description="Where the index is fetched from, with the progress, or why it was not"
    )
    memory_bytes: int
    worker_memory_bytes: int | None
    worker_shared_by: int = Field(
        0, description="How many services share the embedding worker; 0 if this one has its own"
    )

    @property
    def waiting_chunk_count(self) -> int:
        """How many chunks are still to get a vector."""
        return self.indexed_chunk_count - self.embedded_chunk_count - self.given_up_chunk_count


class ProjectTriggered(BaseModel):
    """The progress of one project after `trigger_index`."""

    project_path: str
    complete: bool = Field(description="Whether all is indexed, vectors included")
    message: str
    indexed_file_count: int
    indexed_chunk_count: int
    embedded_chunk_count: int


def run_report(run: Run) -> RunReport:
    """The report of `run`."""
    left = run.seconds_left
    return RunReport(
        kind=run.kind,
        finished=run.finished.is_set(),
        error=run.error,
        seconds=round(run.elapsed, 3),
        seconds_left=None if left is None else round(left, 1),
        files_seen=run.files_seen,
        files_to_do=run.files_to_do,
        files_done=run.files_done,
        files_read=run.outcome.read,
        files_indexed=run.outcome.indexed,
        files_unchanged=run.outcome.unchanged,
        files_skipped=run.outcome.skipped,
        files_failed=run.outcome.failed,
        files_removed=run.outcome.removed,
        chunks_indexed=run.outcome.chunks,
    )


async def index_status(codebase: "Codebase") -> IndexStatus:
    """Everything that is known about the index now. Never raises."""
    now = await codebase.index.status()
    progress, model, last = now.progress, now.model, codebase.recent.last
    begun, ended = now.last_scan
    return IndexStatus(
        project_path=str(codebase.root),
        status=progress.state.value,
        last_scan_start_time=begun,
        last_scan_end_time=ended,
        indexed_chunk_count=now.chunks,
        error_message=now.error or None,
        indexed_file_count=now.indexed,
        embedded_chunk_count=now.embedded,
        given_up_chunk_count=now.given_up,
        pending_path_count=progress.pending,
        current_run=run_report(now.run) if now.run else None,
        last_run=run_report(now.last_run) if now.last_run else None,
        waiting_for=list(now.stalls),
        model=ModelStatus(
            name=model.name if model else None,
            dimension=model.dimension if model else None,
            state=progress.embedder_state,
            reason=progress.embedder_reason or None,
            precision=now.precision or None,
            server=progress.embedder_notice or None,
            chunks_embedded=now.chunks_computed,
            team_vectors=codebase.index.team_notice or None,
        ),
        watcher=WatcherStatus(
            mode=now.noticing.mode,
            problem=now.noticing.problem or None,
            blind_spot=now.noticing.blind_spot or None,
        ),
        is_writer=progress.is_writer,
        skipped=dict(now.skipped),
        skipped_files={record.key: record.reason for record in now.passed_over},
        masked_credential_count=now.masked,
        masked_files=list(now.masked_files),
        failed={r.key: r.reason for r in now.failed} | dict(now.disobeyed),
        cut_by_lines={record.key: record.reason for record in now.cut_by_lines},
        unreadable_folders=list(now.unreadable),
        last_changes=[
            FileChange(file_path=change.key, change=change.what, time=change.when)
            for change in now.last_changes
        ],
        queries=QueryStatus(
            answered=codebase.recent.revision,
            last_time=last.at if last else None,
            last_seconds=last.seconds if last else None,
        ),
        index_location=now.uri,
        index_problem=now.displaced or None,
        index_writer=now.writer or None,
        index_bytes=now.size_bytes,
        shared_index=now.shared or None,
        memory_bytes=memory.held_by(os.getpid()),
        worker_memory_bytes=memory.held_by(now.worker_pid) or None,
        worker_shared_by=progress.embedder_sharers,
    )
