"""Code that a test runs in a process of its own, where nothing is imported yet."""

import subprocess
import sys

_PATIENCE_SECONDS = 100


def printed_by(code: str, *arguments: str) -> list[str]:
    """The words that `code` prints."""
    command = [sys.executable, "-c", code, *arguments]
    ran = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=_PATIENCE_SECONDS
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.split()
