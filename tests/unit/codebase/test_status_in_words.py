"""How an index is, in the words that people and agents read."""

import pytest
from statuses import status

from vector_index_mcp.codebase.text import of_status
from vector_index_mcp.codebase.wire import ModelStatus, WatcherStatus

SOME = "12,000 chunks of 1,204 files, 1.2 MB; 9,502 of 12,000 chunks have vectors"


def lacking(**fields):
    """A status in which vectors are lacking."""
    counts = {"indexed_chunk_count": 12_000, "indexed_file_count": 1_204}
    return status(**counts | {"embedded_chunk_count": 9_502} | fields)


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
        ({"given_up_chunk_count": 2_498}, "; the model failed on 2,498, found by words alone"),
        (
            {"given_up_chunk_count": 8},
            "; the model failed on 8, found by words alone; embedding goes on",
        ),
        (READ, "; embedding goes on when a client connects or you run `index`"),
    ],
)
def test_who_goes_on_with_the_vectors_is_told(fields, who):
    assert f"index: {SOME}{who}" in of_status(lacking(**fields)).splitlines()


def test_of_vectors_that_are_all_there_nothing_is_told():
    assert "vectors" not in of_status(lacking(embedded_chunk_count=12_000))


@pytest.mark.parametrize(
    ("fields", "first"),
    [
        ({}, "WATCHING: /p"),
        ({"watcher": OFF}, "up to date: /p"),
        ({"watcher": OFF, "is_writer": False}, "kept up to date by another process: /p"),
        (READ, "nobody follows changes now (a connected MCP client does that; "),
    ],
)
def test_the_state_is_what_happens(fields, first):
    assert of_status(lacking(**fields)).startswith(first)


def test_a_model_that_is_not_loaded_is_not_said_to_be_switched_off():
    model = ModelStatus(name="m", state="off", chunks_embedded=0)
    assert "\nmodel: m, off until it is needed\n" in of_status(lacking(model=model))
