"""How an index is, in the words that people and agents read."""

import pytest

from vector_index_mcp.codebase.text import of_status
from vector_index_mcp.codebase.wire import IndexStatus, ModelStatus, QueryStatus, WatcherStatus

SOME = "12,000 chunks of 1,204 files, 1.2 MB; 9,502 of 12,000 chunks have vectors"


def status(**fields):
    values = dict.fromkeys(IndexStatus.model_fields) | {
        "project_path": "/p",
        "status": "WATCHING",
        "indexed_chunk_count": 12_000,
        "indexed_file_count": 1_204,
        "embedded_chunk_count": 9_502,
        "pending_path_count": 0,
        "waiting_for": [],
        "model": ModelStatus(name="m", state="ready", chunks_embedded=0),
        "watcher": WatcherStatus(mode="events"),
        "is_writer": True,
        "skipped": {},
        "masked_credential_count": 0,
        "failed": {},
        "cut_by_lines": {},
        "unreadable_folders": [],
        "last_changes": [],
        "queries": QueryStatus(answered=0),
        "index_location": "/p/.lancedb",
        "index_bytes": 1_234_567,
        "memory_bytes": 200_000_000,
    }
    return IndexStatus(**values | fields)


OFF = WatcherStatus(mode="off")
NO_MODEL = ModelStatus(name=None, state="unavailable", reason="get one", chunks_embedded=0)
READ = {"status": "INITIALIZING", "is_writer": False, "watcher": OFF}  # where no service runs


@pytest.mark.parametrize(
    ("fields", "who"),
    [
        ({}, "; embedding goes on"),
        ({"model": NO_MODEL}, "; the others wait for a model"),
        ({"is_writer": False, "watcher": OFF}, "; another process goes on with the others"),
        ({"status": "ERROR", "is_writer": False}, ""),
        (READ, "; embedding goes on when a client connects or you run `index`"),
    ],
)
def test_who_goes_on_with_the_vectors_is_told(fields, who):
    assert f"index: {SOME}{who}" in of_status(status(**fields)).splitlines()


def test_of_vectors_that_are_all_there_nothing_is_told():
    assert "vectors" not in of_status(status(embedded_chunk_count=12_000))


@pytest.mark.parametrize(
    ("fields", "first"),
    [
        ({}, "WATCHING: /p"),
        ({"watcher": OFF}, "up to date: /p"),
        ({"watcher": OFF, "is_writer": False}, "kept up to date by another process: /p"),
        (READ, "not followed (a client that connects has changes followed; "),
    ],
)
def test_the_state_is_what_happens(fields, first):
    assert of_status(status(**fields)).startswith(first)
