"""How an index is, in the words that people and agents read."""

import re

import pytest
from statuses import status

from vector_index_mcp.codebase.text import of_status
from vector_index_mcp.codebase.wire import ModelStatus, QueryStatus, RunReport, WatcherStatus
from vector_index_mcp.console import output
from vector_index_mcp.console.view import summary
from vector_index_mcp.indexing.verify import Report

SOME = "12,000 chunks of 1,204 files, 1.2 MB; 9,502 of 12,000 chunks have vectors"


def lacking(**fields):
    """A status in which vectors are lacking."""
    counts = {"indexed_chunk_count": 12_000, "indexed_file_count": 1_204}
    return status(**counts | {"embedded_chunk_count": 9_502} | fields)


NOTHING = {"indexed_chunk_count": 0, "indexed_file_count": 0, "embedded_chunk_count": 0}
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


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"error_message": "e", "index_bytes": None}, "nothing in it can be read now"),
        ({"error_message": "e"}, "0 chunks of 0 files, 1.2 MB"),
        ({"index_bytes": None}, "0 chunks of 0 files"),
    ],
)
def test_an_index_that_cannot_be_read_is_not_told_as_an_empty_one(fields, words):
    assert f"index: {words}" in of_status(status(**NOTHING | fields)).splitlines()


def test_texts_that_are_skipped_are_named_but_not_all_of_many():
    files = {f"data/{n}.json": "too large" for n in range(4)} | {".env": "may hold secrets"}
    few = status(skipped={"too large": 4, "may hold secrets": 1}, skipped_files=files)
    named = ", ".join(f"{path} ({reason})" for path, reason in files.items())
    assert f"of these, texts: {named}" in of_status(few).splitlines()
    many = status(skipped={"too large": 6}, skipped_files=files | {"z.json": "too large"})
    assert f"of these, texts: {named}, …" in of_status(many).splitlines()
    assert "of these" not in of_status(status(skipped={"binary": 1}))


def test_files_with_masked_credentials_are_named_but_not_all_of_many():
    names = [f"src/{number}.py" for number in range(6)]
    few = status(masked_credential_count=3, masked_files=names[:1])
    assert "masked: 3 credentials in src/0.py" in of_status(few).splitlines()
    many = status(masked_credential_count=9, masked_files=names)
    assert f"masked: 9 credentials in {', '.join(names[:5])}, …" in of_status(many).splitlines()


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


def test_one_of_anything_is_told_as_one(capsys):
    names = [name for name in RunReport.model_fields if name.startswith(("files_", "chunks_"))]
    run = RunReport(kind="start", finished=False, seconds=1.0, **dict.fromkeys(names, 1))
    counts = ("indexed_chunk_count", "indexed_file_count", "pending_path_count")
    one = status(
        **dict.fromkeys((*counts, "masked_credential_count", "waiting_chunk_count"), 1),
        embedded_chunk_count=0,
        current_run=run,
        queries=QueryStatus(answered=1),
    )
    output.of_index(run, one, 1.0, is_followed=True)
    output.of_verify(Report(files=1, chunks=1, vectors=0, faults={"a": "is not indexed"}))
    printed = capsys.readouterr().out
    assert "pending: 1 changed path\n" in printed
    words = "\n".join((of_status(one), summary(one), printed))
    assert "1 file differs" in words
    assert re.findall(r"(?<![\d.,])1 \w*s\b", words.replace("1 s", "")) == []
