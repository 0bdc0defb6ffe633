"""Where inotify is not: what watchdog reports of other systems' events becomes the same keys.

The sequences are those that watchdog makes of FSEvents (macOS) and of ReadDirectoryChangesW
(Windows), by its documentation and its sources, for everyday changes: coalesced, doubled, late, of
another kind, with folders among them. No kind counts, so every path has to be told, and no more.
"""

from pathlib import Path

import pytest
from watchdog.events import (
    DirCreatedEvent,
    DirDeletedEvent,
    DirModifiedEvent,
    DirMovedEvent,
    FileClosedEvent,
    FileCreatedEvent,
    FileDeletedEvent,
    FileModifiedEvent,
    FileMovedEvent,
)
from watchdog.observers.polling import PollingObserver
from writing import put, write

from vector_index_mcp.files import watch as module
from vector_index_mcp.files.folder import Folder, Folders
from vector_index_mcp.files.watch import Watch

# What somebody did: the events, with paths from the project, and the keys that must be told.
RECORDED = {
    "macOS: a file is saved in place": (
        [(FileModifiedEvent, "a.py"), (DirModifiedEvent, "")],
        {"a.py"},
    ),
    "macOS: created, written and deleted within one look are one batch in any order": (
        [(FileCreatedEvent, "a.py"), (FileModifiedEvent, "a.py"), (FileDeletedEvent, "a.py")],
        {"a.py"},
    ),
    "macOS: an editor replaces a file by a rename": (
        [
            (FileCreatedEvent, ".a.py.sb-1"),
            (FileMovedEvent, ".a.py.sb-1", "a.py"),
            (FileModifiedEvent, "a.py"),
        ],
        {"a.py", ".a.py.sb-1"},
    ),
    "macOS: half of a rename, whose other half lies outside": (
        [(FileDeletedEvent, "src/gone.py")],
        {"src/gone.py"},
    ),
    "macOS: a folder is renamed, and what lies in it is told as well": (
        [
            (DirMovedEvent, "src", "lib"),
            (FileMovedEvent, "src/b.py", "lib/b.py"),
            (DirModifiedEvent, ""),
        ],
        {"src", "lib", "src/b.py", "lib/b.py"},
    ),
    "Windows: a file is saved: two modifications and one of its folder": (
        [(FileModifiedEvent, "src/b.py"), (FileModifiedEvent, "src/b.py")],
        {"src/b.py"},
    ),
    "Windows: a folder is deleted, told as a file, since it is gone": (
        [(FileDeletedEvent, "src")],
        {"src"},
    ),
    "Windows: a folder is created with files that came before its watch": (
        [(DirCreatedEvent, "new"), (FileCreatedEvent, "new/c.py"), (FileModifiedEvent, "new/c.py")],
        {"new", "new/c.py"},
    ),
    "Windows: a folder is moved in": (
        [(DirCreatedEvent, "vendor"), (DirDeletedEvent, "src")],
        {"vendor", "src"},
    ),
    "everywhere: what lies in an ignored folder is not told": (
        [(FileModifiedEvent, "skip/x.py"), (FileClosedEvent, "a.py")],
        {"a.py"},
    ),
    "everywhere: a move out of an ignored folder is told by its end": (
        [(FileMovedEvent, "skip/x.py", "x.py")],
        {"x.py"},
    ),
}


class Told:
    """The keys that a watch told."""

    def __init__(self) -> None:
        self.keys: set[str] = set()
        self.problems: list[str] = []

    def watch(self, project: Path) -> Watch:
        return Watch(
            Folders([Folder(project)]),
            lambda _, path: path == "skip" or path.startswith("skip/"),
            self.keys.update,
            self.problems.append,
        )


@pytest.fixture
def project(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "Inotify", None)
    return write(tmp_path / "project", {"a.py": "", "src/b.py": "", "skip/x.py": ""})


@pytest.mark.parametrize("recorded", RECORDED)
def test_every_path_of_a_recorded_sequence_is_told(project, recorded):
    events, expected = RECORDED[recorded]
    told = Told()
    watch = told.watch(project)
    for kind, *places in events:
        watch._report_event(kind(*(str(project / place) for place in places)))
    assert told.keys - {""} == expected
    assert not told.problems


def test_paths_as_windows_writes_them_become_keys(monkeypatch):
    told = Told()
    watch = told.watch(Path("/w/project"))
    monkeypatch.setattr(module.os, "sep", "\\")
    homes = dict(watch._homes_of("/w/project\\src\\deep\\b.py"))
    assert list(homes.values()) == ["src/deep/b.py"]


def test_an_observer_that_only_compares_tells_the_same(project, monkeypatch):
    """watchdog's own, without any system's events: it walks and compares when it is told to."""
    observer = PollingObserver(timeout=0.01)
    monkeypatch.setattr("watchdog.observers.Observer", lambda: observer)
    told = Told()
    watch = told.watch(project)
    watch.start()
    [emitter] = observer.emitters
    try:
        put(project, "new/deep.py")
        put(project, "a.py", "longer than before")
        (project / "src/b.py").rename(project / "c.py")
        emitter.queue_events(0)
        observer.event_queue.join()
        assert {"new", "new/deep.py", "a.py", "src/b.py", "c.py"} <= told.keys
    finally:
        watch.stop()
    assert not watch.is_alive
