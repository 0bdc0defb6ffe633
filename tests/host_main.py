"""What becomes of a fork that is to be a background service; see `forked_hosts`.

The import gets what a service imports at its start.
"""

import forked_children
import forked_hosts

from vector_index_mcp import cli, settings
from vector_index_mcp.console import hosting
from vector_index_mcp.processes import children
from vector_index_mcp.serving import lean_mcp, sets

lean_mcp.load()

from vector_index_mcp.codebase import service  # noqa: E402
from vector_index_mcp.serving import loading, server  # noqa: E402
from vector_index_mcp.sharing import host  # noqa: E402

IMPORTED = (settings, hosting, loading, server, service, host, sets.named("codebase"))


def main(*arguments: str) -> None:
    forked_hosts.install()
    children.started = forked_children.started
    sets.head_start_of = lambda *_: None  # which prepares files during the imports
    cli.main(arguments)
