"""How the processes that work for one of ours are started, and where they stand."""

import os
import subprocess
import sys
from typing import Any

APART: dict[str, Any] = {
    "stdin": subprocess.PIPE,
    "stdout": subprocess.PIPE,
    "stderr": None,
    "cwd": sys.prefix,
    "start_new_session": os.name == "posix",  # Ctrl+C is for us, who end them then
}
"""What `subprocess.Popen` and `anyio.open_process` are told besides the command."""


def command(module: str, *arguments: str) -> list[str]:
    """What runs `module` of this package in a process of its own."""
    # -P: a torch.py in the working folder must not be imported.
    return [sys.executable, "-P", "-m", module, *arguments]
