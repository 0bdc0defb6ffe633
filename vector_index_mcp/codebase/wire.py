"""What the three tools answer: the models on the wire, made from the service's values.

`vector-index-mcp search --json` and `status --json` print exactly these.
"""

from datetime import datetime
from itertools import islice
from typing import TYPE_CHECKING, Literal

import psutil
from pydantic import BaseModel, Field

from vector_index_mcp.codebase import budget
from vector_index_mcp.errors import StoreError
from vector_index_mcp.indexing.ledger import INDEXED, SKIPPED, Ledger
from vector_index_mcp.indexing.remedies import with_remedy
from vector_index_mcp.indexing.run import Run

if TYPE_CHECKING:  # tools.py needs the models at once, and the service imports lancedb
    from vector_index_mcp.codebase.asking import Answer
    from vector_index_mcp.codebase.service import Codebase
    from vector_index_mcp.indexing.indexer import Indexer

_OVER_LIMIT = "over the limit of files"
_MOST_LISTED = 20


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
    mode: Literal["hybrid", "lexical"] = Field(
        description="hybrid: by words and by meaning; lexical: by words only"
    )
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
        mode="hybrid" if answer.mode == "hybrid" else "lexical",
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
    """What is to be told of `run`."""
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
    ledger, index_error, size, model = Ledger(), None, None, None
    try:
        async with codebase.reading() as (index, current):
            ledger, size, model = current, await index.size_bytes(), index.manifest.model
    except StoreError as error:
        index_error = with_remedy(error)
    indexer, embedder, state = codebase.indexer, codebase.embedder, codebase.state
    if indexer is not None:  # a rebuild may have been swapped in while the size was measured
        ledger = indexer.live.ledger
    scan = (indexer.run or indexer.last_run) if indexer else None
    last = codebase.recent.last
    return IndexStatus(
        project_path=str(codebase.root),
        status=state.current.value,
        last_scan_start_time=scan.started if scan else None,
        last_scan_end_time=scan.ended if scan else None,
        indexed_chunk_count=ledger.chunk_count,
        error_message=state.error or index_error,
        indexed_file_count=ledger.count(INDEXED),
        embedded_chunk_count=ledger.chunk_count - ledger.unembedded_count,
        pending_path_count=indexer.pending_path_count if indexer else 0,
        current_run=run_report(indexer.run) if indexer and indexer.run else None,
        last_run=run_report(indexer.last_run) if indexer and indexer.last_run else None,
        waiting_for=codebase.activity.stalls(),
        model=ModelStatus(
            name=model.name if model else None,
            dimension=model.dimension if model else None,
            state=embedder.state,
            reason=embedder.reason or None,
            precision=embedder.precision or None,
            chunks_embedded=codebase.cached_embedder.embedded,
        ),
        watcher=WatcherStatus(
            mode=codebase.freshness.mode if codebase.freshness else "off",
            problem=(codebase.freshness.problem or None) if codebase.freshness else None,
            blind_spot=(codebase.freshness.blind_spot or None) if codebase.freshness else None,
        ),
        is_writer=indexer is not None,
        skipped=ledger.reasons(SKIPPED) | _left_out(indexer),
        masked_credential_count=ledger.masked_count,
        failed={r.key: r.reason for r in islice(ledger.failed.values(), _MOST_LISTED)},
        cut_by_lines={r.key: r.reason for r in islice(ledger.cut_by_lines.values(), _MOST_LISTED)},
        unreadable_folders=indexer.unreadable_folders[:_MOST_LISTED] if indexer else [],
        last_changes=[
            FileChange(file_path=change.key, change=change.what, time=change.when)
            for change in reversed(codebase.pipeline.last_changes)
        ],
        queries=QueryStatus(
            answered=codebase.recent.revision,
            last_time=last.at if last else None,
            last_seconds=last.seconds if last else None,
        ),
        index_location=codebase.uri,
        index_problem=codebase.displaced or None,
        index_bytes=size,
        memory_bytes=psutil.Process().memory_info().rss,
        worker_memory_bytes=_memory_of(embedder.pid),
    )


def _left_out(indexer: "Indexer | None") -> dict[str, int]:
    count = indexer.left_out_count if indexer is not None else 0
    return {_OVER_LIMIT: count} if count else {}


def _memory_of(pid: int | None) -> int | None:
    try:
        return None if pid is None else int(psutil.Process(pid).memory_info().rss)
    except psutil.Error:  # it has just ended
        return None
