"""Serves several projects through one MCP server, which asks the background service of each."""

import math
import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import anyio

from vector_index_mcp.background import contact
from vector_index_mcp.background.endpoint import endpoint_of
from vector_index_mcp.codebase.workspace import Ask, Workspace
from vector_index_mcp.errors import BackgroundError, NoServiceError, ProjectError
from vector_index_mcp.processes.detached import Detached, NoThreadError
from vector_index_mcp.serving import names, server, sets, transport
from vector_index_mcp.settings import Settings

_MOST_CALLERS = 4  # threads at once that call the service of one project


def serve(projects: Sequence[Path], settings: Settings, host_arguments: Sequence[str]) -> None:
    """Serve MCP on standard input and output until its end.

    Args:
        projects: The folders of the projects, resolved, each once. One may not exist now.
        settings: The settings of this process; each service reads its own.
        host_arguments: The arguments to start a service with, if a project has none.
    """
    workspace = Workspace(projects, _asking(projects, host_arguments))
    tool_set = sets.of_workspace(workspace)
    streams = transport.StandardStreams()
    anyio.run(server.serve_stdio, tool_set, projects[0], settings, streams, None)


def _asking(projects: Sequence[Path], host_arguments: Sequence[str]) -> Ask:
    # Threads of its own for each project: a service that hangs keeps no other project waiting.
    callers = {project: Detached(_MOST_CALLERS, "caller") for project in projects}

    async def ask(project: Path, name: str, given: dict[str, Any]) -> dict[str, Any]:
        call = partial(_call, project, name, given, host_arguments)
        answer: dict[str, Any] | None
        try:
            answer = await callers[project].run(lambda _: call(), math.inf)
        except NoThreadError as error:
            raise BackgroundError(str(error)) from error
        if answer is None:
            raise NoServiceError(
                f"the background service of {project} cannot be reached; "
                f"`vector-index-mcp logs {project}` may show why"
            )
        return answer

    return ask


def _call(
    project: Path, name: str, given: dict[str, Any], host_arguments: Sequence[str]
) -> dict[str, Any] | None:
    """Ask the service of a project, and start it if needed; no process is started in vain."""
    if not os.path.isdir(project):
        raise ProjectError(f"{project} does not exist; it is searched again once it does")
    endpoint = endpoint_of(names.CODEBASE, project)
    answer: dict[str, Any] | None = contact.call(
        endpoint, name, given, lambda _: None, host_arguments, may_repeat=True
    )
    return answer
