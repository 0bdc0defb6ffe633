"""The table of tool sets. A new one is an entry here; nothing else in this room knows their names.

Importing this imports none of them: a front end starts with it.
"""

from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from vector_index_mcp import __version__
from vector_index_mcp.errors import SettingsError

if TYPE_CHECKING:
    from mcp.server.mcpserver import MCPServer

    from vector_index_mcp.indexing.preparing.head_start import HeadStart
    from vector_index_mcp.page.handover import Handover
    from vector_index_mcp.serving.guard import App
    from vector_index_mcp.serving.listener import Page
    from vector_index_mcp.settings import Settings

CODEBASE, DOCUMENTS = "codebase", "documents"


class Service(Protocol):
    """What a tool set serves, as far as this room needs to know it."""

    def running(self) -> AbstractAsyncContextManager[None]:
        """The time in which it answers."""

    @property
    def is_busy(self) -> bool:
        """Whether work is left that nobody waits for, so that it must not end yet."""

    @property
    def state(self) -> str:
        """What it is doing, in one word."""


Get = Callable[[], Awaitable[Any]]
"""Waits for the running service."""


@dataclass(frozen=True, slots=True)
class ToolSet:
    """A tool set: an MCP server of its own, with a service behind it for each place."""

    name: str
    server_name: str
    """What the MCP server calls itself."""
    version: str
    """Of what it offers."""
    title: str
    description: str
    instructions: str
    load: "Callable[[Path, Settings, HeadStart | None], Awaitable[Service]]"
    """Makes the service of a place, not yet running."""
    register: "Callable[[MCPServer[Any], Get], None]"
    """Offers the tools on a server."""
    load_page: "Callable[[Get, Handover], Page] | None"
    """Makes the page that shows the service in a browser; None if there is none."""
    load_rest: "Callable[[Get, bool], App] | None" = None
    """Makes the REST interface, told whether requests must show a token; None if there is none."""


def _codebase() -> ToolSet:
    from vector_index_mcp.codebase import tools
    from vector_index_mcp.serving.loading import open_codebase

    def load_page(get_service: Get, handover: "Handover") -> "Page":
        from vector_index_mcp.serving.listener import Page  # 2 MB that few services need

        return Page(get_service, handover)

    return ToolSet(
        name=CODEBASE,
        server_name="vector-index-mcp",
        version=__version__,
        title="Vector index",
        description="Searches this software project by meaning and by identifier",
        instructions=tools.INSTRUCTIONS,
        load=open_codebase,
        register=tools.register,
        load_page=load_page,
    )


def _documents() -> ToolSet:
    from vector_index_mcp.documents import guide, tools
    from vector_index_mcp.serving.loading import open_documents

    def load_rest(get_service: Get, has_token: bool) -> "App":
        from vector_index_mcp.documents import rest  # 0.4 s that MCP need not wait for

        return rest.application(get_service, has_token=has_token)

    return ToolSet(
        name=DOCUMENTS,
        server_name="qmd",
        version="1.0.0",  # of the contract
        title="Documents",
        description="Finds and reads the user's documents, by words and by meaning",
        instructions=guide.INSTRUCTIONS,
        load=open_documents,
        register=tools.register,
        load_page=None,
        load_rest=load_rest,
    )


_TABLE: Mapping[str, Callable[[], ToolSet]] = {CODEBASE: _codebase, DOCUMENTS: _documents}


def named(name: str) -> ToolSet:
    """The tool set called `name`.

    Raises:
        SettingsError: If there is none.
    """
    if name not in _TABLE:
        raise SettingsError(f"there is no tool set {name!r}; there are {', '.join(_TABLE)}")
    return _TABLE[name]()
