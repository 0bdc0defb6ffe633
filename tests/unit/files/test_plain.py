"""Plain files alone are read, whatever others put in their place, and whenever they do."""

import contextlib
import ctypes
import os
import subprocess
import sys
import threading

import pytest

from vector_index_mcp.clients import repository as clients_repository
from vector_index_mcp.documents import pulling
from vector_index_mcp.engine.store import places
from vector_index_mcp.errors import DamagedIndexError
from vector_index_mcp.files import repository
from vector_index_mcp.files.folder import Folder
from vector_index_mcp.files.ignore import Ignore, rule_files
from vector_index_mcp.files.plain import content_of, opened
from vector_index_mcp.files.tracked import tracked_below

ROUNDS = 2_000
LONGEST_SECONDS = 20
LIBC = ctypes.CDLL(None) if os.name == "posix" else None

_EXCHANGING = """
import ctypes, os, sys
libc, here, exchange = ctypes.CDLL(None), -100, 2
one, other = map(os.fsencode, sys.argv[1:])
print(flush=True)
while libc.renameat2(here, one, here, other, exchange) == 0:
    pass
"""


def test_the_content_of_a_plain_file_is_read_up_to_a_limit(tmp_path):
    (tmp_path / "file").write_bytes(b"12345")
    assert content_of(tmp_path / "file", 5) == b"12345"
    with pytest.raises(OSError, match="File too large"):
        content_of(tmp_path / "file", 4)
    (tmp_path / "link").symlink_to("file")
    assert content_of(tmp_path / "link", 5) == b"12345"
    with pytest.raises(FileNotFoundError):
        content_of(tmp_path / "link", 5, follows_links=False)


@pytest.mark.parametrize(
    "put",
    [
        os.mkfifo,
        os.mkdir,
        lambda path: path.symlink_to("/dev/zero"),
        lambda path: path.symlink_to("nowhere"),
        lambda path: None,
    ],
)
def test_what_is_no_plain_file_is_none(tmp_path, put):
    put(tmp_path / "file")
    with pytest.raises(FileNotFoundError):
        opened(tmp_path / "file")


READERS = {
    "rules": lambda root, path: Ignore(Folder(root)),
    "whether rules are read": lambda root, path: rule_files(root),
    "a pointer of git": lambda root, path: repository.text_of(path, 100),
    "git's index": lambda root, path: tracked_below(path, ""),
    "what a worktree is of": lambda root, path: clients_repository._text_of(path),
    "what a clone points to": lambda root, path: pulling._points_to(path, root),
    "a manifest of Lance": lambda root, path: places._check_manifest(str(root), path.name),
}


@pytest.fixture
def exchanging(tmp_path):
    """A process that exchanges a file and a pipe all the time; returns their paths."""
    path, pipe = tmp_path / ".gitignore", tmp_path / "pipe"
    path.write_text("*.txt\n", encoding="utf-8")
    os.mkfifo(pipe)
    process = subprocess.Popen([sys.executable, "-c", _EXCHANGING, path, pipe], stdout=-1)
    process.stdout.readline()
    yield path, pipe
    process.kill()
    process.communicate()


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(LIBC, "renameat2"), reason="the system exchanges no files")
@pytest.mark.parametrize("reader", READERS)
def test_nobody_waits_for_a_pipe_that_is_exchanged_for_the_file(tmp_path, exchanging, reader):
    has_read = threading.Event()

    def read() -> None:
        for _ in range(ROUNDS):
            with contextlib.suppress(OSError, ValueError, DamagedIndexError):
                READERS[reader](tmp_path, exchanging[0])
        has_read.set()

    thread = threading.Thread(target=read, daemon=True)
    thread.start()
    is_waiting = not has_read.wait(LONGEST_SECONDS)
    while thread.is_alive():
        for place in exchanging:
            with contextlib.suppress(OSError):  # it is the file, or nobody waits just now
                os.close(os.open(place, os.O_WRONLY | os.O_NONBLOCK))
    assert not is_waiting
