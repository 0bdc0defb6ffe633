"""The command `server`: serves the documents over MCP on the standard streams, over HTTP, or both.

It is a front end: the background service listens on the port for as long as this process lives.
"""

import argparse
from collections.abc import Sequence

from vector_index_mcp.background import relay
from vector_index_mcp.background.endpoint import endpoint_of
from vector_index_mcp.console import listening
from vector_index_mcp.documents.home import Home
from vector_index_mcp.serving.names import DOCUMENTS

DEFAULT_PORT = 18_765


def run(arguments: Sequence[str], home: Home, host_arguments: Sequence[str]) -> int:
    """Serve the documents until the client disconnects or a signal comes; returns the exit status.

    Args:
        arguments: The arguments of the command.
        home: The places of the documents' configuration and index.
        host_arguments: The arguments to start a service with if none runs.

    Raises:
        BackgroundError: If no service can be started, or it ended by an error; gives the reason.
        SettingsError: If the address needs a token and none is set, or a setting is wrong.
    """
    parsed = _parser().parse_args(arguments)
    endpoint = endpoint_of(DOCUMENTS, home.configuration)
    if parsed.transport == "mcp":
        return relay.run(endpoint, host_arguments)
    is_alone = parsed.transport == "http"
    return listening.run(parsed, endpoint, host_arguments, is_alone=is_alone)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="vector-index-mcp documents server",
        description="Serve the documents: MCP on the standard streams, REST and MCP over HTTP.",
        allow_abbrev=False,
    )
    parser.add_argument(
        "--transport",
        choices=("both", "mcp", "http"),
        default="both",
        help="mcp: the standard streams; http: REST, and MCP at /mcp; both (the default)",
    )
    listening.add_options(parser, DEFAULT_PORT)
    return parser
