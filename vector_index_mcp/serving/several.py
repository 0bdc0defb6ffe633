"""Serves several projects through one MCP server, which asks the background service of each."""

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import anyio.from_thread
from anyio.lowlevel import current_token

from vector_index_mcp.background import contact, launching
from vector_index_mcp.background.endpoint import endpoint_of
from vector_index_mcp.codebase.workspace import Ask, Workspace
from vector_index_mcp.errors import BackgroundError, NoServiceError
from vector_index_mcp.serving import server, sets, transport
from vector_index_mcp.settings import Settings

_MOST_CALLERS = 4  # threads at once that call the service of one project


def serve(projects: Sequence[Path], settings: Settings, host_arguments: Sequence[str]) -> None:
    """Serve MCP on standard input and output until its end.

    Args:
        projects: The folders of the projects, resolved.
        settings: The settings of this process; each service reads its own.
        host_arguments: The arguments to start a service with, if a project has none.
    """
    different = list(dict.fromkeys(projects))
    workspace = Workspace(different, _asking(different, host_arguments))
    tool_set = sets.of_workspace(workspace)
    streams = transport.StandardStreams()
    anyio.run(server.serve_stdio, tool_set, projects[0], settings, streams, None)


def _asking(projects: Sequence[Path], host_arguments: Sequence[str]) -> Ask:
    # One limiter for each project: a hanging service keeps its callers waiting, but not others.
    callers = {project: anyio.CapacityLimiter(_MOST_CALLERS) for project in projects}

    async def ask(project: Path, name: str, given: dict[str, Any]) -> dict[str, Any]:
        endpoint = endpoint_of(sets.CODEBASE, project)
        call = partial(
            contact.call, endpoint, name, given, lambda _: None, host_arguments, may_repeat=True
        )
        answer: dict[str, Any] | None = await _answered(call, callers[project])
        if answer is None:
            raise NoServiceError(
                f"the background service of {project} cannot be reached; "
                f"`vector-index-mcp logs {project}` may show why"
            )
        return answer

    return ask


async def _answered(call: Callable[[], Any], limiter: anyio.CapacityLimiter) -> Any:
    """Run a blocking call in a thread, and return its result.

    If this is cancelled, the thread goes on and counts in `limiter` until it ends. It keeps neither
    the caller waiting nor, unlike a thread of anyio, the process from ending.

    Raises:
        VectorIndexError: As the call does.
    """
    done: Future[Any] = Future()
    is_over, token = anyio.Event(), current_token()
    await limiter.acquire_on_behalf_of(done)

    def end() -> None:
        limiter.release_on_behalf_of(done)
        is_over.set()

    def work() -> None:
        try:
            done.set_result(call())
        except BaseException as error:  # noqa: BLE001  # raised by `done.result`
            done.set_exception(error)
        with suppress(RuntimeError):  # the event loop has ended
            anyio.from_thread.run_sync(end, token=token)

    try:
        launching.in_background(work)
    except BackgroundError:
        limiter.release_on_behalf_of(done)
        raise
    await is_over.wait()
    return done.result()
