import gc
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import forked_children
import pytest
from drawn import examples
from hypothesis import HealthCheck, settings
from templates import CALM_THREADS

from vector_index_mcp.processes import children

# A busy machine is slow, not wrong.
settings.register_profile(
    "unhurried",
    deadline=None,
    max_examples=examples(100),
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("unhurried")

os.environ.update(CALM_THREADS)  # before numpy is imported

# A shell lets what it runs in the background ignore SIGINT, and children would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)


# Twelve thousand tests stay to the end: looking for garbage among them finds none.
gc.disable()


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop():
    gc.freeze()
    gc.enable()


def pytest_collection_modifyitems(items):
    """What takes a minute on any machine goes first, so that nobody waits for it at the end."""
    items.sort(key=lambda item: item.path.name != "test_load.py")


@pytest.fixture(autouse=True)
def _forked_children(request, monkeypatch):
    """Children are forks, unless they, or what becomes of them, are what is tested."""
    if not request.node.get_closest_marker("own_children"):
        monkeypatch.setattr(children, "started", forked_children.started)


@pytest.fixture(scope="session")
def anyio_backend():
    return "asyncio"


@pytest.fixture
def no_descriptors():
    """Makes a context in which this process can open nothing."""
    resource = pytest.importorskip("resource")

    @contextmanager
    def context():
        limits = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (0, limits[1]))
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, limits)

    return context


@pytest.fixture
def small_files():
    """Makes a context in which no file of this process can become longer than so many bytes."""
    resource = pytest.importorskip("resource")

    @contextmanager
    def context(most_bytes):
        limits = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (most_bytes, limits[1]))
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)

    return context


@pytest.fixture
def small_disk(tmp_path):
    """A folder on a file system of 8 MB."""
    yield from _mounted(tmp_path, "-t", "tmpfs", "-o", "size=8m", "tmpfs")


@pytest.fixture
def read_only():
    """Makes a context in which a folder is read-only, whoever asks, though its files are open."""
    mount = shutil.which("mount")
    if not sys.platform.startswith("linux") or mount is None:
        pytest.skip("mounts a file system as Linux does")

    @contextmanager
    def context(folder):
        bound = subprocess.run([mount, "--bind", folder, folder], capture_output=True, check=False)
        if bound.returncode != 0:
            pytest.skip("mounting a folder is not permitted here")
        try:
            subprocess.run([mount, "-o", "remount,bind,ro", folder], check=True)
            yield
        finally:
            subprocess.run(["umount", "--lazy", folder], check=True)

    return context


@pytest.fixture
def coarse_disk(tmp_path):
    """A folder on a file system whose time stamps are whole seconds."""
    if shutil.which("mke2fs") is None:
        pytest.skip("mke2fs is not installed")
    image = tmp_path / "image"
    # Inodes of 128 bytes have no room for more.
    command = ["mke2fs", "-q", "-t", "ext2", "-I", "128", image, "8m"]
    subprocess.run(command, check=True, stderr=subprocess.DEVNULL)
    yield from _mounted(tmp_path, "-t", "ext2", "-o", "loop", str(image))


@dataclass(frozen=True)
class Drive:
    """A folder whose files another process serves, as a drive on a network."""

    folder: Path
    behind: Path
    """Where they lie."""
    server: subprocess.Popen

    def hang(self):
        """From now on nothing answers."""
        self.server.send_signal(signal.SIGSTOP)

    def go_on(self):
        """From now on all is answered that was asked."""
        self.server.send_signal(signal.SIGCONT)

    @contextmanager
    def hanging(self, seconds):
        """Whether it still hangs. It goes on after a while: nothing else would free who waits."""
        end = threading.Timer(seconds, self.go_on)
        end.start()
        self.hang()
        try:
            yield end.is_alive
        finally:
            end.cancel()
            self.go_on()

    def fail(self):
        """From now on whatever is asked is an error."""
        self.server.kill()
        self.server.wait()


@pytest.fixture
def drive(tmp_path):
    """A drive that can hang and fail."""
    bindfs, unmount = shutil.which("bindfs"), shutil.which("fusermount")
    if bindfs is None or unmount is None:
        pytest.skip("bindfs is not installed")
    folder, behind = tmp_path / "drive", tmp_path / "behind"
    folder.mkdir()
    behind.mkdir()
    command = [bindfs, "-f", "-o", "attr_timeout=0,entry_timeout=0", str(behind), str(folder)]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as server:
        try:
            until = time.monotonic() + 10
            while not folder.is_mount():
                if server.poll() is not None or time.monotonic() > until:
                    pytest.skip("mounting a file system is not permitted here")
            yield Drive(folder, behind, server)
        finally:
            server.kill()
            subprocess.run([unmount, "-u", "-z", str(folder)], check=False, capture_output=True)


def _mounted(tmp_path, *what):
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = shutil.which("mount")
    if not sys.platform.startswith("linux") or mount is None:
        pytest.skip("mounts a file system as Linux does")
    command = [mount, *what, str(folder)]
    if subprocess.run(command, capture_output=True, check=False).returncode != 0:
        pytest.skip("mounting a small file system is not permitted here")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)
