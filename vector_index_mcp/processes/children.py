"""Starting the child processes that work for one of ours."""

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
    "start_new_session": os.name == "posix",  # Ctrl+C is for us, and we end the children then
}
"""The arguments of `subprocess.Popen` and `anyio.open_process` besides the command."""


def command(module: str, *arguments: str) -> list[str]:
    """The command that runs `module` of this package in a process of its own."""
    # -P: a torch.py in the working folder must not be imported.
    return [sys.executable, "-P", "-m", module, *arguments]


async def start(
    module: str, *arguments: str, environment: Mapping[str, str]
) -> "anyio.abc.Process":
    """Start `module` under the care of `processes.child`.

    Args:
        module: Has a function `main`, see there.
        arguments: Passed to `main`.
        environment: Added to this process's own.

    Raises:
        OSError: If the system gives us no process.
    """
    import anyio  # not for those who only want a command

    return await anyio.open_process(
        command("vector_index_mcp.processes.child", module, *arguments),
        env={**os.environ, **environment},
        **APART,
    )
