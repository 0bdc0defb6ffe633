"""What somebody else on the machine does: each function is run by a process of its own.

Run with the arguments USER FUNCTION ARGUMENT ..., as root for a USER who is not us; says `ready`
when it has begun, and goes on until it is killed.
"""

import fcntl
import itertools
import json
import os
import random
import socket
import sys
import time
from contextlib import suppress
from pathlib import Path

MOST_CONNECTIONS = 300
GARBAGE = (b"", b"\0" * 5_000, b'{"version": 1}\n', b"[" * 50_000, b"HTTP/1.1 200 OK\r\n\r\n")


def say(word: str) -> None:
    sys.stdout.write(word + "\n")
    sys.stdout.flush()


def become(user: int) -> None:
    """Be somebody else from now on; only now, as the interpreter may be for our eyes only."""
    if user != os.geteuid():
        os.setgroups([])
        os.setgid(user)
        os.setuid(user)


def hold_folder(folder: str) -> None:
    """Be first with a folder that everybody may write to."""
    Path(folder).mkdir(parents=True, exist_ok=True)
    Path(folder).chmod(0o777)
    say("ready")
    time.sleep(3_600)


def hold_lock(path: str) -> None:
    """Hold the lock of a service or an index."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    say("ready")
    time.sleep(3_600)


def answer_garbage(path: str, record: str) -> None:
    """Listen on a service's socket and answer nonsense, with a record of it."""
    with suppress(FileNotFoundError):
        os.unlink(path)  # noqa: PTH108
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen(50)
    claim = {"pid": os.getpid(), "version": "9", "port": 1, "project": "/"}
    Path(record).write_text(json.dumps(claim), encoding="utf-8")
    say("ready")
    for number in itertools.count():
        connection, _ = listener.accept()
        with suppress(OSError):
            connection.sendall(GARBAGE[number % len(GARBAGE)])
            connection.close()


def flood(port: str, seed: str) -> None:
    """Open connections to a page that say nothing, and guess its links and rooms."""
    chance = random.Random(seed)
    silent: list[socket.socket] = []
    say("ready")
    while True:
        with suppress(OSError):
            connection = socket.create_connection(("127.0.0.1", int(port)), timeout=1)
            if len(silent) < MOST_CONNECTIONS:
                silent.append(connection)
                continue
            say(_guess(connection, chance))
            connection.close()


def _guess(connection: socket.socket, chance: random.Random) -> str:
    """The status that a guessed path is answered with."""
    token = chance.randbytes(16).hex()
    path = chance.choice(["/", f"/{token}", f"/{token}/", f"/{token}/api/map", "/../", "//"])
    cookie = f"Cookie: {token}={token}\r\n"
    connection.sendall(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n{cookie}\r\n".encode())
    return connection.recv(100).decode("latin-1").partition("\r\n")[0]


if __name__ == "__main__":
    become(int(sys.argv[1]))
    globals()[sys.argv[2]](*sys.argv[3:])
