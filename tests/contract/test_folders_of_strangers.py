"""A folder of objects into which somebody has put what is no object, or whose drive hangs."""

import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import anyio
import pytest
from folders import nested_in
from waiting import eventually

from vector_index_mcp.errors import Problem, StorageError
from vector_index_mcp.objects import folder
from vector_index_mcp.objects.folder import FolderObjects

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(os.name != "posix", reason="devices, pipes and links as POSIX has them"),
]
SOON_SECONDS = 5.0
SECRET = b"of another folder"


@pytest.fixture
def elsewhere(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "name").write_bytes(SECRET)
    return tmp_path / "elsewhere"


def as_socket(path, elsewhere):
    with socket.socket(socket.AF_UNIX) as bound:
        here = Path.cwd()
        os.chdir(path.parent)  # a socket's path may have 100 bytes
        bound.bind(path.name)
        os.chdir(here)


def as_link_on_the_way(path, elsewhere):
    path.parent.rmdir()
    path.parent.symlink_to(elsewhere)


STRANGE = {
    "a link to a device without end": lambda path, _: path.symlink_to("/dev/zero"),
    "a link to a file": lambda path, elsewhere: path.symlink_to(elsewhere / "name"),
    "a pipe": lambda path, _: os.mkfifo(path),
    "a socket": as_socket,
    "a folder": lambda path, _: path.mkdir(),
    "a link on the way": as_link_on_the_way,
}


@pytest.mark.parametrize("what", STRANGE)
async def test_what_is_no_plain_file_is_refused_at_once(tmp_path, elsewhere, what):
    objects, target = FolderObjects(tmp_path / "store"), tmp_path / "down"
    path = tmp_path / "store" / "objects" / "name"
    path.parent.mkdir(parents=True)
    STRANGE[what](path, elsewhere)
    asked = {
        "get": lambda: objects.get("objects/name", 1_000),
        "part": lambda: objects.part("objects/name", 0, 10),
        "download": lambda: objects.download("objects/name", target, 1_000),
        "replace": lambda: objects.replace("objects/name", b"", "tag"),
    }
    for ask in asked.values():
        with anyio.fail_after(SOON_SECONDS), pytest.raises(StorageError):
            await ask()
    assert not target.exists()
    assert await objects.entries() == []


async def test_nothing_is_listed_written_or_removed_behind_a_link(tmp_path, elsewhere):
    (tmp_path / "store").mkdir()
    (tmp_path / "store" / "objects").symlink_to(elsewhere)
    objects = FolderObjects(tmp_path / "store")
    asked = {
        "entries": lambda: objects.entries("objects/"),
        "put": lambda: objects.put("objects/name", b"1"),
        "put_new": lambda: objects.put_new("objects/other", b"1"),
        "upload": lambda: objects.upload(elsewhere / "name", "objects/other"),
        "delete": lambda: objects.delete(["objects/name"]),
    }
    for ask in asked.values():
        with pytest.raises(StorageError):
            await ask()
    assert {path.name: path.read_bytes() for path in elsewhere.iterdir()} == {"name": SECRET}


async def test_a_lock_that_is_a_link_is_not_followed(tmp_path, elsewhere):
    (tmp_path / "store").mkdir()
    (tmp_path / "store" / ".lock").symlink_to(elsewhere / "name")
    with pytest.raises(StorageError):
        await FolderObjects(tmp_path / "store").put_new("name", b"1")
    assert (elsewhere / "name").read_bytes() == SECRET


@pytest.mark.skipif(sys.platform != "linux", reason="files that say they have no bytes")
async def test_a_file_that_is_longer_than_it_says_is_not_read_to_its_end(tmp_path):
    objects = FolderObjects(Path("/proc/self"))
    for most_bytes in (0, 100):
        with pytest.raises(StorageError, match="more than"):
            await objects.download("smaps", tmp_path / "down", most_bytes)
        with pytest.raises(StorageError, match="more than"):
            await objects.get("smaps", most_bytes)
    assert not (tmp_path / "down").exists()


async def test_what_a_killed_job_left_unfinished_goes_after_a_day_and_nothing_else(tmp_path):
    objects, now = FolderObjects(tmp_path), time.time()
    ours, young, other = (f".writing-{c * n}" for c, n in (("a", 16), ("b", 16), ("c", 15)))
    (tmp_path / "objects").mkdir()
    for name, hours in ((ours, 25), (young, 23), (other, 25), ("whole", 25)):
        path = tmp_path / "objects" / name
        path.write_bytes(b"1")
        os.utime(path, (now - hours * 3_600,) * 2)
    assert [entry.name for entry in await objects.entries("objects/")] == ["objects/whole"]
    left = {path.name for path in (tmp_path / "objects").iterdir()}
    assert left == {young, other, "whole"}


@pytest.mark.slow
async def test_a_drive_that_hangs_is_an_error_in_time(drive, tmp_path, monkeypatch):
    monkeypatch.setattr(folder, "_SECONDS", 0.3)
    objects = FolderObjects(drive.folder)
    await objects.put("a/b", b"1")
    tag = (await objects.get("a/b", 10)).tag
    drive.hang()
    asked = {
        "entries": lambda: objects.entries(),
        "get": lambda: objects.get("a/b", 10),
        "download": lambda: objects.download("a/b", tmp_path / "down", 10),
        "put": lambda: objects.put("a/c", b"1"),
        "replace": lambda: objects.replace("a/b", b"2", tag),
        "delete": lambda: objects.delete(["a/b"]),
    }
    for ask in asked.values():
        with anyio.fail_after(SOON_SECONDS), pytest.raises(StorageError) as raised:
            await ask()
        assert raised.value.problem is Problem.STORE_FOLDER


@pytest.mark.slow
async def test_what_was_begun_on_a_drive_that_hung_is_not_done_later(drive, monkeypatch):
    monkeypatch.setattr(folder, "_SECONDS", 0.3)
    objects = FolderObjects(drive.folder)
    await objects.put("a/b", b"1")
    drive.hang()
    with pytest.raises(StorageError):
        await objects.put("a/b", b"2")
    drive.go_on()
    await eventually(lambda: not objects._threads.is_busy)
    assert [(path.name, path.read_bytes()) for path in (drive.behind / "a").iterdir()] == [
        ("b", b"1")
    ]


ASKS = """
import sys, anyio
from vector_index_mcp.errors import StorageError
from vector_index_mcp.objects import folder
folder._SECONDS = 0.3
async def main():
    try:
        await folder.FolderObjects(folder.Path(sys.argv[1])).entries()
    except StorageError as error:
        print(error)
anyio.run(main)
"""


@pytest.mark.slow
async def test_a_process_ends_although_a_drive_hangs(drive):
    drive.hang()
    command = [sys.executable, "-c", ASKS, str(drive.folder)]
    ran = await anyio.to_thread.run_sync(
        lambda: subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    )
    assert (ran.returncode, "does not answer" in ran.stdout) == (0, True)


async def test_a_nest_of_folders_is_an_error_of_the_store(tmp_path):
    objects = FolderObjects(tmp_path)
    await objects.put("objects/name", b"ours")
    with nested_in(tmp_path / "objects"):
        with pytest.raises(StorageError, match="nested more than 200 levels deep"):
            await objects.entries("objects/")
        assert await objects.get("objects/name", 10)
    assert [entry.name for entry in await objects.entries()] == ["objects/name"]
