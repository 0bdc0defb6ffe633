"""In a Linux without /proc, such as a changed root, everything works that can."""

import subprocess
import sys

import pytest
from mounting import CAN_MOUNT, IN_A_NAMESPACE

HIDE_PROC = 'mount -t tmpfs none /proc && exec "$@"'
SOURCE = """
from pathlib import Path
from vector_index_mcp.processes import confined, memory, priority
assert not Path("/proc/self").exists()
priority.be_polite()
print(confined.resident_bytes(), memory.available(), memory.held_by(1))
"""


@pytest.mark.skipif(not CAN_MOUNT, reason="only root may mount, in a namespace of its own")
def test_memory_and_priority_need_no_proc():
    command = [*IN_A_NAMESPACE, HIDE_PROC, "sh", sys.executable, "-P", "-c", SOURCE]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    resident, available, held = map(int, ran.stdout.split())
    assert resident > 5_000_000
    assert (available, held) == (0, 0)
