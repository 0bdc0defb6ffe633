"""The commands of the notes."""

import argparse

from vector_index_mcp.background import relay
from vector_index_mcp.console.notes.desk import Desk


def run(line: argparse.Namespace, desk: Desk) -> int:
    """Run a command; its exit status."""
    return relay.run(desk.endpoint, desk.host_arguments)
