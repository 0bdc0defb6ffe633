"""The status of an index as tests of its words and pictures need it."""

from vector_index_mcp.codebase.wire import IndexStatus, ModelStatus, QueryStatus, WatcherStatus


def status(**fields):
    """A project of 1,200 files that is up to date, but for `fields`."""
    values = dict.fromkeys(IndexStatus.model_fields) | {
        "project_path": "/p",
        "status": "WATCHING",
        "indexed_chunk_count": 3000,
        "indexed_file_count": 1200,
        "embedded_chunk_count": 3000,
        "given_up_chunk_count": 0,
        "pending_path_count": 0,
        "waiting_for": [],
        "model": ModelStatus(name="m", state="ready", precision="bfloat16", chunks_embedded=0),
        "watcher": WatcherStatus(mode="events"),
        "is_writer": True,
        "skipped": {},
        "skipped_files": {},
        "masked_credential_count": 0,
        "masked_files": [],
        "failed": {},
        "cut_by_lines": {},
        "unreadable_folders": [],
        "last_changes": [],
        "queries": QueryStatus(answered=0),
        "index_location": "/p/.lancedb",
        "index_bytes": 1_234_567,
        "memory_bytes": 200_000_000,
        "worker_shared_by": 0,
    }
    return IndexStatus(**values | fields)
