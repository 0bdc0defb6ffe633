"""Runs commands and services as forks of a process that has imported the program.

Each command is a process of its own, with its own streams, folder and variables, that begins where
`python -m vector_index_mcp` does. Only the imports are there already, which are most of the
processor time of a short command; an import hook runs after them. Services: see `forked_hosts`.
"""

import atexit
import multiprocessing
import os
import shutil
import subprocess
import tempfile
from functools import cache
from multiprocessing import forkserver
from multiprocessing.context import ForkServerContext
from multiprocessing.reduction import DupFd
from pathlib import Path
from unittest.mock import patch

import forked_children
import forked_hosts
import template
import templates
from forked_child import HOOK, become

from vector_index_mcp.background import launching

_IMPORTED = (
    "forked_child",
    "vector_index_mcp.cli",
    "vector_index_mcp.console.local",
    "vector_index_mcp.console.datasets.commands",
    "vector_index_mcp.console.documents.commands",
    "vector_index_mcp.console.documents.local",
    "vector_index_mcp.console.notes.commands",
)
"""By the process that is forked. None of these begins anything when it is imported."""


def run(
    command: list[str],
    cwd: Path,
    variables: dict[str, str],
    seconds: float,
    *,
    obeys_modes: bool = False,
) -> subprocess.CompletedProcess[str]:
    """Run a command of the program to its end, without input.

    Args:
        command: Its arguments.
        cwd: The folder that it runs in.
        variables: All of its environment.
        seconds: How long it may take.
        obeys_modes: Whether it can do nothing that a mode forbids, even as root.

    Raises:
        TimeoutError: If it has not ended by then; it is killed.
    """
    with (
        Path(os.devnull).open("rb") as stdin,
        tempfile.TemporaryFile() as stdout,
        tempfile.TemporaryFile() as stderr,
    ):
        streams = tuple(DupFd(each.fileno()) for each in (stdin, stdout, stderr))
        process = _context().Process(
            target=become,
            args=(command, str(cwd), variables, streams),
            kwargs={"obeys_modes": obeys_modes},
        )
        process.start()
        process.join(seconds)
        status = process.exitcode
        if status is None:
            process.kill()
            raise TimeoutError(f"{command} does not end")
        written = []
        for each in (stdout, stderr):
            each.seek(0)
            written.append(each.read().decode("utf-8"))
        return subprocess.CompletedProcess(command, status, *written)


@cache
def host_variables() -> dict[str, str]:
    """The variables with which a process of the program has its services forked."""
    folder = tempfile.mkdtemp(prefix="hosts")
    atexit.register(shutil.rmtree, folder)
    Path(folder, HOOK).write_text(forked_hosts.STARTUP, encoding="utf-8")
    address = f"{folder}/{template.HOSTS}"
    templates.started(["host_main"], address, launching._HOST_ENVIRONMENT)
    templates.started(forked_children.PREPARING, f"{folder}/{template.CHILDREN}")
    path = os.pathsep.join([folder, str(Path(__file__).parents[2])])
    return {"PYTHONPATH": path, template.VARIABLE: folder}


@cache
def _context() -> ForkServerContext:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([*_IMPORTED])
    # Else `forked_child` is not found.
    path = os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])
    with patch.dict(os.environ, PYTHONPATH=path):
        forkserver.ensure_running()
    return context
