"""Runs the commands of the datasets. Each imports only what it needs."""

import argparse
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from vector_index_mcp.background.endpoint import endpoint_of
from vector_index_mcp.console import listening
from vector_index_mcp.console.datasets.arguments import (
    ADD,
    CHECK,
    CONSOLE,
    DELETE,
    EXPORT,
    HEALTH,
    INDEX,
    INFO,
    LIST,
    PACK,
    SEARCH,
    STOP,
    UI,
    VALIDATE,
    pass_on_log_level,
)
from vector_index_mcp.console.terminal import write
from vector_index_mcp.console.typed import resolved
from vector_index_mcp.datasets.finding import lack_of
from vector_index_mcp.foreign import visible
from vector_index_mcp.serving.names import DATASETS

if TYPE_CHECKING:
    from vector_index_mcp.settings import Settings


def run(
    line: argparse.Namespace, host_options: Sequence[str], settings: "Callable[[], Settings]"
) -> int:
    """Run a command; returns the exit status.

    Args:
        line: The parsed command line.
        host_options: The arguments to start a service with.
        settings: Reads the settings.

    Raises:
        VectorIndexError: If the command fails.
    """
    if line.command in (INDEX, EXPORT):
        from vector_index_mcp.console.datasets import making

        return {INDEX: making.index, EXPORT: making.export}[line.command](line, settings())
    if line.command in (PACK, ADD, DELETE):
        from vector_index_mcp.console.datasets import keeping

        return keeping.COMMANDS[line.command](line)
    if line.command in (VALIDATE, HEALTH) or (line.command == SEARCH and line.index is not None):
        from vector_index_mcp.console.datasets import bridge

        return bridge.COMMANDS[line.command](line, settings())
    if line.command in (LIST, INFO, CHECK, SEARCH):
        from vector_index_mcp.console.datasets import looking

        return looking.COMMANDS[line.command](line, settings())
    pass_on_log_level(line)
    folder = resolved(line.folder)
    if not folder.is_dir():
        write(f"vector-index-mcp: {visible(lack_of(folder))}", sys.stderr)
    endpoint = endpoint_of(DATASETS, folder)
    if line.command == UI:
        from vector_index_mcp.console import ui

        return ui.run(endpoint, host_options, opens_browser=not line.no_open)
    if line.command == STOP:
        from vector_index_mcp.console import services

        return services.stop_at(endpoint)
    if line.command == CONSOLE:
        return listening.run(line, endpoint, host_options, is_alone=True)
    from vector_index_mcp.background import relay

    return relay.run(endpoint, host_options)
