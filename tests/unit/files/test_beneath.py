"""What lies outside of a folder is not reached from inside, whatever is replaced by a link when."""

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from vector_index_mcp.files import beneath
from vector_index_mcp.files.folder import Folder, Reading
from vector_index_mcp.files.ignore import Ignore
from vector_index_mcp.files.read import Text, Vanished, read
from vector_index_mcp.files.scan import walk

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="links need privileges there")

LIMIT = 1_000
TRIES = 3_000
ways = pytest.mark.parametrize("can_step", [True, False], ids=["step by step", "as a whole"])


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with a folder, beside a secret of the same name."""
    for folder, text in (("project/a/b", "inside"), ("outside/b", "outside")):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "c.py").write_text(text)
    (tmp_path / "outside/b/d.py").write_text("outside")
    return tmp_path / "project"


@contextmanager
def swapping(folder: Path, outside: Path) -> Iterator[None]:
    """`folder` is replaced by a link to `outside` and put back, again and again."""
    link, aside = folder.with_name("link"), folder.parent.parent / "aside"
    ends = threading.Event()

    def swap() -> None:
        while not ends.is_set():
            folder.rename(aside)
            Path(link).symlink_to(outside)
            link.rename(folder)
            folder.unlink()
            aside.rename(folder)

    thread = threading.Thread(target=swap)
    thread.start()
    try:
        yield
    finally:
        ends.set()
        thread.join()


@pytest.mark.slow
def test_a_folder_that_becomes_a_link_in_the_middle_leads_nowhere(project: Path) -> None:
    texts, names = set(), set()
    ignore = Ignore(Folder(project))
    with swapping(project / "a", project.parent / "outside"):
        for _ in range(TRIES):
            outcome = read(Folder(project, reading=Reading(LIMIT)), "a/b/c.py")
            texts.add(outcome.text if isinstance(outcome, Text) else type(outcome))
            names.update(walk(Folder(project), ignore).files)
    assert texts <= {"inside", Vanished}
    assert names <= {"a/b/c.py"}


@ways
def test_behind_a_link_there_is_nothing(
    project: Path, monkeypatch: pytest.MonkeyPatch, can_step: bool
) -> None:
    monkeypatch.setattr(beneath, "_CAN_STEP", can_step)
    (project / "link").symlink_to(project.parent / "outside")
    (project / "c.py").symlink_to(project.parent / "outside/b/c.py")
    with pytest.raises(NotADirectoryError):
        beneath.open_file(project, "link/b/c.py", os.O_RDONLY)
    with pytest.raises(NotADirectoryError):
        beneath.status(project, "link/b/c.py")
    for folder in ("link", "link/b"):
        with pytest.raises(NotADirectoryError), beneath.entries(project, folder):
            pass
    with pytest.raises(OSError, match="symbolic links"):
        beneath.open_file(project, "c.py", os.O_RDONLY)


@ways
@pytest.mark.parametrize("key", ["../outside/b/c.py", "a/../../outside/b/c.py", "..", "a/.."])
def test_there_is_no_way_up(
    project: Path, monkeypatch: pytest.MonkeyPatch, can_step: bool, key: str
) -> None:
    monkeypatch.setattr(beneath, "_CAN_STEP", can_step)
    with pytest.raises(FileNotFoundError):
        beneath.status(project, key)
    with pytest.raises(FileNotFoundError):
        beneath.open_file(project, key, os.O_RDONLY)
    with pytest.raises(FileNotFoundError), beneath.entries(project, key):
        pass


@ways
def test_what_lies_below_is_opened(
    project: Path, monkeypatch: pytest.MonkeyPatch, can_step: bool
) -> None:
    monkeypatch.setattr(beneath, "_CAN_STEP", can_step)
    descriptor = beneath.open_file(project, "a/b/c.py", os.O_RDONLY)
    assert beneath.status(project, "a/b/c.py") == os.fstat(descriptor)
    assert os.read(descriptor, LIMIT) == b"inside"
    os.close(descriptor)
    assert beneath.status(project, "") == project.stat()
    for folder, names in (("", ["a"]), ("a", ["b"]), ("a/b", ["c.py"])):
        with beneath.entries(project, folder) as entries:
            assert [entry.name for entry in entries] == names


@ways
def test_a_project_may_be_named_by_a_link(
    project: Path, monkeypatch: pytest.MonkeyPatch, can_step: bool
) -> None:
    monkeypatch.setattr(beneath, "_CAN_STEP", can_step)
    link = project.with_name("link")
    link.symlink_to(project)
    os.close(beneath.open_file(link, "a/b/c.py", os.O_RDONLY))


@pytest.mark.parametrize("way", ["open_file", "status", "entries"])
def test_no_descriptor_stays_behind(project: Path, way: str) -> None:
    before = len(list(Path("/dev/fd").iterdir()))
    for path in ("a/b", "a/b/c.py", "a/b/c.py/x", "a/x/y", "x/y"):
        try:
            if way == "entries":
                with beneath.entries(project, path):
                    pass
            elif way == "status":
                beneath.status(project, path)
            else:
                os.close(beneath.open_file(project, path, os.O_RDONLY))
        except OSError:
            continue
    assert len(list(Path("/dev/fd").iterdir())) == before
