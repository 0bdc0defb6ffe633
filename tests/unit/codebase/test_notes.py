"""An answer says what it may lack, and why; and nothing where it lacks nothing."""

import pytest

from vector_index_mcp.codebase.answer import note
from vector_index_mcp.engine.types import FileRecord
from vector_index_mcp.indexing.backlog import Backlog
from vector_index_mcp.indexing.ledger import Ledger
from vector_index_mcp.indexing.reasons import INDEXED
from vector_index_mcp.indexing.writing.run import Kind, Run


@pytest.fixture
def ledger():
    """Four chunks, all with vectors."""
    ledger = Ledger()
    ledger.put(FileRecord("a.py", (1, 2, 3), "hash", 4, INDEXED, ""), 0)
    return ledger


def run(kind, **counts):
    run = Run(kind, 1)
    for name, count in counts.items():
        setattr(run, name, count)
    return run


def test_where_nothing_is_lacking_nothing_is_said(ledger):
    assert note("", ledger, Backlog()) == ""


@pytest.mark.parametrize(
    ("backlog", "words"),
    [
        (Backlog(error="the disk is full"), "Recent changes may be missing: the disk is full."),
        (Backlog(is_kept=False), "no process keeps this index up to date now"),
        (Backlog(pending=1), "Recent changes may be missing: 1 changed path to index."),
        (Backlog(pending=4_000), "4,000 changed paths to index."),
        (Backlog(run=run(Kind.START)), "the project is still being compared with the index"),
        (
            Backlog(run=run(Kind.RESCAN, files_seen=9, files_to_do=7, files_done=3)),
            "Indexing is under way: 3 of 7 files done.",
        ),
        (Backlog(polling="no events here"), "Recent changes may be missing: no events here."),
        (Backlog(unreadable=2), "2 folders cannot be read (see get_status)."),
        (Backlog(failed=1), "1 file could not be indexed (see get_status)."),
        (Backlog(left_out=3), "3 files did not fit into the index."),
    ],
)
def test_every_lack_is_told_with_its_reason(ledger, backlog, words):
    assert words in note("", ledger, backlog)


def test_an_index_that_is_rebuilt_beside_the_current_one_lacks_nothing(ledger):
    rebuild = run(Kind.REBUILD, files_seen=9, files_to_do=7)
    assert note("", ledger, Backlog(run=rebuild)) == ""


def test_a_rescan_that_has_not_found_anything_is_no_reason_to_worry(ledger):
    assert note("", ledger, Backlog(run=run(Kind.RESCAN))) == ""


def test_lacking_vectors_are_told_by_their_share(ledger):
    ledger.put(FileRecord("b.py", (1, 2, 3), "hash", 4, INDEXED, ""), 4)
    assert note("", ledger, Backlog()).startswith("50% of the chunks can be found by meaning")
    assert note("no model", ledger, Backlog()) == (
        "Searched by words only, not by meaning: no model."
    )


def test_as_long_as_one_vector_is_lacking_not_all_are_told_to_be_there(ledger):
    ledger.put(FileRecord("b.py", (1, 2, 3), "hash", 996, INDEXED, ""), 1)
    assert note("", ledger, Backlog()).startswith("99% of the chunks")


def test_hits_that_were_left_out_are_told(ledger):
    assert "wrong about 2 files" in note("", ledger, Backlog(), untrue=2)
