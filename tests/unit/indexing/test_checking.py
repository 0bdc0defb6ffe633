"""What a search says of its hits is what the disk says of their files."""

import time

import pytest

from vector_index_mcp.engine.types import FileRecord, Hit, StoredChunk
from vector_index_mcp.files import beneath
from vector_index_mcp.files.folder import Folder, Folders, Reading
from vector_index_mcp.files.scan import stamp_of
from vector_index_mcp.indexing.answering import checking
from vector_index_mcp.indexing.answering.checking import check_against_disk
from vector_index_mcp.indexing.ledger import Ledger
from vector_index_mcp.indexing.reasons import INDEXED

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
        has_vector=True,
    )
    return Hit(chunk, 1.0)


def told(root, ledger, *hits, limit=5):
    """(texts shown, files that are gone, stale, and that the index is wrong about)"""
    folder = Folder(root, reading=Reading(1_000))
    checked = check_against_disk(Folders([folder]), ledger, list(hits), limit)
    assert [type(each) for each in checked.hits] == [Hit] * len(checked.hits)
    texts = [each.chunk.text for each in checked.hits]
    return texts, checked.gone, checked.stale, checked.untrue


def test_a_secret_that_is_saved_while_a_hit_is_compared_is_masked(root, ledger, monkeypatch):
    status = beneath.status

    def looked_at_before_the_save(folder, path):
        found = status(folder, path)
        (root / KEY).write_text('AWS_SECRET_ACCESS_KEY = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYzzzzKEY"\n')
        return found

    monkeypatch.setattr(checking.beneath, "status", looked_at_before_the_save)
    [text], _, stale, _ = told(root, ledger, hit())
    assert stale == {KEY}
    assert text.startswith("AWS_SECRET_ACCESS_KEY = ")
    assert "wJalrXUtnFEMI" not in text


def test_a_file_that_is_as_it_was_indexed_is_shown(root, ledger):
    assert told(root, ledger, hit(), hit()) == (["x = 1\n"] * 2, set(), set(), set())


def test_no_more_hits_are_looked_at_than_are_wanted(root, ledger):
    lie = hit(text="run this\n")
    assert told(root, ledger, hit(), lie, limit=1) == (["x = 1\n"], set(), set(), set())
    assert told(root, ledger, lie, hit(), limit=1) == (["x = 1\n"], set(), set(), {KEY})


def test_a_changed_file_is_stale_and_shown_as_it_is_now(root, ledger):
    (root / KEY).write_text("longer = 1\n", encoding="utf-8")
    assert told(root, ledger, hit()) == (["longer = 1\n"], set(), {KEY}, set())


def test_what_still_stands_in_a_changed_file_is_shown_as_it_was(root, ledger):
    (root / KEY).write_text("x = 1\ny = 2\n", encoding="utf-8")
    assert told(root, ledger, hit()) == (["x = 1\n"], set(), {KEY}, set())


@pytest.mark.parametrize(
    ("before", "line", "first"),
    [
        ("# new\n" * 60, 1, 61),
        ("x = 2\n", 1, 2),
        ("x = 1\n" * 5, 5, 5),  # the nearest of equal ones
        ("", 40, 1),
    ],
)
def test_what_was_moved_in_a_changed_file_is_shown_where_it_is_now(
    root, ledger, before, line, first
):
    (root / KEY).write_text(f"{before}x = 1\n\ny = 1\n", encoding="utf-8")
    folder = Folder(root, reading=Reading(1_000))
    [shown] = check_against_disk(Folders([folder]), ledger, [hit(line=line)], 5).hits
    assert (shown.chunk.start_line, shown.chunk.end_line) == (first, first)
    assert shown.chunk.text == "x = 1\n"


@pytest.mark.slow
def test_a_long_file_of_equal_lines_keeps_no_search_waiting(tmp_path):
    (tmp_path / KEY).write_text("a\n" * 4_000_000, encoding="utf-8")
    folders = Folders([Folder(tmp_path, reading=Reading(10_000_000))])
    found = hit(text="b\n" + "a\n" * 700, line=3_999_000)
    began = time.process_time()
    [shown] = check_against_disk(folders, Ledger(), [found], 5).hits
    assert time.process_time() - began < 2
    assert shown.chunk.text.startswith("a\n")


def test_of_what_was_moved_all_lines_have_to_be_there(root, ledger):
    (root / KEY).write_text("a\nb\na\nb\nc\n", encoding="utf-8")
    [text] = told(root, ledger, hit(text="a\nb\nc\n"))[0]
    assert text == "a\nb\nc\n"
    (root / KEY).write_text("a\nb\na\nb\n", encoding="utf-8")
    assert told(root, ledger, hit(text="a\nb\nc\n"))[0] == ["a\n"]


@pytest.mark.parametrize("text", ["", "\n\n", "\0binary"])
def test_of_a_changed_file_without_text_nothing_is_shown(root, ledger, text):
    (root / KEY).write_text(text, encoding="utf-8")
    assert told(root, ledger, hit()) == ([], set(), {KEY}, set())


def test_a_changed_file_shows_no_credential(root, ledger):
    (root / KEY).write_text("password = 'q7Zx2Lw9Tb4Rk8Vn3Hc6'\n", encoding="utf-8")
    assert told(root, ledger, hit())[0] == ["password = '********************'\n"]


def test_a_long_line_of_a_changed_file_is_cut(root, ledger):
    (root / KEY).write_text(f"x = '{'ab ' * 300}'\n" * 3, encoding="utf-8")
    folder = Folder(root, reading=Reading(10_000))
    checked = check_against_disk(Folders([folder]), ledger, [hit(line=1)], 5)
    assert len(checked.hits[0].chunk.text) < 1_201


def test_a_file_whose_hit_was_read_before_it_was_indexed_anew_is_stale(root, ledger):
    assert told(root, ledger, hit("before"))[2] == {KEY}


def test_a_deleted_file_is_gone(root, ledger):
    (root / KEY).unlink()
    assert told(root, ledger, hit()) == ([], {KEY}, set(), set())


def test_a_file_that_cannot_be_looked_at_for_now_is_stale_and_not_shown(
    root, ledger, no_descriptors
):
    with no_descriptors():
        found = told(root, ledger, hit())
    assert found == ([], set(), {KEY}, set())


@pytest.mark.parametrize("wrong", [{"text": "run this\n"}, {"line": 2}, {"line": 99}])
def test_a_hit_that_says_something_else_than_an_unchanged_file_is_not_shown(root, ledger, wrong):
    assert told(root, ledger, hit(), hit(**wrong)) == (["x = 1\n"], set(), set(), {KEY})


@pytest.mark.parametrize("stored_is_masked", [True, False])
def test_a_hit_with_a_credential_is_true_only_as_it_is_masked(tmp_path, stored_is_masked):
    text = "password = 'q7Zx2Lw9Tb4Rk8Vn3Hc6'\n"
    (tmp_path / KEY).write_text(text, encoding="utf-8")
    ledger = Ledger()
    stamp = stamp_of((tmp_path / KEY).lstat())
    ledger.put(FileRecord(KEY, stamp, "now", 1, INDEXED, "", masked=1), 0)
    shown = text.replace("q7Zx2Lw9Tb4Rk8Vn3Hc6", 20 * "*") if stored_is_masked else text
    assert told(tmp_path, ledger, hit(text=shown))[3] == (set() if stored_is_masked else {KEY})
