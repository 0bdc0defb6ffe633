"""Has background services forked by a process that has imported what they need (`template`).

A service takes a second of a processor to start, nearly all of it for imports, and tests start
hundreds. A fork has its own streams, folder, variables, session and command line. Whatever else a
process inherits, such as limits and rights, has to be that of the process it is forked from:
otherwise the service is started as ever, and so it is if an import hook is to run in it.
"""

import json
import os
import resource
import socket
import subprocess
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import template

from vector_index_mcp.background import launching

STARTUP = f"""
import sys
if "vector_index_mcp" in sys.orig_argv:
    sys.path[:0] = {[str(folder) for folder in Path(__file__).parents[:2]]}
    import forked_hosts
    del sys.path[:2]
    forked_hosts.install()
"""
"""What a process of the program runs first."""
_INHERITED = ("Uid", "Gid", "Groups", "NoNewPrivs", "Seccomp:", "SigIgn", "CapBnd", "CapEff")


def install() -> None:
    """Let this process have its services forked, if its variables say where."""
    if folder := os.environ.get(template.VARIABLE):
        address = f"{folder}/{template.HOSTS}"
        launching._spawn = partial(_spawned, address, launching._spawn)  # type: ignore[assignment]


def circumstances() -> str:
    """What a process inherits besides its streams, folder and variables."""
    own = Path("/proc/self")
    status = own.joinpath("status").read_text(encoding="utf-8", errors="replace").splitlines()
    limits = [value for name, value in vars(resource).items() if name.startswith("RLIMIT_")]
    found = [
        [resource.getrlimit(number) for number in limits],
        [line for line in status if line.startswith(_INHERITED)],
        [str(each.readlink()) for each in sorted(own.joinpath("ns").iterdir())],
        own.joinpath("oom_score_adj").read_text(encoding="ascii"),
        os.nice(0),
    ]
    return json.dumps(found)


class _Fork:
    """A service, with what `launching` needs of a `subprocess.Popen`."""

    def __init__(self, stdout: int, report: socket.socket) -> None:
        self.stdout = os.fdopen(stdout, "rb")
        self._report = report

    def wait(self, timeout: float | None = None) -> int:
        self._report.settimeout(timeout)
        try:
            return template.reported(self._report, socket.MSG_PEEK)  # other threads wait, too
        except TimeoutError:
            raise subprocess.TimeoutExpired("host", timeout or 0.0) from None


def _spawned(
    address: str, spawn: Any, endpoint: Any, host_arguments: Sequence[str]
) -> "_Fork | subprocess.Popen[bytes]":
    """As `launching._spawn`."""
    try:
        fork = _forked(address, endpoint, host_arguments)
    except OSError:  # what the machine lacks, the other way may get or will tell
        fork = None
    return fork or spawn(endpoint, host_arguments)


def _forked(address: str, endpoint: Any, host_arguments: Sequence[str]) -> _Fork | None:
    wanted = {
        "module": "host_main",
        "shown": "vector_index_mcp",
        "arguments": [*host_arguments, "host", "--set", endpoint.tool_set, endpoint.place],
        "folder": str(Path.cwd()),
        "variables": {**os.environ, **launching._HOST_ENVIRONMENT},
        "circumstances": circumstances(),
    }
    stdout, its_stdout = os.pipe()
    report, its_report = socket.socketpair()
    with (
        Path(os.devnull).open("rb") as stdin,
        endpoint.log.open("ab") as log,
        its_report,
        os.fdopen(its_stdout, "wb") as output,
    ):
        fork = _Fork(stdout, report)
        descriptors = [each.fileno() for each in (stdin, output, log, its_report)]
        template.ask(address, json.dumps(wanted).encode(), descriptors)
    if template.reported(report):
        return fork
    fork.stdout.close()
    return None
