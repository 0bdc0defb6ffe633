"""A process that has imported what children need, and forks one whenever it is asked.

It is started with the number of a socket and the names of what to import. Each message on the
socket describes a child and brings its streams. The process ends with the socket.

If it is told an address, whoever connects to that may ask for one child, too.
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
from pathlib import Path
from typing import NoReturn

VARIABLE = "FORKED_HOSTS"
"""The folder with the addresses of the processes from which services fork, and their children."""
HOSTS, CHILDREN = "hosts", "children"
"""The addresses in it."""
_NUMBER_BYTES = 8  # of what is reported of a child: its process id, and at last its exit status
_MOST_BYTES = 1 << 20
_STREAMS = 3
_STRANGER_SECONDS = 1.0  # for its message; a test may have stopped it
_PLACES = slice(45, 49)  # behind the name in /proc/self/stat: of arguments and variables


def ask(address: str, message: bytes, descriptors: list[int]) -> None:
    """Ask the process at an address for a fork; our descriptors are no longer needed then."""
    with socket.socket(socket.AF_UNIX) as asked:
        asked.connect(address)
        socket.send_fds(asked, [message], descriptors)
        asked.shutdown(socket.SHUT_WR)
        asked.recv(1)  # it has got everything


def reported(report: socket.socket, flags: int = 0) -> int:
    """Return what is reported of a child next, as `_send` has sent it; 0 if nothing will be."""
    return int.from_bytes(report.recv(_NUMBER_BYTES, flags), signed=True)


def main(number: int, names: list[str], address: str = "") -> None:
    # About work that is under way while a process forks; here is none.
    warnings.filterwarnings("ignore", "lancedb fork support", RuntimeWarning)
    for name in ("ctypes", *names):
        importlib.import_module(name)
    if background := sys.modules.get("lancedb.background_loop"):
        # A fork closes what it inherits, and would close the descriptors of the loop that LanceDB
        # begins in each fork. Only its synchronous functions, which nobody calls, need that loop.
        background.LOOP._start = lambda: None
    gc.freeze()
    asked = socket.socket(fileno=number)
    strangers = socket.socket(socket.AF_UNIX)
    if address:
        strangers.bind(address)
        strangers.listen()
        asked.send(b"!")  # whoever has started us may tell the address now
    told, tells = socket.socketpair()
    tells.setblocking(False)
    signal.set_wakeup_fd(tells.fileno())
    signal.signal(signal.SIGCHLD, lambda *_: None)
    reports: dict[int, socket.socket] = {}
    heard = [asked, told, strangers] if address else [asked, told]
    while True:
        ready, _, _ = select.select(heard, [], [])
        if told in ready:
            told.recv(1024)
            _report_ends(reports)
        if asked in ready and not _forked(asked, reports):
            os._exit(0)
        if strangers in ready:
            with strangers.accept()[0] as stranger, contextlib.suppress(TimeoutError):
                stranger.settimeout(_STRANGER_SECONDS)
                _forked(stranger, reports)


def _forked(asked: socket.socket, reports: dict[int, socket.socket]) -> bool:
    """Fork what a message asks for; False if there is none and never will be."""
    message, descriptors, _, _ = socket.recv_fds(asked, _MOST_BYTES, _STREAMS + 1)
    if not message:
        return False
    *streams, number = descriptors
    report, wanted = socket.socket(fileno=number), json.loads(message)
    if not _can_become(wanted):
        _send(report, 0)
        report.close()
        for stream in streams:
            os.close(stream)
        return True
    pid = os.fork()
    if pid == 0:
        _become(wanted, streams)
    for stream in streams:
        os.close(stream)
    reports[pid] = report
    _send(report, pid)
    return True


def _can_become(wanted: dict) -> bool:
    """Whether what a fork inherits is as the message wants it, if it says so."""
    if "circumstances" not in wanted:
        return True
    import forked_hosts

    return wanted["circumstances"] == forked_hosts.circumstances()


def _report_ends(reports: dict[int, socket.socket]) -> None:
    while reports:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid == 0:
            return
        with reports.pop(pid) as report:
            _send(report, os.waitstatus_to_exitcode(status))


def _send(report: socket.socket, number: int) -> None:
    with contextlib.suppress(OSError):  # nobody waits for this child any more
        report.send(number.to_bytes(_NUMBER_BYTES, signed=True))


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
    module = wanted.get("shown", wanted["module"])
    _show([sys.executable, "-P", "-m", module, *wanted["arguments"]])
    sys.argv[1:] = wanted["arguments"]
    try:
        sys.modules[wanted["module"]].main(*wanted["arguments"])
    except SystemExit as ended:
        os._exit(int(ended.code or 0))
    except Exception:  # noqa: BLE001 as at the end of any program
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


def _show(command: list[str]) -> None:
    """Let the system tell this command line and these variables of this process, and no others.

    Nobody reads the old ones any more: all variables have been set anew, elsewhere in memory.
    """
    import ctypes

    text = Path("/proc/self/stat").read_text(encoding="utf-8", errors="replace")
    places = [int(each) for each in text.rpartition(")")[2].split()[_PLACES]]
    variables = [f"{name}={value}" for name, value in os.environ.items()]
    for begin, end, words in ((*places[:2], command), (*places[2:], variables)):
        shown = b"".join(os.fsencode(word) + b"\0" for word in words)
        assert len(shown) < end - begin, "the process that is forked has too little room"
        ctypes.memmove(begin, shown.ljust(end - begin, b"\0"), end - begin)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2].split(), sys.argv[3])
