import pytest

from vector_index_mcp.console import progress


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
