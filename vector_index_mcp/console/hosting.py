"""The process of a background service: starts it, and reports how the start went."""

import contextlib
import gc
import logging
import os
from collections.abc import Callable
from typing import TYPE_CHECKING

from vector_index_mcp.console import log
from vector_index_mcp.errors import (
    SYSTEM_ERRORS,
    VectorIndexError,
    first_of,
    is_wrong_use,
    sentence,
)
from vector_index_mcp.foreign import visible
from vector_index_mcp.processes import streams
from vector_index_mcp.sharing import place as of_worker

if TYPE_CHECKING:  # imports pydantic
    from vector_index_mcp.settings import Settings

_log = logging.getLogger(__name__)

_USUAL_LEVEL = "INFO"
_LEVELS = frozenset({"DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"})


def run(tool_set: str, path: str, env_file: str | None) -> int:
    """Run the service until it ends; one line on its output reports how the start went.

    Args:
        tool_set: The tool set to serve, or the name that stands for the shared embedding worker.
        path: The place to serve, such as a project's folder; for a worker its name.
        env_file: A file with settings, if any.

    Returns:
        The exit status.
    """
    _, output = streams.claim()
    pipe = os.fdopen(output, "wb")

    def report(words: str) -> None:
        """Report how the start went; what comes after the first report is for the log alone."""
        # The process that started us may have ended, or has read its line and closed the pipe.
        if not pipe.closed:
            with contextlib.suppress(OSError), pipe:
                pipe.write(f"{words}\n".encode())

    gc.disable()  # imports leave no garbage, and collecting takes 0.04 s of the 0.6 s of a start
    try:
        if tool_set == of_worker.TOOL_SET:
            _host_worker(path, report)
        else:
            _host_service(tool_set, path, env_file, report)
    except (*SYSTEM_ERRORS, VectorIndexError, ExceptionGroup) as raised:
        error = first_of(raised)
        report(f"error {2 if is_wrong_use(error) else 1}: {visible(sentence(error))}")
        if isinstance(error, VectorIndexError):
            _log.error("the service ends: %s", sentence(error))
        else:
            _log.exception("an error ends the service")
        return 1
    return 0


def _host_service(
    tool_set: str, path: str, env_file: str | None, report: Callable[[str], None]
) -> None:
    import anyio

    from vector_index_mcp import settings
    from vector_index_mcp.background.endpoint import endpoint_of
    from vector_index_mcp.serving import folders, sets

    configured = settings.load(env_file)
    folders.state_folder()  # without a home folder there is none, and the start fails
    place = sets.place_of(tool_set, path, configured)
    endpoint = endpoint_of(tool_set, place)
    log.to_file(endpoint.log, _level(tool_set, configured))

    head_start = sets.head_start_of(tool_set, place, configured)
    from vector_index_mcp.serving import lean_mcp

    lean_mcp.load()
    from vector_index_mcp.serving import server

    served = sets.named(tool_set)
    gc.enable()
    anyio.run(server.host, served, endpoint, configured, report, head_start)


def _host_worker(name: str, report: Callable[[str], None]) -> None:
    import anyio

    from vector_index_mcp.sharing import host

    endpoint = of_worker.named(name)
    log.to_file(endpoint.log, _USUAL_LEVEL)
    gc.enable()
    anyio.run(host.run, endpoint, report)


def _level(tool_set: str, configured: "Settings") -> str:
    """Return the log level of a service; that of notes may come from the environment."""
    if "log_level" in configured.model_fields_set:
        return configured.log_level
    if tool_set == "notes":
        from vector_index_mcp.notes.home import LEVEL_VARIABLE

        wanted = os.environ.get(LEVEL_VARIABLE, "").upper()
        return wanted if wanted in _LEVELS else _USUAL_LEVEL
    return _USUAL_LEVEL
