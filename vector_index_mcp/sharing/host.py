"""The host: the process that starts the shared workers and connects services to them.

It holds no model itself.
"""

import os
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import anyio
import anyio.abc
from anyio.streams.buffered import BufferedByteReceiveStream

from vector_index_mcp.background import greeting
from vector_index_mcp.background.endpoint import Endpoint
from vector_index_mcp.background.host import Host
from vector_index_mcp.errors import BackgroundError
from vector_index_mcp.processes import children, memory
from vector_index_mcp.sharing import frames
from vector_index_mcp.sharing.guest import GONE, Guest, heard
from vector_index_mcp.sharing.workers import Workers

_LINGERING_SECONDS = 3.0  # without a connection; longer than a service takes to reconnect
_FIRST_FRAME_SECONDS = 10.0  # for a service to send which worker it needs


async def run(endpoint: Endpoint, on_ready: Callable[[str], None]) -> None:
    """Run the host at `endpoint`, until no service has been connected for a while.

    Args:
        endpoint: Where services connect.
        on_ready: See `Host.run`.
    """
    os.chdir(sys.prefix)  # out of the project in which the host was started
    workers = Workers(children.start)
    await Host(
        endpoint=endpoint,
        idle_seconds=_LINGERING_SECONDS,
        wish=greeting.WORK,
        serve_session=partial(_serve, workers),
        serve_call=_no_call,
        open_page=_no_page,
        viewers=lambda: 0,
        is_busy=lambda: False,
        report=partial(_report, workers),
    ).run(workers.run, on_ready)


async def _serve(workers: Workers, stream: anyio.abc.ByteStream) -> None:
    lines = BufferedByteReceiveStream(stream)
    try:
        with anyio.fail_after(_FIRST_FRAME_SECONDS):
            values, _ = await heard(lines)
        wanted, idle_seconds = frames.wanted(values)
    except (ValueError, TimeoutError, anyio.DelimiterNotFound, anyio.IncompleteRead, *GONE):
        return
    try:
        shared = await workers.found(wanted)
    except OSError as error:
        failed = {"failed": error.strerror or str(error), "errno": error.errno}
        await stream.send(frames.line(failed))
        return
    guest = Guest(stream, lines)
    with workers.used(shared, guest, idle_seconds):
        await guest.serve(partial(shared.ask, guest), shared.kill)


async def _no_call(_: dict[str, Any], __: Any) -> dict[str, Any]:
    return {"error": "the embedding worker answers no calls", "status": greeting.WRONG_USE}


async def _no_page(_: bool) -> dict[str, Any]:
    raise BackgroundError("the embedding worker has no page")


def _report(workers: Workers) -> dict[str, Any]:
    loaded = workers.loaded
    held = sum(map(memory.held_by, [os.getpid(), *(shared.pid for shared in loaded)]))
    is_busy = any(shared.is_busy for shared in loaded)
    return {
        "state": "EMBEDDING" if is_busy else "RESTING",
        "memory_bytes": held,
        "waiting": sum(shared.waiting for shared in loaded),
        "at_work": sum(shared.at_work for shared in loaded),
    }
