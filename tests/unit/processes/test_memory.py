import os
import platform
import subprocess
import sys

import psutil
import pytest

from vector_index_mcp.processes import memory

MEGABYTE = 1_000_000


def resident():
    return psutil.Process().memory_info().rss


def test_a_process_holds_memory_until_it_has_ended():
    command = [sys.executable, "-c", "input()"]
    with subprocess.Popen(command, stdin=subprocess.PIPE) as process:
        assert memory.held_by(process.pid) > 0
        process.communicate(b"\n")
    assert memory.held_by(process.pid) == 0
    assert memory.held_by(None) == 0
    assert memory.held_by(os.getpid()) > MEGABYTE


@pytest.mark.slow
@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other allocators give back at once")
def test_what_lies_free_below_a_block_in_use_goes_back():
    blocks = [bytearray(2_000) for _ in range(50_000)]
    last = blocks[-1]  # holds the top of the heap, so that nothing below it can be cut off
    del blocks
    before = resident()
    memory.give_back()
    assert before - resident() > 50 * MEGABYTE
    assert len(last) == 2_000


def test_where_there_is_nothing_to_give_back_nothing_happens(monkeypatch):
    monkeypatch.setattr(memory.sys, "platform", "win32")
    memory.give_back()
