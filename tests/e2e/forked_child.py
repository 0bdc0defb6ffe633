"""What becomes of a process that `forked` has forked."""

import atexit
import os
import runpy
import sys
import warnings
from multiprocessing.reduction import DupFd
from pathlib import Path

import forked_hosts
import template

# About work that is under way while a process forks; here is none.
warnings.filterwarnings("ignore", "lancedb fork support", RuntimeWarning)

HOOK = "sitecustomize.py"


def hook_of(variables: dict[str, str]) -> Path | None:
    """The code of a test that a process with these variables runs first; None if there is none."""
    folder = Path(variables.get("PYTHONPATH", "").partition(os.pathsep)[0])
    of_ours = Path(variables.get(template.VARIABLE, ""))
    return folder / HOOK if folder != of_ours and (folder / HOOK).is_file() else None


def become(
    command: list[str], folder: str, variables: dict[str, str], streams: tuple[DupFd, ...]
) -> None:
    """Run a command as `python -m vector_index_mcp` does.

    Args:
        command: Its arguments.
        folder: The folder that it runs in.
        variables: All of its environment.
        streams: What it gets as standard input, output and error.
    """
    for number, stream in enumerate(streams):
        os.dup2(stream.detach(), number)
    encoding = variables.get("PYTHONIOENCODING", "utf-8")
    sys.stdin = os.fdopen(0, encoding=encoding, closefd=False)
    sys.stdout = os.fdopen(1, "w", encoding=encoding, closefd=False)
    sys.stderr = os.fdopen(2, "w", encoding=encoding, errors="backslashreplace", closefd=False)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(variables)
    sys.argv[1:] = command
    if hook := hook_of(variables):
        runpy.run_path(str(hook))
    forked_hosts.install()
    try:
        runpy.run_module("vector_index_mcp", run_name="__main__", alter_sys=True)
    finally:
        atexit._run_exitfuncs()
