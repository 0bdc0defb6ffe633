import io
import sys

import pytest

from vector_index_mcp.console import progress
from vector_index_mcp.console.documents import progress as progress_of_documents


@pytest.fixture
def told(monkeypatch, capsys):
    """Shows progress where there is no terminal; returns a function that gives the lines."""
    monkeypatch.setattr(progress, "_SECONDS_BETWEEN_LINES", 0.0)
    with progress.shown() as show:
        yield show, lambda: capsys.readouterr().err.splitlines()


def test_a_line_is_written_when_something_has_happened(told):
    show, lines = told
    for done in (0, 0, 1, 1, 2, 2):
        show("indexing files", done, 2)
    assert lines() == [f"indexing files: {done} of 2" for done in range(3)]


def test_nothing_to_do_is_not_told(told):
    show, lines = told
    show("indexing files", 0, 0)
    assert lines() == []


def test_lines_are_seconds_apart_but_the_last_one(told, monkeypatch):
    show, lines = told
    monkeypatch.setattr(progress, "_SECONDS_BETWEEN_LINES", 3600.0)
    monkeypatch.setattr(progress.time, "monotonic", lambda: 10_000.0)
    for done in range(5):
        show("indexing files", done, 4)
    assert lines() == ["indexing files: 0 of 4", "indexing files: 4 of 4"]


class Screen(io.StringIO):
    def isatty(self):
        return True


def test_on_a_terminal_a_wait_is_shown_while_it_lasts(monkeypatch):
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setattr(sys, "stderr", Screen())
    with progress.shown() as show:
        show("indexing files", 2_000, 2_000)
        show("waiting for something", 0, 0)
    shown, _, left = sys.stderr.getvalue().rpartition("waiting for something")
    assert "2,000/2,000" in shown
    assert "0/0" not in shown + left
    assert "2,000/2,000" in left  # drawn once more, alone


def test_so_is_a_wait_for_documents(monkeypatch):
    monkeypatch.setattr(sys, "stderr", Screen())
    with progress_of_documents.shown() as show:
        show({"what": "Indexing", "done": 1, "total": 2})
        show({"what": "waiting for something", "done": 0, "total": 0})
    assert sys.stderr.getvalue() == "\r\x1b[KIndexing: 1/2\r\x1b[Kwaiting for something\r\x1b[K"
