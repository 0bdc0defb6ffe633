"""What `status --watch` shows, at every width and for every state an index can be in."""

import io
import re
from datetime import UTC, datetime, timedelta

import pytest
from rich.cells import cell_len
from rich.console import Console
from statuses import status

from vector_index_mcp.background import contact
from vector_index_mcp.background.endpoint import endpoint_of
from vector_index_mcp.codebase.wire import (
    FileChange,
    ModelStatus,
    QueryStatus,
    RunReport,
    WatcherStatus,
)
from vector_index_mcp.console import monitor
from vector_index_mcp.console.documents import watching as watching_documents
from vector_index_mcp.console.view import NO_SERVICE, Picture, Rate, change_lines, summary

LONG = "a/very/long/path/that/does/not/fit/into/forty/columns/日本語日本語/module.py"
WIDTHS = pytest.mark.parametrize("width", [20, 40, 80, 160])
START = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def change(path, what="indexed", seconds=0):
    return FileChange(file_path=path, change=what, time=START + timedelta(seconds=seconds))


def run(done, to_do, seconds):
    counts = dict.fromkeys("seen read indexed unchanged skipped failed removed".split(), 0)
    return RunReport(
        kind="start",
        finished=False,
        seconds=seconds,
        files_to_do=to_do,
        files_done=done,
        chunks_indexed=0,
        **{f"files_{name}": count for name, count in counts.items()},
    )


FULL = status(
    status="ERROR",
    error_message="the disk is full; free some space " * 3,
    current_run=run(300, 1200, 30.0),
    embedded_chunk_count=1000,
    pending_path_count=7,
    waiting_for=["the embedding of chunks for 45 s"],
    model=ModelStatus(name=None, state="unavailable", reason="no model " * 9, chunks_embedded=0),
    watcher=WatcherStatus(mode="polling", problem="raise fs.inotify.max_user_watches"),
    skipped={"binary": 1234, "may hold secrets": 2},
    masked_credential_count=3,
    failed={f"{number}/{LONG}": "unreadable" for number in range(9)},
    unreadable_folders=[LONG],
    last_changes=[change(LONG, what) for what in ("indexed", "removed", "skipped", "failed")],
    queries=QueryStatus(answered=12, last_time=START, last_seconds=0.0154),
    worker_memory_bytes=9_000_000,
    worker_shared_by=5,
)


def shown(current, width=80, rate=0.0, project="/home/me/project", **options):
    out = io.StringIO()
    console = Console(file=out, width=width, highlight=False, **options)
    console.print(Picture(project, current, rate))
    return out.getvalue()


@WIDTHS
@pytest.mark.parametrize("current", ["", status(), FULL], ids=["none", "calm", "everything"])
def test_no_line_is_wider_than_the_terminal(width, current):
    for line in shown(current, width, rate=3.0, project="/p/" + LONG).splitlines():
        assert cell_len(line.rstrip()) <= width


@WIDTHS
def test_a_path_takes_one_line_and_shows_its_end(width):
    lines = shown(FULL, width).splitlines()
    changed = [line for line in lines if re.search(r"\d\d:\d\d:\d\d", line)]
    assert len(changed) == 4
    if width > 20:
        assert all(line.rstrip().endswith("e.py") for line in changed)


def test_a_run_shows_how_far_it_is_how_fast_and_how_long_it_takes_yet():
    text = shown(FULL, rate=4.0)
    assert re.search(
        r"^files +300 of 1,200, 10/s, 1 min 30 s left \(start\) *$", text, re.MULTILINE
    )
    assert "1,000 of 3,000, 4.0/s, 8 min 20 s left" in text
    bars = re.findall("━+", text)
    assert [len(bar) for bar in bars] == [15, 20]  # of 60 columns


def test_without_a_rate_nothing_is_foretold():
    words = "1,000 of 3,000 chunks have vectors; the others wait for a model"
    assert re.search(rf"vectors +{words} *$", shown(FULL, 100), re.MULTILINE)


def test_who_does_not_watch_is_not_called_watching():
    off = WatcherStatus(mode="off")
    text = " ".join(shown(status(watcher=off)).split())
    assert "state up to date" in text
    assert "watching not yet" in text
    assert "WATCHING" not in text + summary(status(watcher=off))
    other = " ".join(shown(status(watcher=off, is_writer=False)).split())
    assert "state kept up to date by another process" in other
    assert "watching another process does" in other


def test_everything_that_is_wrong_is_told():
    text = " ".join(shown(FULL, 160).split())
    for words in (
        "ERROR",
        "the disk is full",
        "7 changed paths",
        "unavailable no model",
        "by polling raise fs.inotify.max_user_watches",
        "1,234 binary, 2 may hold secrets",
        "3 credentials",
        "module.py: unreadable",
        "module.py: cannot be listed",
        "12 answered, the last in 15 ms",
        "service 200 MB, model 9.0 MB",
    ):
        assert words in text
    assert text.count(": unreadable") == 5
    assert "..." in text


def test_a_calm_index_is_told_in_few_lines():
    lines = [line.rstrip() for line in shown(status()).splitlines()]
    assert lines == [
        "/home/me/project",
        "state    WATCHING",
        "files    1,200 indexed",
        "chunks   3,000",
        "vectors  all",
        "model    m, ready, bfloat16",
        "watching by events",
        "queries  0 answered",
        "memory   service 200 MB",
        "disk     1.2 MB",
        "Ctrl+C ends the view",
    ]


def test_who_shares_the_worker_is_told():
    text = shown(status(worker_memory_bytes=500_000_000, worker_shared_by=5))
    assert "service 200 MB, model 500 MB, shared by 5 services" in text
    assert "shared" not in shown(status(worker_memory_bytes=500_000_000, worker_shared_by=1))


def test_no_service_is_told_with_the_way_to_one():
    text = " ".join(shown(NO_SERVICE).split())
    assert f"state {NO_SERVICE}" in text
    assert "`vector-index-mcp PATH`" in text


def test_so_is_why_none_can_be_started():
    text = " ".join(shown(f"{NO_SERVICE}: the disk is full").split())
    assert f"state {NO_SERVICE}: the disk is full" in text
    assert "`vector-index-mcp PATH`" not in text


@pytest.mark.parametrize("watching", [monitor._status, watching_documents._absence])
def test_a_service_that_does_not_answer_is_not_said_to_be_absent(tmp_path, monkeypatch, watching):
    monkeypatch.setattr(contact, "call", lambda *_: None)
    monkeypatch.setattr(contact, "hangs", lambda *_: True)
    endpoint = endpoint_of("codebase", tmp_path)
    assert "does not answer; its log is" in watching(endpoint)


def test_only_colours_that_read_on_light_and_dark_are_used():
    text = shown(FULL, rate=1.0, force_terminal=True, color_system="truecolor")
    used = {code for codes in re.findall(r"\x1b\[([\d;]*)m", text) for code in codes.split(";")}
    assert used <= {"0", "1", "2", "31", "32", "35", "36"}


def test_a_name_is_no_markup():
    assert "[red]x[/red].py" in shown(status(last_changes=[change("[red]x[/red].py")]))
    assert "[bold]" in shown(status(skipped={"[bold]": 1}))


# -- lines -----------------------------------------------------------------------------------


def test_a_line_sums_up_and_tells_what_goes_on():
    assert summary(status()) == "WATCHING: 1,200 files, 3,000 chunks, model ready, 0 queries"
    assert summary(FULL).startswith(
        "ERROR: 1,200 files, 3,000 chunks, 1,000 with vectors, 300 of 1,200 files done, "
        "7 paths pending, 9 failed, model unavailable, 12 queries: the disk is full"
    )


def test_every_change_is_told_once_oldest_first():
    old, new, newer = change("a.py"), change("b.py", "removed", 1), change("a.py", seconds=2)
    before = status(last_changes=[old])
    after = status(last_changes=[newer, new, old])
    assert [line[9:] for line in change_lines(before, after)] == ["removed b.py", "indexed a.py"]
    assert change_lines(after, after) == []
    assert change_lines(None, after) == []  # what was before we looked is no news


# -- rate ------------------------------------------------------------------------------------


def test_a_rate_is_that_of_the_last_seconds():
    rate = Rate()
    rate.note(0.0, 0)
    assert rate.per_second == 0
    rate.note(10.0, 1000)
    assert rate.per_second == 100
    rate.note(20.0, 1000)
    assert rate.per_second == 50
    rate.note(30.0, 1000)
    assert rate.per_second == 0


def test_a_count_that_shrinks_begins_anew():
    rate = Rate()
    rate.note(0.0, 5000)
    rate.note(1.0, 0)
    rate.note(2.0, 10)
    assert rate.per_second == 10
