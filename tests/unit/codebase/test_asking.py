"""What a search says of its hits is what the disk says of their files."""

import pytest

from vector_index_mcp.codebase.asking import Verdict, check_against_disk
from vector_index_mcp.codebase.ledger import INDEXED, Ledger
from vector_index_mcp.engine.types import FileRecord, Hit, StoredChunk
from vector_index_mcp.files.scan import stamp_of

KEY = "a.py"


@pytest.fixture
def root(tmp_path):
    """A project of one file."""
    (tmp_path / KEY).write_text("x = 1\n", encoding="utf-8")
    return tmp_path


@pytest.fixture
def ledger(root):
    """What is known of it: as it is."""
    ledger = Ledger()
    ledger.put(FileRecord(KEY, stamp_of((root / KEY).lstat()), "now", 1, INDEXED, ""), 0)
    return ledger


def hit(content_hash="now"):
    chunk = StoredChunk(
        document_id="1",
        key=KEY,
        original_path=KEY,
        content_hash=content_hash,
        modified=0.0,
        chunk_index=0,
        total_chunks=1,
        text="x = 1\n",
        chunk_hash="",
        start_line=1,
        end_line=1,
        language="python",
        scope="",
        symbols=(),
        revision=1,
    )
    return Hit(chunk, 1.0)


def verdict(*, gone=(), stale=()):
    return Verdict(frozenset(gone), frozenset(stale))


def test_a_file_that_is_as_it_was_indexed_is_neither_gone_nor_stale(root, ledger):
    assert check_against_disk(root, ledger, [hit(), hit()]) == verdict()


def test_a_changed_file_is_stale(root, ledger):
    (root / KEY).write_text("longer = 1\n", encoding="utf-8")
    assert check_against_disk(root, ledger, [hit()]) == verdict(stale=[KEY])


def test_a_file_whose_hit_was_read_before_it_was_indexed_anew_is_stale(root, ledger):
    assert check_against_disk(root, ledger, [hit("before"), hit()]) == verdict(stale=[KEY])


def test_a_deleted_file_is_gone(root, ledger):
    (root / KEY).unlink()
    assert check_against_disk(root, ledger, [hit()]) == verdict(gone=[KEY])


def test_a_file_that_cannot_be_looked_at_for_now_is_stale(root, ledger, no_descriptors):
    with no_descriptors():
        told = check_against_disk(root, ledger, [hit()])
    assert told == verdict(stale=[KEY])
