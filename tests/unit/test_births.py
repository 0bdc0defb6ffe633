"""What tells a process from a later one with its number, where there is no /proc: `ps` says it."""

import os
import subprocess
import sys

import pytest

from vector_index_mcp.background import endpoint

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there is no ps")


@pytest.fixture
def sleeper():
    process = subprocess.Popen(["sleep", "600"])
    yield process
    process.kill()
    process.wait()


def test_a_process_has_one_birth_however_often_it_is_asked_for(sleeper):
    birth = endpoint._birth_from_ps(sleeper.pid)
    assert birth
    assert endpoint._birth_from_ps(sleeper.pid) == birth


def test_a_birth_does_not_depend_on_language_and_time_zone(sleeper, monkeypatch):
    birth = endpoint._birth_from_ps(sleeper.pid)
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    monkeypatch.setenv("LC_ALL", "de_DE.UTF-8")
    assert endpoint._birth_from_ps(sleeper.pid) == birth


def test_a_process_that_is_gone_has_none(sleeper):
    sleeper.kill()
    assert os.waitid(os.P_PID, sleeper.pid, os.WEXITED | os.WNOWAIT)  # a zombie
    assert endpoint._birth_from_ps(sleeper.pid) == ""
    sleeper.wait()
    assert endpoint._birth_from_ps(sleeper.pid) == ""


def test_without_ps_nothing_is_known(sleeper, monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    assert endpoint._birth_from_ps(sleeper.pid) == ""


def test_without_proc_ps_is_asked(sleeper, monkeypatch):
    real = endpoint.Path
    monkeypatch.setattr(endpoint, "Path", lambda place: real("/nowhere" + str(place)))
    assert endpoint.birth_of(sleeper.pid) == endpoint._birth_from_ps(sleeper.pid) != ""
