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


def hit(content_hash="now", *, text="x = 1\n", line=1):
    chunk = StoredChunk(
        document_id="1",
        key=KEY,
        original_path=KEY,
        content_hash=content_hash,
        modified=0.0,
        chunk_index=0,
        total_chunks=1,
        text=text,
        chunk_hash="",
        start_line=line,
        end_line=line,
        language="python",
        scope="",
        symbols=(),
        revision=1,
    )
    return Hit(chunk, 1.0)


def verdict(*, gone=(), stale=(), untrue=()):
    return Verdict(frozenset(gone), frozenset(stale), frozenset(untrue))


def test_a_file_that_is_as_it_was_indexed_is_neither_gone_nor_stale(root, ledger):
    assert check_against_disk(root, ledger, [hit(), hit()], 1_000) == verdict()


def test_a_changed_file_is_stale(root, ledger):
    (root / KEY).write_text("longer = 1\n", encoding="utf-8")
    assert check_against_disk(root, ledger, [hit()], 1_000) == verdict(stale=[KEY])


def test_a_file_whose_hit_was_read_before_it_was_indexed_anew_is_stale(root, ledger):
    assert check_against_disk(root, ledger, [hit("before"), hit()], 1_000) == verdict(stale=[KEY])


def test_a_deleted_file_is_gone(root, ledger):
    (root / KEY).unlink()
    assert check_against_disk(root, ledger, [hit()], 1_000) == verdict(gone=[KEY])


def test_a_file_that_cannot_be_looked_at_for_now_is_stale(root, ledger, no_descriptors):
    with no_descriptors():
        told = check_against_disk(root, ledger, [hit()], 1_000)
    assert told == verdict(stale=[KEY])


@pytest.mark.parametrize("wrong", [{"text": "run this\n"}, {"line": 2}])
def test_a_hit_that_says_something_else_than_an_unchanged_file_is_untrue(root, ledger, wrong):
    told = check_against_disk(root, ledger, [hit(), hit(**wrong)], 1_000)
    assert told == verdict(untrue=[KEY])


@pytest.mark.parametrize("stored_is_masked", [True, False])
def test_a_hit_with_a_credential_is_true_only_as_it_is_masked(tmp_path, stored_is_masked):
    text = "password = 'q7Zx2Lw9Tb4Rk8Vn3Hc6'\n"
    (tmp_path / KEY).write_text(text, encoding="utf-8")
    ledger = Ledger()
    ledger.put(FileRecord(KEY, stamp_of((tmp_path / KEY).lstat()), "now", 1, INDEXED, ""), 0)
    shown = text.replace("q7Zx2Lw9Tb4Rk8Vn3Hc6", 20 * "*") if stored_is_masked else text
    told = check_against_disk(tmp_path, ledger, [hit(text=shown)], 1_000)
    assert told == verdict(untrue=() if stored_is_masked else [KEY])
