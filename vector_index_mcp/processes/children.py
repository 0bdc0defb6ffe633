"""Starts child processes that run modules of this package."""

import os
import subprocess
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import anyio.abc

APART: dict[str, Any] = {
    "stdin": subprocess.PIPE,
    "stdout": subprocess.PIPE,
    "stderr": None,
    "cwd": sys.prefix,
    "start_new_session": os.name == "posix",  # Ctrl+C reaches only us; we then end the children
}
"""The arguments of `subprocess.Popen` and `anyio.open_process`, besides the command."""


def command(module: str, *arguments: str) -> list[str]:
    """Return the command that runs `module` of this package in a process of its own."""
    # -P: a torch.py in the working folder must not be imported.
    return [sys.executable, "-P", "-m", module, *arguments]


async def start(
    module: str, *arguments: str, environment: Mapping[str, str]
) -> "anyio.abc.Process":
    """Start a process in which `processes.child` runs `module`.

    Args:
        module: A module with a function `main`; see `processes.child`.
        arguments: Passed to `main`.
        environment: Variables to add to those of this process.

    Raises:
        OSError: If the system starts no process.
    """
    import anyio  # not needed by callers of `command`

    return await anyio.open_process(
        command("vector_index_mcp.processes.child", module, *arguments),
        env={**os.environ, **environment},
        **APART,
    )
