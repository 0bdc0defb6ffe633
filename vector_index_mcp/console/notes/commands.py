"""Runs the commands of the notes. Each imports only what it needs."""

import argparse

from vector_index_mcp.console.notes.arguments import LOGS, SERVE, STOP, UI
from vector_index_mcp.console.notes.desk import Desk


def run(line: argparse.Namespace, desk: Desk) -> int:
    """Run a command; returns the exit status.

    Raises:
        VectorIndexError: If the command fails.
    """
    if line.command == SERVE:
        from vector_index_mcp.background import relay

        return relay.run(desk.endpoint, desk.host_arguments)
    if line.command == LOGS:
        from vector_index_mcp.console import services

        return services.logs_at(desk.endpoint, follow=line.follow)
    if line.command == STOP:
        from vector_index_mcp.console import services

        return services.stop_at(desk.endpoint)
    if line.command == UI:
        from vector_index_mcp.console import ui

        return ui.run(desk.endpoint, desk.host_arguments, opens_browser=not line.no_open)
    from vector_index_mcp.console.notes import changing, looking

    if line.command != "doctor":  # which has a finding of its own
        # Where there can be no notes, an import is refused with the same words.
        trouble = desk.loss() if line.command == "import" else desk.trouble()
        if trouble:
            looking.warn(trouble)
    with desk.reading() as store:
        if line.command in looking.COMMANDS:
            return looking.COMMANDS[line.command](line, desk, store)
        return changing.COMMANDS[line.command](line, desk, store)
