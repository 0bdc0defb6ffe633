import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the input's end must do")

ENDS_WITH_PARENT = """
from vector_index_mcp.processes import confined
confined.end_with_parent()
print("alive")
"""


def printed(source):
    """What a child prints whose parent held the other end of `source`, or holds it still."""
    command = [sys.executable, "-c", ENDS_WITH_PARENT]
    return subprocess.run(command, stdin=source, capture_output=True, check=True).stdout


def test_a_child_whose_parent_ended_before_it_could_ask_for_a_signal_ends_at_once():
    source, parents = os.pipe()
    os.close(parents)
    assert printed(source) == b""
    os.close(source)


@pytest.mark.slow
def test_a_child_that_has_a_parent_goes_on():
    source, parents = os.pipe()
    assert printed(source) == b"alive\n"
    os.close(parents)
    os.close(source)
    assert printed(subprocess.DEVNULL) == b"alive\n"
