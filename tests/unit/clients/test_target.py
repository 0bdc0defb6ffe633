"""What a path leads to stays what was shown, whoever changes the project meanwhile."""

import ctypes
import os
import sys
import threading
from contextlib import suppress
from pathlib import Path

import pytest

from vector_index_mcp.clients import configs
from vector_index_mcp.clients.configs import Change
from vector_index_mcp.clients.target import load, target_of
from vector_index_mcp.errors import ConfigFileError
from vector_index_mcp.files.beneath import Folder

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="uses POSIX links")

TRIES = 300
EXCHANGE = 2  # of renameat2


@pytest.fixture
def project(tmp_path):
    folder = tmp_path / "project"
    (folder / ".cursor").mkdir(parents=True)
    (folder / ".cursor" / "mcp.json").write_bytes(b"old")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "mcp.json").write_bytes(b"old")
    return folder


def foreign_files(project):
    return {path.name: path.read_bytes() for path in (project.parent / "outside").iterdir()}


def descriptors():
    return len(list(Path("/proc/self/fd").iterdir())) if sys.platform == "linux" else 0


@pytest.mark.parametrize("after", [b"new", None])
@pytest.mark.parametrize("replaced", [".cursor", ".cursor/mcp.json"])
def test_a_link_that_appears_after_the_plan_is_not_followed(project, replaced, after):
    target = target_of(project / ".cursor" / "mcp.json", project)
    change = Change(target, load(target), after)
    (project / replaced).rename(project / "away")
    below = replaced.removeprefix(".cursor")
    (project / replaced).symlink_to(f"{project.parent}/outside{below}")
    with pytest.raises(ConfigFileError):
        configs.apply(change)
    assert foreign_files(project) == {"mcp.json": b"old"}


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="exchanges two names at one blow")
def test_a_folder_that_becomes_a_link_all_the_time_leads_nowhere(project):
    cursor, link, ended = project / ".cursor", project / "link", threading.Event()
    link.symlink_to(project.parent / "outside")
    names = os.fsencode(cursor), os.fsencode(link)

    def swap():
        while not ended.is_set():
            assert ctypes.CDLL(None).renameat2(-1, names[0], -1, names[1], EXCHANGE) == 0

    swapping = threading.Thread(target=swap)
    swapping.start()
    written = 0
    try:
        for number in range(100 * TRIES):
            if written and number >= TRIES:  # it takes luck to meet the folder
                break
            with suppress(ConfigFileError):
                target = target_of(cursor / "mcp.json", project)
                configs.apply(Change(target, load(target), b"%d" % number))
                written += 1
    finally:
        ended.set()
        swapping.join()
    assert foreign_files(project) == {"mcp.json": b"old"}
    assert written


def test_a_file_that_runs_as_its_owner_is_not_imitated(project):
    path = project / ".cursor" / "mcp.json"
    path.chmod(0o4755)
    backup = configs.apply(Change(target_of(path, project), b"old", b"new"))
    assert (path.stat().st_mode & 0o7777, backup.stat().st_mode & 0o7777) == (0o755, 0o755)


def test_a_file_just_as_large_as_allowed_is_read(project):
    path = project / "AGENTS.md"
    path.write_bytes(b"x" * 1_000_000)
    assert len(load(target_of(path, project))) == 1_000_000
    path.write_bytes(b"x" * 1_000_001)
    with pytest.raises(ConfigFileError, match="larger than 1 MB"):
        load(target_of(path, project))
    assert len(load(target_of(path))) == 1_000_001  # the user's own may be larger


def test_nothing_stays_open(project):
    before = descriptors()
    for number in range(50):
        target = target_of(project / f"{number}" / "a.json", project)
        configs.apply(Change(target, None, b"1"))
        configs.apply(Change(target, b"1", b"2"))
    assert descriptors() == before


def test_a_backup_s_name_that_is_taken_meanwhile_is_not_opened(project, monkeypatch):
    path = project / ".cursor" / "mcp.json"
    path.with_name("mcp.json.bak").symlink_to(project.parent / "outside" / "mcp.json")
    path.with_name("mcp.json.bak.2").symlink_to(project.parent / "outside" / "new.json")
    monkeypatch.setattr(configs, "_backups", lambda _: [])  # looked for a moment before
    backup = configs.apply(Change(target_of(path, project), b"old", b"new"))
    assert (backup.name, backup.read_bytes()) == ("mcp.json.bak.3", b"old")
    assert foreign_files(project) == {"mcp.json": b"old"}


def test_a_device_is_not_even_opened(project, monkeypatch):
    path = project / "AGENTS.md"
    os.mkfifo(path)
    opened = []
    monkeypatch.setattr(Folder, "open", lambda *arguments: opened.append(arguments))
    with pytest.raises(ConfigFileError, match="not a regular file"):
        load(target_of(path, project))
    assert opened == []
