"""Code that a test runs in a process of its own, where nothing is imported yet."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_PATIENCE_SECONDS = 100


def printed_by(code: str, *arguments: str) -> list[str]:
    """The words that `code` prints."""
    command = [sys.executable, "-c", code, *arguments]
    ran = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=_PATIENCE_SECONDS
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.split()


_HOLDS = """
import sys
from pathlib import Path
from vector_index_mcp.indexing.opening.locks import held
from vector_index_mcp.indexing.role import Role
from vector_index_mcp.indexing.opening.writers import WriterNote
lock = Path(sys.argv[1])
with held(lock):
    WriterNote(lock).write(Role(sys.argv[2]), is_behind=len(sys.argv) > 3)
    print("held", flush=True)
    sys.stdin.read()
"""


@contextmanager
def writer(lock: Path, role: str, *, is_behind: bool = False) -> Iterator[subprocess.Popen[bytes]]:
    """A process that holds the writer's lock of an index, as one with this role; it is killed."""
    lock.parent.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-c", _HOLDS, str(lock), role, *(["behind"] if is_behind else [])]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"held\n"
        try:
            yield process
        finally:
            process.kill()


def stop(process: subprocess.Popen[bytes]) -> None:
    """Stop a child, as Ctrl-Z does, and wait until it has stopped."""
    process.send_signal(signal.SIGSTOP)
    os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WNOWAIT)
