"""What tells a process from a later one with its number, where there is no /proc.

`ps` says it, and on Windows the kernel, which is imitated here.
"""

import os
import subprocess
import sys
from dataclasses import dataclass, field

import pytest

from vector_index_mcp.background import births, contact
from vector_index_mcp.background.endpoint import Endpoint

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there is no ps")


@pytest.fixture
def sleeper():
    process = subprocess.Popen(["sleep", "600"])
    yield process
    process.kill()
    process.wait()


def test_a_process_has_one_birth_however_often_it_is_asked_for(sleeper):
    birth = births._from_ps(sleeper.pid)
    assert birth
    assert births._from_ps(sleeper.pid) == birth


def test_a_birth_does_not_depend_on_language_and_time_zone(sleeper, monkeypatch):
    birth = births._from_ps(sleeper.pid)
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    monkeypatch.setenv("LC_ALL", "de_DE.UTF-8")
    assert births._from_ps(sleeper.pid) == birth


def test_a_process_that_is_gone_has_none(sleeper):
    sleeper.kill()
    assert os.waitid(os.P_PID, sleeper.pid, os.WEXITED | os.WNOWAIT)  # a zombie
    assert births._from_ps(sleeper.pid) == ""
    sleeper.wait()
    assert births._from_ps(sleeper.pid) == ""


def test_without_ps_nothing_is_known(sleeper, monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    assert births._from_ps(sleeper.pid) == ""


def test_without_proc_ps_is_asked(sleeper, monkeypatch):
    real = births.Path
    monkeypatch.setattr(births, "Path", lambda place: real("/nowhere" + str(place)))
    assert births.birth_of(sleeper.pid) == births._from_ps(sleeper.pid) != ""


@dataclass
class Windows:
    """Its kernel, with one process."""

    pid: int = 4711
    born: int = 133_000_000_000_000_000
    is_over: bool = False
    is_known: bool = True
    open: set[int] = field(default_factory=set)

    def OpenProcess(self, access, inherits, pid):
        assert access == 0x101000
        if pid != self.pid or inherits:
            return None
        handle = 0x7FFF_0000_0001
        self.open.add(handle)
        return handle

    def WaitForSingleObject(self, handle, milliseconds):
        assert handle.value in self.open
        assert milliseconds == 0
        return 0 if self.is_over else 0x102

    def GetProcessTimes(self, handle, creation, *others):
        assert handle.value in self.open
        assert len(others) == 3
        if self.is_known:
            creation._obj.value = self.born
        return self.is_known

    def CloseHandle(self, handle):
        self.open.remove(handle.value)


@pytest.mark.parametrize(
    ("windows", "pid", "birth"),
    [
        (Windows(), 4711, "133000000000000000"),
        (Windows(), 4712, ""),
        (Windows(is_over=True), 4711, ""),
        (Windows(is_known=False), 4711, ""),
    ],
)
def test_windows_says_when_a_process_began(monkeypatch, windows, pid, birth):
    monkeypatch.setattr(births, "_kernel", lambda: windows)
    monkeypatch.setattr(sys, "platform", "win32")
    assert births.birth_of(pid) == birth
    assert not windows.open


def test_a_service_on_windows_is_kept_and_missed_as_elsewhere(monkeypatch, tmp_path):
    windows = Windows()
    monkeypatch.setattr(births, "_kernel", lambda: windows)
    endpoint = Endpoint(tmp_path, "name", "codebase", "/project")
    with monkeypatch.context() as there:
        there.setattr(sys, "platform", "win32")
        endpoint.write_record({"pid": windows.pid, "birth": births.birth_of(windows.pid)})
        assert endpoint.keeper == windows.pid
        there.setattr(contact, "_FAREWELL_SECONDS", 0.0)
        assert "has ended this session" in contact.reason_of_end(endpoint, windows.pid)
        windows.is_over = True
        assert endpoint.keeper is None
        assert "killed or has crashed" in contact.reason_of_end(endpoint, windows.pid)
