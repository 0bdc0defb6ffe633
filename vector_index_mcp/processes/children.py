"""Starts child processes that run modules of this package."""

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
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
UNREADABLE = (AttributeError, EOFError, ImportError, LookupError, TypeError, ValueError)
"""Raised where a pickle of another version of the package is read: it names what is not here."""


def command(module: str, *arguments: str) -> list[str]:
    """Return the command that runs `module` of this package in a process of its own."""
    # -P: a torch.py in the working folder must not be imported.
    return [sys.executable, "-P", "-m", module, *arguments]


async def start(
    module: str, *arguments: str, environment: Mapping[str, str]
) -> "anyio.abc.Process":
    """Start a process in which `processes.child` runs `module`; see `started`.

    Args:
        module: A module with a function `main`; see `processes.child`.
        arguments: Passed to `main`.
        environment: Variables to add to those of this process.

    Raises:
        OSError: If the system starts no process.
    """
    return await started(
        command("vector_index_mcp.processes.child", module, *arguments),
        env={**os.environ, **environment},
    )


async def started(
    command: Sequence[str], env: Mapping[str, str] | None = None, **streams: int
) -> "anyio.abc.Process":
    """Start `command` as a process of its own; the caller ends it.

    Its standard streams are those of `APART`, unless `streams` has others.

    Cancelling waits for the start and does not interrupt it: a half-started process would be left
    to nobody, and asyncio would report it on stderr when it ends. So the caller always gets the
    process, and is cancelled at its next step.

    Raises:
        OSError: If the system starts no process.
    """
    import anyio  # not needed by callers of `command`

    with anyio.CancelScope(shield=True):
        process = await anyio.open_process(command, env=env, **{**APART, **streams})
    return process
