"""An HTTP server that runs as a guest in the service's process and event loop.

It takes over neither signals nor logging. Only this module knows uvicorn.
"""

import asyncio
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import anyio
import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

_MOST_HEADER_BYTES = 16_384
_HEADER_SECONDS = 20.0  # in which the first line and the headers of a request must arrive
# How long an idle connection is kept: longer than httpx (5 s) and aiohttp (15 s) keep theirs, or
# a request that is on its way while we close it has no answer; and less long than headers may take.
_IDLE_SECONDS = 18
_BODY_SECONDS = 40.0  # then in which its body must arrive; longer than `guard` waits for it
_PATIENCE_SECONDS = 60.0  # after which a client that takes none of an answer is given up
_SHUTDOWN_SECONDS = 1


@asynccontextmanager
async def serving(app: Any, listening: socket.socket, connections: int) -> AsyncIterator[None]:
    """Answer requests while the context lasts; then close the socket.

    Args:
        app: An ASGI application.
        listening: A socket that listens already.
        connections: How many connections there may be at once. If one more comes, the connection
            that has gone longest without a complete request is closed.
    """
    server = _Guest(
        uvicorn.Config(
            app,
            http=_InTime,
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,  # it would contain tokens and queries
            server_header=False,
            proxy_headers=False,
            limit_concurrency=connections,
            h11_max_incomplete_event_size=_MOST_HEADER_BYTES,
            timeout_keep_alive=_IDLE_SECONDS,
            timeout_graceful_shutdown=_SHUTDOWN_SECONDS,
        )
    )
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(server.serve, [listening])
        try:
            yield
        finally:
            with anyio.CancelScope(shield=True):
                await server.end(listening)
            tasks.cancel_scope.cancel()


class _Guest(uvicorn.Server):
    """uvicorn inside of a process that also does other things."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals to the process."""
        yield

    async def end(self, listening: socket.socket) -> None:
        """Close all connections and the listening socket."""
        if self.started:
            await self.shutdown([listening])
        listening.close()


class _InTime(H11Protocol):
    """A connection that is closed if a request takes too long to arrive, or an answer to leave.

    uvicorn waits for both without a limit, and the number of connections is limited. So a few
    silent clients would keep out all others.
    """

    _deadline: asyncio.TimerHandle | None = None
    _patience: asyncio.TimerHandle | None = None
    _silent_since = 0.0  # a time of the event loop

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Note a connection."""
        super().connection_made(transport)
        self._wait_for_headers()
        self._make_room()

    def on_response_complete(self) -> None:
        """Note that a request is answered, and wait for the next one."""
        super().on_response_complete()
        self._wait_for_headers()

    def connection_lost(self, exc: Exception | None) -> None:
        """Note the end of the connection."""
        self._stop_waiting()
        self._stop_losing_patience()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """Note that the client is behind with reading the answer."""
        super().pause_writing()
        self._stop_losing_patience()
        self._patience = self.loop.call_later(_PATIENCE_SECONDS, self.transport.abort)

    def resume_writing(self) -> None:
        """Note that the client has read most of what it was sent."""
        self._stop_losing_patience()
        super().resume_writing()

    def send_400_response(self, msg: str) -> None:
        """Refuse what is no HTTP.

        The application may have been given the request already, since its body came too late to
        be looked at. It then learns that the client is gone, and its answer is dropped: h11 would
        raise errors for a second one.
        """
        if self.cycle is not None:
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        if self.conn.our_state in {h11.IDLE, h11.SEND_RESPONSE}:
            super().send_400_response(msg)
        else:
            self.transport.close()

    def _stop_losing_patience(self) -> None:
        if self._patience is not None:
            self._patience.cancel()

    def _make_room(self) -> None:
        """If there are too many connections, close the one without a request for longest."""
        if self.limit_concurrency is None or len(self.connections) < self.limit_concurrency:
            return
        others = (each for each in self.connections if isinstance(each, _InTime))
        waiting = [each for each in others if each is not self and each.waits_for_request]
        if waiting:
            min(waiting, key=_InTime._worth).transport.close()

    @property
    def waits_for_request(self) -> bool:
        """Whether no whole request has come since the last answer has left."""
        is_gone = self.transport.is_closing() or self.transport.get_write_buffer_size()
        return self.conn.their_state in {h11.IDLE, h11.SEND_BODY} and not is_gone

    def _worth(self) -> tuple[bool, float]:
        """What has sent its headers is worth more, and what has not been waiting for long."""
        return self.conn.their_state is h11.SEND_BODY, self._silent_since

    def _wait_for_headers(self) -> None:
        self._silent_since = self.loop.time()
        self._stop_waiting()
        self._deadline = self.loop.call_later(_HEADER_SECONDS, self._look_at_headers)

    def _stop_waiting(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()

    def _look_at_headers(self) -> None:
        # A connection that is closing still waits for its client to take the last answer.
        if self.conn.their_state is h11.IDLE or self.transport.is_closing():
            self.transport.abort()
        else:
            self._deadline = self.loop.call_later(_BODY_SECONDS, self._look_at_body)

    def _look_at_body(self) -> None:
        if self.conn.their_state is h11.SEND_BODY:
            self.transport.abort()
