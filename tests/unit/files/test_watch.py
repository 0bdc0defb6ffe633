"""The observer: real files, and waiting for the event itself. A wait that fails ends after 5 s."""

import ctypes
import errno
import mmap
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from watchdog.observers.api import BaseObserver
from writing import put

from vector_index_mcp.errors import ProjectError
from vector_index_mcp.files import watch as module
from vector_index_mcp.files.folder import Folder, Folders
from vector_index_mcp.files.ignore import RULES
from vector_index_mcp.files.watch import EVENTS_LOST, WATCH_LIMIT, Watch

if sys.platform == "linux":
    from watchdog.observers.inotify_c import InotifyConstants, InotifyEvent

    from vector_index_mcp.files import inotify

LONGEST_WAIT_SECONDS = 5
MOST_EVENTS_TO_CAUSE = 50_000
linux_only = pytest.mark.skipif(sys.platform != "linux", reason="looks at inotify")


class Recorder:
    """What a watch told, and a way to wait for it."""

    def __init__(self) -> None:
        self.watch: Watch | None = None
        """Settled whenever it tells something, as its user does before looking at the disk."""
        self.ignored: set[str] = set()
        self._told: set[str] = set()
        self._problems: list[str] = []
        self._changed = threading.Condition()

    def is_ignored_folder(self, folder: Folder, path: str) -> bool:
        return any(path == name or path.startswith(name + "/") for name in self.ignored)

    def on_dirty(self, paths: list[str]) -> None:
        if self.watch is not None:
            self.watch.settle()
        with self._changed:
            self._told.update(paths)
            self._changed.notify_all()

    def on_problem(self, problem: str) -> None:
        with self._changed:
            self._problems.append(problem)
            self._changed.notify_all()

    def forget(self) -> None:
        with self._changed:
            self._told.clear()

    def wait_for(self, *paths: str) -> set[str]:
        """All paths told, as soon as `paths` are among them."""
        self._wait(lambda: self._told >= set(paths), f"{paths}")
        return set(self._told)

    def wait_for_problem(self, problem: str) -> None:
        self._wait(lambda: problem in self._problems, problem)

    def _wait(self, condition: Callable[[], bool], what: str) -> None:
        with self._changed:
            arrived = self._changed.wait_for(condition, LONGEST_WAIT_SECONDS)
            assert arrived, f"waited for {what}, told were {self._told} and {self._problems}"


def only(project: Path) -> Folders:
    return Folders([Folder(project)])


@pytest.fixture
def recorder() -> Recorder:
    return Recorder()


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for path in ("a.py", "x/a.py", "x/y/a.py", "skip/deep/a.py"):
        put(tmp_path, path)
    return tmp_path


@pytest.fixture
def watch(project: Path, recorder: Recorder) -> Iterator[Watch]:
    """A started watch of the project, in which the folder `skip` is ignored."""
    recorder.ignored.add("skip")
    watch = Watch(
        only(project),
        recorder.is_ignored_folder,
        recorder.on_dirty,
        recorder.on_problem,
    )
    recorder.watch = watch
    watch.start()
    yield watch
    watch.stop()


def exchange(one: Path, other: Path) -> None:
    """Give two entries each other's names in one step."""
    libc, here, at_once = ctypes.CDLL(None, use_errno=True), -100, 2
    if libc.renameat2(here, os.fsencode(one), here, os.fsencode(other), at_once):
        pytest.skip(f"nothing can be exchanged here: {os.strerror(ctypes.get_errno())}")


def watched(root: Path) -> set[str]:
    """The folders of `root` the kernel watches for this process, by the kernel's own word."""
    numbers = set()
    for link in Path("/proc/self/fd").iterdir():
        try:
            if str(link.readlink()) != "anon_inode:inotify":
                continue
            lines = Path(f"/proc/self/fdinfo/{link.name}").read_text(encoding="ascii").splitlines()
        except FileNotFoundError:  # closed since it was listed
            continue
        watches = [line for line in lines if line.startswith("inotify wd")]
        numbers |= {int(line.split("ino:")[1].split()[0], 16) for line in watches}
    folders = [root, *(path for path in root.rglob("*") if path.is_dir())]
    return {f.relative_to(root).as_posix() for f in folders if f.lstat().st_ino in numbers}


def inotify_count() -> int:
    links = []
    for link in Path("/proc/self/fd").iterdir():
        try:
            links.append(str(link.readlink()))
        except FileNotFoundError:  # closed since it was listed
            continue
    return links.count("anon_inode:inotify")


@pytest.mark.parametrize("path", ["new.py", "x/new.py", "x/y/new.py", "x/it's 😀.py"])
def test_a_new_file_is_told(project: Path, watch: Watch, recorder: Recorder, path: str) -> None:
    put(project, path)
    recorder.wait_for(path)


def test_a_changed_file_is_told(project: Path, watch: Watch, recorder: Recorder) -> None:
    put(project, "x/y/a.py", "longer")
    assert recorder.wait_for("x/y/a.py") == {"x/y/a.py"}


def test_a_file_that_is_only_read_is_not_told(
    project: Path, watch: Watch, recorder: Recorder
) -> None:
    (project / "a.py").read_bytes()
    put(project, "x/last.py")
    assert recorder.wait_for("x/last.py") == {"x/last.py"}


def test_a_file_saved_by_renaming_is_told(project: Path, watch: Watch, recorder: Recorder) -> None:
    put(project, "x/a.py.tmp", "longer")
    recorder.wait_for("x/a.py.tmp")
    recorder.forget()
    (project / "x/a.py.tmp").replace(project / "x/a.py")
    recorder.wait_for("x/a.py.tmp", "x/a.py")


def test_a_file_moved_in_from_elsewhere_is_told(
    project: Path, watch: Watch, recorder: Recorder, tmp_path_factory: pytest.TempPathFactory
) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    put(elsewhere, "a.py")
    (elsewhere / "a.py").rename(project / "x/moved.py")
    recorder.wait_for("x/moved.py")


def test_what_is_moved_out_is_told(
    project: Path, watch: Watch, recorder: Recorder, tmp_path_factory: pytest.TempPathFactory
) -> None:
    (project / "x").rename(tmp_path_factory.mktemp("elsewhere") / "x")
    recorder.wait_for("x")


def test_a_deleted_file_is_told(project: Path, watch: Watch, recorder: Recorder) -> None:
    (project / "x/a.py").unlink()
    recorder.wait_for("x/a.py")


def test_a_deleted_folder_is_told(project: Path, watch: Watch, recorder: Recorder) -> None:
    shutil.rmtree(project / "x")
    recorder.wait_for("x")


def test_a_folder_made_again_is_watched_again(
    project: Path, watch: Watch, recorder: Recorder
) -> None:
    for turn in range(3):
        shutil.rmtree(project / "x")
        put(project, "x/y/a.py")
        # Of another name each time: what is told late of the last one says nothing of this `x`.
        put(project, f"then{turn}.py")
        recorder.wait_for("x", f"then{turn}.py")
        recorder.forget()
    put(project, "x/y/last.py")
    recorder.wait_for("x/y/last.py")


def test_a_renamed_folder_is_told_by_both_names_and_watched_by_the_new_one(
    project: Path, watch: Watch, recorder: Recorder
) -> None:
    (project / "x").rename(project / "w")
    recorder.wait_for("x", "w")
    recorder.forget()
    put(project, "w/y/a.py", "longer")
    assert recorder.wait_for("w/y/a.py") == {"w/y/a.py"}


def test_files_in_a_brand_new_deep_folder_are_told(
    project: Path, watch: Watch, recorder: Recorder
) -> None:
    paths = [f"new/{i}/b/c/d/e/a.py" for i in range(20)]
    for path in paths:
        put(project, path)
    put(project, "last.py")
    told = recorder.wait_for("last.py")
    for path in paths:  # by its own name, or by that of a folder that came with it
        assert not told.isdisjoint({path, *map(str, Path(path).parents)})
    recorder.forget()
    put(project, "new/7/b/c/d/e/late.py")
    recorder.wait_for("new/7/b/c/d/e/late.py")


@linux_only
@pytest.mark.parametrize("by_one_call", [True, False])
def test_exchanged_folders_are_told_by_the_names_they_have_now(
    project: Path, watch: Watch, recorder: Recorder, by_one_call: bool
) -> None:
    put(project, "w/deep/a.py")
    one, other, aside = project / "x", project / "w", project / "aside"
    recorder.wait_for("w")
    if by_one_call:
        exchange(one, other)
    else:
        one.rename(aside)
        other.rename(one)
        aside.rename(other)
    put(project, "last.py")  # told after all that happened before
    recorder.wait_for("x", "w", "last.py")
    recorder.forget()
    paths = {"x/deep/a.py", "w/y/a.py", "x/new.py", "w/new.py"}
    for path in paths:
        put(project, path, "longer")
    assert recorder.wait_for(*paths) - {"last.py"} == paths


@linux_only
def test_a_folder_moved_twice_whose_first_name_is_taken_is_told_by_its_last(
    project: Path, watch: Watch, recorder: Recorder
) -> None:
    (project / "x").rename(project / "w")
    (project / "w").rename(project / "v")
    put(project, "w/a.py")
    put(project, "last.py")
    recorder.wait_for("last.py")
    recorder.forget()
    paths = {"v/y/a.py", "w/a.py", "v/new.py", "w/new.py"}
    for path in paths:
        put(project, path, "longer")
    assert recorder.wait_for(*paths) - {"last.py"} == paths


@linux_only
def test_what_is_written_and_not_closed_is_told_as_unfinished(
    project: Path, recorder: Recorder
) -> None:
    unfinished = Recorder()
    watch = Watch(
        only(project),
        recorder.is_ignored_folder,
        recorder.on_dirty,
        recorder.on_problem,
        unfinished.on_dirty,
    )
    watch.start()
    try:
        with (project / "x/a.py").open("a", encoding="utf-8") as file:
            file.write("more")
            file.flush()
            assert unfinished.wait_for("x/a.py") == {"x/a.py"}
            put(project, "a.py", "longer")
            assert recorder.wait_for("a.py") == {"a.py"}
        recorder.wait_for("x/a.py")
        os.truncate(project / "x/y/a.py", 0)  # by its path: nothing is closed
        unfinished.wait_for("x/y/a.py")
    finally:
        watch.stop()


def test_a_change_of_rights_is_told(project: Path, watch: Watch, recorder: Recorder) -> None:
    (project / "x/a.py").chmod(0o600)
    assert recorder.wait_for("x/a.py") == {"x/a.py"}


@linux_only
def test_a_write_through_a_memory_map_is_told_when_the_map_is_closed(
    project: Path, watch: Watch, recorder: Recorder
) -> None:
    with (project / "x/a.py").open("r+b") as file:
        mapped = mmap.mmap(file.fileno(), 0)
    mapped[:1] = b"y"
    mapped.close()
    recorder.wait_for("x/a.py")


@linux_only
def test_a_sign_is_told_whether_its_file_is_there_or_not(
    project: Path, recorder: Recorder, tmp_path_factory: pytest.TempPathFactory
) -> None:
    home = tmp_path_factory.mktemp("home")
    put(home, "there/config")
    signs = [home / "there/config", home / "not/yet/there", project / "x/a.py"]
    watch = Watch(
        only(project),
        recorder.is_ignored_folder,
        recorder.on_dirty,
        recorder.on_problem,
    )
    recorder.watch = watch
    watch.start(signs)
    try:
        put(home, "there/other")
        put(project, "a.py", "longer")
        assert recorder.wait_for("a.py") == {"a.py"}
        for _ in range(2):
            recorder.forget()
            put(home, "there/config", "longer")
            recorder.wait_for(RULES)
        recorder.forget()
        put(home, "not/other")
        recorder.wait_for(RULES)  # one step nearer
        for _ in range(2):
            recorder.forget()
            put(home, "not/yet/there")
            recorder.wait_for(RULES)
        recorder.forget()
        put(project, "x/a.py", "longer")
        assert recorder.wait_for(RULES, "x/a.py") == {RULES, "x/a.py"}
        watch.settle(signs=())
        assert watched(home) == set()
        assert watched(project) == {".", "x", "x/y", "skip", "skip/deep"}
    finally:
        watch.stop()


@linux_only
def test_an_ignored_folder_gets_no_watch(project: Path, watch: Watch, recorder: Recorder) -> None:
    assert watched(project) == {".", "x", "x/y"}
    recorder.ignored.add("x/out")
    put(project, "x/out/deep/a.py")
    put(project, "x/in/a.py")
    put(project, "last.py")
    recorder.wait_for("x/in", "last.py")
    assert watched(project) == {".", "x", "x/y", "x/in"}


def test_files_of_an_ignored_folder_are_not_told(
    project: Path, watch: Watch, recorder: Recorder
) -> None:
    put(project, "skip/new.py")
    put(project, "skip/deep/a.py", "longer")
    put(project, "x/last.py")
    assert recorder.wait_for("x/last.py") == {"x/last.py"}


def test_a_folder_renamed_out_of_an_ignored_name_is_watched(
    project: Path, watch: Watch, recorder: Recorder
) -> None:
    (project / "skip").rename(project / "shown")
    recorder.wait_for("shown")
    put(project, "shown/deep/new.py")
    recorder.wait_for("shown/deep/new.py")


def test_files_of_a_folder_renamed_to_an_ignored_name_are_not_told(
    project: Path, watch: Watch, recorder: Recorder
) -> None:
    recorder.ignored.add("out")
    (project / "x").rename(project / "out")
    recorder.wait_for("x", "out")
    put(project, "out/y/a.py", "longer")
    put(project, "last.py")
    assert not any(path.startswith("out/") for path in recorder.wait_for("last.py"))


@linux_only
def test_a_link_to_a_folder_gets_no_watch(
    project: Path, watch: Watch, recorder: Recorder, tmp_path_factory: pytest.TempPathFactory
) -> None:
    outside = tmp_path_factory.mktemp("outside")
    (project / "out").symlink_to(outside)
    (project / "x/loop").symlink_to(project)
    put(project, "last.py")
    recorder.wait_for("last.py")
    watch.settle(everywhere=True)
    assert watched(project) == {".", "x", "x/y"}
    assert watched(outside) == set()


@linux_only
@pytest.mark.parametrize(
    ("code", "told"),
    [
        (errno.ENOSPC, [WATCH_LIMIT]),
        (errno.EMFILE, [WATCH_LIMIT]),
        (errno.ENOENT, []),
        (errno.EACCES, []),  # a scan says that the folder cannot be read
        (errno.EIO, []),
    ],
)
def test_a_root_that_can_be_watched_no_more_is_told_if_a_limit_is_the_reason(
    watch: Watch, recorder: Recorder, monkeypatch: pytest.MonkeyPatch, code: int, told: list[str]
) -> None:
    def refused(observer: object) -> list[bytes]:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(type(watch._observer), "settle_everything", refused)
    assert watch.settle(everywhere=True) == []
    assert recorder._problems == told


@linux_only
def test_changed_rules_are_followed(project: Path, watch: Watch, recorder: Recorder) -> None:
    recorder.ignored = {"x/y"}
    watch.settle(everywhere=True)
    assert watched(project) == {".", "x", "skip", "skip/deep"}
    put(project, "skip/deep/new.py")
    recorder.wait_for("skip/deep/new.py")
    recorder.ignored = {"skip"}
    watch.settle(everywhere=True)
    assert watched(project) == {".", "x", "x/y"}
    put(project, "x/y/new.py")
    recorder.wait_for("x/y/new.py")


def test_stop_ends_all_threads_and_gives_the_watches_back(
    project: Path, recorder: Recorder
) -> None:
    threads = set(threading.enumerate())
    count = inotify_count() if sys.platform == "linux" else 0
    watch = Watch(
        only(project),
        recorder.is_ignored_folder,
        recorder.on_dirty,
        recorder.on_problem,
    )
    assert not watch.is_alive
    watch.start()
    assert watch.is_alive
    assert set(threading.enumerate()) > threads
    watch.stop()
    watch.stop()
    watch.settle(everywhere=True)
    assert not watch.is_alive
    assert set(threading.enumerate()) == threads
    if sys.platform == "linux":
        assert inotify_count() == count
        assert watched(project) == set()


def test_a_stop_in_another_thread_hinders_nobody(project: Path, recorder: Recorder) -> None:
    class Stopped(Watch):
        """Whose observer is gone as soon as somebody has looked at it."""

        @property
        def _observer(self) -> BaseObserver | None:
            observer, self._once = self._once, None
            return observer

        @_observer.setter
        def _observer(self, observer: BaseObserver | None) -> None:
            self._once = observer

    for use in (Watch.settle, lambda watch: watch.is_alive, Watch.stop):
        watch = Stopped(
            only(project), recorder.is_ignored_folder, recorder.on_dirty, recorder.on_problem
        )
        watch.start()
        observer = watch._once
        assert observer is not None
        use(watch)
        observer.stop()
        observer.join()


def test_where_watches_cannot_be_pruned_the_events_are_told_all_the_same(
    project: Path, recorder: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "Inotify", None)
    recorder.ignored.add("skip")
    watch = Watch(
        only(project),
        recorder.is_ignored_folder,
        recorder.on_dirty,
        recorder.on_problem,
    )
    watch.start()
    try:
        watch.settle(everywhere=True)
        assert watch.is_alive
        put(project, "skip/new.py")
        put(project, "x/new.py")
        assert not any(path.startswith("skip/") for path in recorder.wait_for("x/new.py"))
    finally:
        watch.stop()


def test_a_watch_can_be_started_again(project: Path, watch: Watch, recorder: Recorder) -> None:
    watch.stop()
    watch.start()
    put(project, "x/new.py")
    recorder.wait_for("x/new.py")


@linux_only
def test_a_watch_of_a_deleted_project_tells_it_and_is_not_alive(
    project: Path, watch: Watch, recorder: Recorder
) -> None:
    shutil.rmtree(project)
    recorder.wait_for("")
    assert not watch.is_alive


@linux_only
def test_a_folder_moved_out_made_again_and_deleted_in_both_places_ends_nothing(
    project: Path, watch: Watch, recorder: Recorder, tmp_path_factory: pytest.TempPathFactory
) -> None:
    trash = tmp_path_factory.mktemp("trash")
    (project / "x").rename(trash / "x")
    (project / "x").mkdir()
    put(project, "one.py")
    recorder.wait_for("x", "one.py")  # so the new folder has a watch, too
    shutil.rmtree(project / "x")
    put(project, "two.py")
    recorder.wait_for("two.py")
    shutil.rmtree(trash / "x")
    put(project, "three.py")
    recorder.wait_for("three.py")
    assert watch.is_alive


@linux_only
def test_what_settles_lets_go_of_a_folder_that_was_moved_out_and_made_again(
    project: Path, watch: Watch, recorder: Recorder, tmp_path_factory: pytest.TempPathFactory
) -> None:
    trash = tmp_path_factory.mktemp("trash")
    (project / "x").rename(trash / "x")
    put(project, "x/y/new.py")
    put(project, "first.py")  # told after all that happened before
    recorder.wait_for("x", "first.py")
    assert watched(trash) == set()
    assert watched(project) == {".", "x", "x/y"}
    put(project, "x/y/last.py")
    recorder.wait_for("x/y/last.py")


@linux_only
def test_a_project_moved_away_and_made_again_is_watched_when_the_old_one_is_deleted(
    project: Path, watch: Watch, recorder: Recorder, tmp_path_factory: pytest.TempPathFactory
) -> None:
    trash = tmp_path_factory.mktemp("trash")
    project.rename(trash / "old")
    put(project, "new.py")
    watch.settle(everywhere=True)
    shutil.rmtree(trash / "old")
    put(project, "last.py")
    recorder.wait_for("last.py")
    assert watch.is_alive


@linux_only
def test_events_lost_while_the_project_is_away_are_told_and_end_nothing(
    project: Path, watch: Watch, recorder: Recorder, tmp_path_factory: pytest.TempPathFactory
) -> None:
    away = tmp_path_factory.mktemp("elsewhere") / "away"
    project.rename(away)
    reader = watch._observer
    reader.handle_event(InotifyEvent(-1, InotifyConstants.IN_Q_OVERFLOW, 0, b""))
    recorder.wait_for_problem(EVENTS_LOST)
    away.rename(project)
    put(project, "x/new.py")
    recorder.wait_for("x/new.py")


@linux_only
def test_a_watch_whose_reading_thread_has_died_is_not_alive(watch: Watch) -> None:
    reader = watch._observer
    reader.stop()
    reader.join(LONGEST_WAIT_SECONDS)
    assert not watch.is_alive


@linux_only
def test_a_project_may_be_deleted_while_watches_are_set_anew(
    watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = []

    def refuse(*arguments: object) -> int:
        refused.append(arguments)
        ctypes.set_errno(errno.ENOENT)
        return -1

    monkeypatch.setattr(inotify, "inotify_add_watch", refuse)
    watch.settle(everywhere=True)
    assert refused


def test_a_start_that_fails_says_why_and_leaves_no_threads(
    tmp_path: Path, recorder: Recorder
) -> None:
    threads = set(threading.enumerate())
    missing = only(tmp_path / "missing")
    watch = Watch(missing, recorder.is_ignored_folder, recorder.on_dirty, recorder.on_problem)
    with pytest.raises(ProjectError, match="cannot be watched"):
        watch.start()
    assert not watch.is_alive
    assert set(threading.enumerate()) == threads
    if sys.platform == "linux":
        assert inotify_count() == 0
    watch.stop()


@linux_only
def test_where_no_thread_can_be_started_the_watch_says_so_and_leaves_nothing_open(
    project: Path, watch: Watch, recorder: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    watch.stop()
    before = set(Path("/proc/self/fd").iterdir())
    other = Watch(only(project), recorder.is_ignored_folder, recorder.on_dirty, recorder.on_problem)
    with monkeypatch.context() as limited:
        limited.setattr(threading.Thread, "start", refuse)
        with pytest.raises(ProjectError, match="found by polling meanwhile"):
            other.start()
    assert not other.is_alive
    assert set(Path("/proc/self/fd").iterdir()) == before


@pytest.mark.slow
@linux_only
def test_an_overflow_of_the_queue_is_told_and_the_folders_there_are_get_watched(
    project: Path, recorder: Recorder
) -> None:
    size = int(Path("/proc/sys/fs/inotify/max_queued_events").read_text(encoding="ascii"))
    if size > MOST_EVENTS_TO_CAUSE:
        pytest.skip(f"the queue holds {size} events")
    told, goes_on = threading.Event(), threading.Event()

    def on_dirty(paths: list[str]) -> None:
        if "stop" in paths:  # holds the thread that empties the queue
            told.set()
            goes_on.wait(LONGEST_WAIT_SECONDS)
        recorder.on_dirty(paths)

    watch = Watch(only(project), recorder.is_ignored_folder, on_dirty, recorder.on_problem)
    watch.start()
    try:
        (project / "stop").mkdir()
        assert told.wait(LONGEST_WAIT_SECONDS)
        for i in range(size + 10):  # two files in turn: the kernel joins repeated events
            os.close(os.open(project / ("a.py", "x/a.py")[i % 2], os.O_WRONLY))
        put(project, "late/deep/a.py")
        (project / "x").rename(project / "w")
        goes_on.set()
        recorder.wait_for_problem(EVENTS_LOST)
        watch.settle()
        assert {"late", "late/deep", "stop", "w", "w/y"} <= watched(project)
        put(project, "late/deep/new.py")
        put(project, "w/y/new.py")
        recorder.wait_for("late/deep/new.py", "w/y/new.py")
    finally:
        goes_on.set()
        watch.stop()


# The limit of a user namespace is its own. Writing it is tried only where that is seen to be so.
WITH_LIMIT = """
limit=/proc/sys/user/max_inotify_watches
[ "$(readlink /proc/self/ns/user)" != "$1" ] && [ "$(cat $limit)" != "$2" ] || exit 77
echo "$3" > $limit || exit 77
shift 3
exec "$@"
"""
START_AND_TELL = """
import pathlib, sys, threading
from vector_index_mcp.errors import ProjectError
from vector_index_mcp.files.folder import Folder, Folders
from vector_index_mcp.files.watch import Watch
problems = []
folders = Folders([Folder(pathlib.Path(sys.argv[1]))])
watch = Watch(folders, lambda *where: False, lambda keys: None, problems.append)
try:
    watch.start()
    print(watch.is_alive, sorted(set(problems)))
    watch.stop()
except ProjectError as error:
    print(error)
print(threading.active_count())
"""


def start_with_limit(project: Path, limit: int) -> list[str]:
    if shutil.which("unshare") is None:
        pytest.skip("there is no unshare")
    outside = Path("/proc/sys/user/max_inotify_watches")
    if not outside.exists():
        pytest.skip("the kernel has no limit of watches per user namespace")
    before = outside.read_text(encoding="ascii").strip()
    namespace = Path("/proc/self/ns/user").readlink()
    shell = ["unshare", "-Ur", "sh", "-c", WITH_LIMIT, "sh", str(namespace)]
    program = [sys.executable, "-c", START_AND_TELL, str(project)]
    outcome = subprocess.run(
        [*shell, before, str(limit), *program],
        capture_output=True,
        text=True,
        check=False,
    )
    assert outside.read_text(encoding="ascii").strip() == before
    if outcome.returncode == 77 or "unshare" in outcome.stderr:
        pytest.skip(f"no user namespace with a limit of its own: {outcome.stderr.strip()}")
    assert outcome.returncode == 0, outcome.stderr
    return outcome.stdout.splitlines()


@pytest.mark.slow
@linux_only
def test_a_reached_watch_limit_is_told_and_the_rest_is_watched(project: Path) -> None:
    assert start_with_limit(project, 3) == [f"True ['{WATCH_LIMIT}']", "1"]


@pytest.mark.slow
@linux_only
def test_enough_watches_are_no_problem(project: Path) -> None:
    assert start_with_limit(project, 50) == ["True []", "1"]


@pytest.mark.slow
@linux_only
def test_no_watch_at_all_is_an_error_that_says_what_to_do(project: Path) -> None:
    message, threads = start_with_limit(project, 0)
    assert "raise fs.inotify" in message
    assert "No space left on device" in message
    assert threads == "1"
