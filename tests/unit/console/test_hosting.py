"""The process of a service, and what it reports to the one that has started it."""

import subprocess
import sys

import pytest

# A service that has started, opens files as services do, and then ends with an error.
SERVICE = """
import sys
from vector_index_mcp.console import hosting
from vector_index_mcp.errors import StorageError

def serve(tool_set, path, env_file, report):
    report("ready")
    opened = [open(sys.argv[1], "a") for _ in range(20)]  # one has the number of the pipe
    raise StorageError("the disk is full; free some space")

hosting._host_service = serve
sys.exit(hosting.run("codebase", ".", None))
"""


@pytest.mark.slow
def test_an_error_after_the_start_is_written_into_no_other_file(tmp_path):
    other = tmp_path / "other"
    ended = subprocess.run([sys.executable, "-c", SERVICE, other], capture_output=True, check=False)
    assert (ended.returncode, ended.stdout) == (1, b"ready\n")
    assert other.read_bytes() == b""
    assert b"the disk is full" in ended.stderr  # a service's log
