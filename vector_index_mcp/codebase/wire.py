"""What the three tools answer: the models on the wire, made from the service's values.

`vector-index-mcp search --json` and `status --json` print exactly these.
"""

from datetime import datetime
from typing import TYPE_CHECKING, Literal

import psutil
from pydantic import BaseModel, Field

from vector_index_mcp.codebase import budget
from vector_index_mcp.codebase.recent import Mode
from vector_index_mcp.indexing.run import Run

if TYPE_CHECKING:  # tools.py needs the models at once, and the service imports lancedb
    from vector_index_mcp.codebase.asking import Answer
    from vector_index_mcp.codebase.service import Codebase


class FileMetadata(BaseModel):
    """The file a chunk comes from."""

    original_path: str = Field(description="Path relative to the project, as seen on disk")


class SearchHit(BaseModel):
    """One chunk that answers the query."""

    file_path: str = Field(description="Path relative to the project, with forward slashes")
    start_line: int = Field(description="First line of the chunk, 1-based")
    end_line: int = Field(description="Last line of the chunk, inclusive")
    score: float = Field(description="0 to 1; comparable within one answer only")
    language: str
    scope: str = Field(
        description="The definitions or sections it lies in: class Foo › function bar"
    )
    symbols: list[str] = Field(description="The names this chunk defines")
    is_stale: bool = Field(
        description="Whether the file changed since it was indexed; it is being indexed anew"
    )
    is_cut: bool = Field(
        description="Whether the text was shortened to fit max_tokens; the file has the rest"
    )
    extracted_text_chunk: str = Field(description="The chunk, exactly as in the file")
    document_id: str
    content_hash: str = Field(description="SHA-256 of the whole file when it was indexed")
    last_modified_timestamp: float = Field(description="The file's mtime, Unix seconds")
    chunk_index: int = Field(description="Zero-based position of the chunk in its file")
    total_chunks: int
    metadata: FileMetadata


class SearchResult(BaseModel):
    """The answer of `search_index`, best hit first."""

    results: list[SearchHit]
    mode: Mode = Field(description="hybrid: by words and by meaning; lexical: by words only")
    note: str | None = Field(
        None, description="What limits this answer, such as vectors that are not ready yet"
    )


class RunReport(BaseModel):
    """One pass over the project, under way or finished."""

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
    chunks_embedded: int = Field(description="Computed since the start; cached ones not counted")


class WatcherStatus(BaseModel):
    """How changes are noticed."""

    mode: str = Field(description="events, polling, or off")
    problem: str | None = None
    blind_spot: str | None = Field(
        None, description="Which changes are not noticed at once, and when they are"
    )


class FileChange(BaseModel):
    """What became of one file."""

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
    masked_credential_count: int = Field(
        description="Credentials in indexed texts that were replaced by asterisks"
    )
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
        None, description="Why the index does not lie where it was configured to"
    )
    index_bytes: int | None
    memory_bytes: int
    worker_memory_bytes: int | None


def search_result(answer: "Answer", max_tokens: int) -> SearchResult:
    """The hits of `answer`, as they go out."""
    shown = budget.fit(answer.hits, max_tokens)
    notes = [answer.note] if answer.note else []
    if any(one.is_cut for one in shown):
        notes.append("Texts were shortened to fit max_tokens; the files have the rest.")
    if len(shown) < len(answer.hits):
        left_out = len(answer.hits) - len(shown)
        notes.append(f"{left_out} more results did not fit max_tokens.")
    return SearchResult(
        results=[_hit(one, one.hit.chunk.key in answer.stale) for one in shown],
        mode=answer.mode,
        note=" ".join(notes) or None,
    )


def _hit(shown: budget.Shown, is_stale: bool) -> SearchHit:
    chunk, hit = shown.hit.chunk, shown.hit
    return SearchHit(
        file_path=chunk.key,
        start_line=chunk.start_line,
        end_line=chunk.end_line,
        score=round(hit.score, 4),
        language=chunk.language,
        scope=chunk.scope,
        symbols=list(chunk.symbols),
        is_stale=is_stale,
        is_cut=shown.is_cut,
        extracted_text_chunk=shown.text,
        document_id=chunk.document_id,
        content_hash=chunk.content_hash,
        last_modified_timestamp=chunk.modified,
        chunk_index=chunk.chunk_index,
        total_chunks=chunk.total_chunks,
        metadata=FileMetadata(original_path=chunk.original_path),
    )


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
    """Everything somebody may ask about the index, as it is now. Never fails."""
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
            chunks_embedded=now.chunks_computed,
        ),
        watcher=WatcherStatus(
            mode=now.watching,
            problem=now.watching_problem or None,
            blind_spot=now.blind_spot or None,
        ),
        is_writer=progress.is_writer,
        skipped=dict(now.skipped),
        masked_credential_count=now.masked,
        failed={record.key: record.reason for record in now.failed},
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
        index_bytes=now.size_bytes,
        memory_bytes=psutil.Process().memory_info().rss,
        worker_memory_bytes=_memory_of(now.worker_pid),
    )


def _memory_of(pid: int | None) -> int | None:
    try:
        return None if pid is None else int(psutil.Process(pid).memory_info().rss)
    except psutil.Error:  # it has just ended
        return None
