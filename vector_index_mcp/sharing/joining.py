"""Connects a service to the shared worker, and starts the worker's host if there is none."""

import hashlib
import logging
import socket
import threading
from collections.abc import Mapping
from contextlib import suppress
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import anyio
import anyio.abc
import anyio.to_thread
from anyio.streams.buffered import BufferedByteReceiveStream

from vector_index_mcp.background import contact, greeting
from vector_index_mcp.engine.models.model import looks_like_folder
from vector_index_mcp.engine.models.worker_process import (
    ENDED,
    LONGEST_HEADER_BYTES,
    StartWorker,
    Worker,
)
from vector_index_mcp.errors import BackgroundError, ProjectError, SettingsError
from vector_index_mcp.objects import within
from vector_index_mcp.sharing import frames, place
from vector_index_mcp.sharing.guest import GONE

_log = logging.getLogger(__name__)

STARTS_HOST: ContextVar[bool] = ContextVar("STARTS_HOST", default=False)
"""Whether to start a host if there is none. Services do, but not commands, which soon end."""

_TRIES = 3  # since a host may end just when we connect
_START_SECONDS = 60.0  # for the host to start a process, which usually takes well below a second
_GOODBYE_SECONDS = 1.0
_LAST_FRAME_BYTES = 200
_BEGINNING = frames.line({"event": ENDED}).rstrip(b"}\n")
_KILLED = -9


class Joining:
    """Gives an embedder shares in the workers of the host, instead of workers of its own."""

    def __init__(self, idle_seconds: float, otherwise: StartWorker) -> None:
        """Prepare.

        Args:
            idle_seconds: How long a worker that nobody uses may stay.
            otherwise: Starts a worker of our own, if none can be shared.
        """
        self._idle_seconds, self._otherwise = idle_seconds, otherwise
        self._starts_host = STARTS_HOST.get()

    async def start(self, module: str, *arguments: str, environment: Mapping[str, str]) -> Worker:
        """A share in a worker, or a worker of our own. Has the signature of `StartWorker`.

        Raises:
            OSError: If the system cannot start a process.
        """
        wanted = {
            "arguments": arguments,
            "offline": environment.get("HF_HUB_OFFLINE") == "1",
            "idle_seconds": float(self._idle_seconds),
            "stamp": await anyio.to_thread.run_sync(stamp_of, arguments),
        }
        try:
            for _ in range(_TRIES):
                connection = await _connected(self._starts_host)
                if connection is None:
                    break
                if (worker := await _joined(connection, wanted)) is not None:
                    return worker
        except (BackgroundError, ProjectError, SettingsError) as error:
            level = logging.WARNING if self._starts_host else logging.DEBUG
            _log.log(level, "the embedding worker is not shared with other services: %s", error)
        return await self._otherwise(module, *arguments, environment=environment)


async def _connected(starts_host: bool) -> socket.socket | None:
    """A connection to the host; None if there is no host and none should be started.

    Raises:
        BackgroundError: If the host refuses, or cannot be started.
        ProjectError: If the user has no runtime folder of their own.
        SettingsError: If the host reports that a setting is wrong.
    """
    is_awaited = threading.Event()
    is_awaited.set()

    def connect() -> socket.socket | None:
        endpoint = place.endpoint()
        if starts_host:
            connection, _ = contact.granted(
                endpoint, [], greeting.WORK, patience=greeting.ANSWER_SECONDS
            )
        elif (joined := contact.joined(endpoint, greeting.WORK)) is not None:
            connection = joined
        else:
            return None
        if not is_awaited.is_set():
            connection.close()
        return connection

    try:
        return await anyio.to_thread.run_sync(connect, abandon_on_cancel=True)
    finally:
        is_awaited.clear()


async def _joined(connection: socket.socket, wanted: dict[str, Any]) -> "SharedWorker | None":
    """A share in the wanted worker; None if the host has just ended.

    Raises:
        BackgroundError: If the host does not answer.
        OSError: If the host cannot start the worker.
    """
    if connection.family == getattr(socket, "AF_UNIX", None):
        stream: anyio.abc.SocketStream = await anyio.abc.UNIXSocketStream.from_socket(connection)
    else:
        stream = await anyio.abc.SocketStream.from_socket(connection)
    received = BufferedByteReceiveStream(stream)
    worker = None
    try:
        with anyio.fail_after(_START_SECONDS):
            await stream.send(frames.line(wanted))
            answer = frames.parse(await received.receive_until(b"\n", LONGEST_HEADER_BYTES))
        if "failed" in answer:
            raise OSError(answer.get("errno"), answer["failed"])
        worker = SharedWorker(stream, received, int(answer["pid"]))
    except TimeoutError as error:
        raise BackgroundError(f"its host does not answer within {_START_SECONDS:.0f} s") from error
    except (anyio.IncompleteRead, anyio.DelimiterNotFound, ValueError, *GONE):
        pass
    finally:
        if worker is None:
            with anyio.CancelScope(shield=True):
                await stream.aclose()
    return worker


class SharedWorker:
    """A share in a worker; it behaves like a `Worker` of our own."""

    def __init__(
        self, stream: anyio.abc.SocketStream, received: BufferedByteReceiveStream, pid: int
    ) -> None:
        """Make one after the host has granted it.

        Args:
            stream: The connection to the host.
            received: Reads from the connection.
            pid: The process that holds the model.
        """
        self.pid = pid
        self.returncode: int | None = None
        self.stdin: anyio.abc.ByteSendStream = stream
        self.stdout: anyio.abc.ByteReceiveStream = _Output(self, received)
        self._stream = stream
        self._is_hanging = False
        self.receiving = anyio.CancelScope()

    def terminate(self) -> None:
        """Note that the worker hangs; `aclose` then has the host end it for all services."""
        self._is_hanging = True

    def kill(self) -> None:
        """Give up this share; the worker goes on for other services."""
        self.returncode = _KILLED
        self.receiving.cancel()

    async def wait(self) -> int:
        """The exit status. Called only when the worker has ended, or this share was given up."""
        return self.returncode or 0

    async def aclose(self) -> None:
        """End the connection; first have the host end a worker that hangs."""
        if self._is_hanging:
            with (
                anyio.move_on_after(_GOODBYE_SECONDS),
                suppress(anyio.BusyResourceError, OSError, *GONE),
            ):
                await self._stream.send(frames.line(frames.KILL))
        await self._stream.aclose()


class _Output(anyio.abc.ByteReceiveStream):
    """The worker's output, until it ends or the share is given up."""

    def __init__(self, worker: SharedWorker, received: BufferedByteReceiveStream) -> None:
        self._worker, self._received = worker, received
        self._last = b""

    async def receive(self, max_bytes: int = 65_536) -> bytes:
        if self._worker.returncode is None:
            with anyio.CancelScope() as self._worker.receiving:
                try:
                    data = await self._received.receive(max_bytes)
                except GONE:
                    self._worker.returncode = _status_in(self._last)
                else:
                    self._last = (self._last + data)[-_LAST_FRAME_BYTES:]
                    return data
        raise anyio.EndOfStream

    async def aclose(self) -> None:
        await self._worker.aclose()


def _status_in(last: bytes) -> int:
    """The exit status of the worker in the host's last frame; that of a kill if there is none."""
    start = last.rfind(_BEGINNING)  # before it, there may be the numbers of an answer
    with suppress(ValueError, KeyError):
        return int(frames.parse(last[start:])["status"]) if start >= 0 else _KILLED
    return _KILLED


def stamp_of(arguments: tuple[str, ...]) -> str:
    """A digest that changes whenever a file in a model's folder changes."""
    seen = []
    for name in filter(looks_like_folder, arguments):
        for folder, _, files in within.walk(Path(name)):
            for file in sorted(files):
                with suppress(OSError):
                    status = (Path(folder) / file).stat()
                    seen.append((folder, file, status.st_size, status.st_mtime_ns, status.st_ino))
    return hashlib.sha256(repr(sorted(seen)).encode("utf-8", "replace")).hexdigest()
