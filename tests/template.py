"""A process that has imported what children need, and forks one whenever it is asked.

`forked_children` starts it with the number of a socket and the names of what to import. Each
message on the socket describes a child and brings its streams. The process ends with the socket,
and its forks with it.
"""

import contextlib
import gc
import importlib
import json
import os
import select
import signal
import socket
import sys
import traceback
import warnings
from typing import NoReturn

NUMBER_BYTES = 8  # of what is reported of a child: its process id, and at last its exit status
_MOST_BYTES = 1 << 20
_STREAMS = 3

# About work that is under way while a process forks; here is none.
warnings.filterwarnings("ignore", "lancedb fork support", RuntimeWarning)


def main(number: int, names: list[str]) -> None:
    for name in names:
        importlib.import_module(name)
    gc.freeze()
    asked = socket.socket(fileno=number)
    told, tells = socket.socketpair()
    tells.setblocking(False)
    signal.set_wakeup_fd(tells.fileno())
    signal.signal(signal.SIGCHLD, lambda *_: None)
    reports: dict[int, socket.socket] = {}
    while True:
        ready, _, _ = select.select([asked, told], [], [])
        if told in ready:
            told.recv(1024)
            _report_ends(reports)
        if asked in ready:
            message, descriptors, _, _ = socket.recv_fds(asked, _MOST_BYTES, _STREAMS + 1)
            if not message:
                os._exit(0)
            *streams, report = descriptors
            pid = os.fork()
            if pid == 0:
                _become(json.loads(message), streams)
            for stream in streams:
                os.close(stream)
            reports[pid] = socket.socket(fileno=report)
            _send(reports[pid], pid)


def _report_ends(reports: dict[int, socket.socket]) -> None:
    while reports:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid == 0:
            return
        with reports.pop(pid) as report:
            _send(report, os.waitstatus_to_exitcode(status))


def _send(report: socket.socket, number: int) -> None:
    with contextlib.suppress(OSError):  # nobody waits for this child any more
        report.send(number.to_bytes(NUMBER_BYTES, signed=True))


def _become(wanted: dict, streams: list[int]) -> NoReturn:
    """Be what `python -m MODULE ARGUMENT...` would be with these streams, folder and variables."""
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.setsid()
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
    os.closerange(_STREAMS, os.sysconf("SC_OPEN_MAX"))
    os.chdir(wanted["folder"])
    os.environ.clear()
    os.environ.update(wanted["variables"])
    sys.argv[1:] = wanted["arguments"]
    try:
        sys.modules[wanted["module"]].main(*wanted["arguments"])
    except SystemExit as ended:
        os._exit(int(ended.code or 0))
    except Exception:  # noqa: BLE001 as at the end of any program
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
