"""The table of tool sets. A new tool set is an entry here; the rest of this room knows no names.

Importing this module imports no tool set, since a front end imports it at its start.
"""

import os
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from vector_index_mcp import __version__
from vector_index_mcp.errors import SettingsError
from vector_index_mcp.serving.names import CODEBASE, DATASETS, DOCUMENTS, NOTES

if TYPE_CHECKING:
    from mcp.server.mcpserver import MCPServer

    from vector_index_mcp.background.host import Tell
    from vector_index_mcp.codebase.workspace import Workspace
    from vector_index_mcp.indexing.preparing.head_start import HeadStart
    from vector_index_mcp.indexing.remedies import Remedies
    from vector_index_mcp.page.handover import Handover
    from vector_index_mcp.serving.guard import App
    from vector_index_mcp.serving.listener import Page
    from vector_index_mcp.settings import Settings


class Service(Protocol):
    """The service of a tool set, as far as this room needs to know it."""

    def running(self) -> AbstractAsyncContextManager[None]:
        """Answer while the context lasts."""

    @property
    def is_busy(self) -> bool:
        """Whether there is work, so that the service must not end even without clients."""

    @property
    def state(self) -> str:
        """The state of the service, in one word."""


Get = Callable[[], Awaitable[Any]]
"""Waits for the running service."""


@dataclass(frozen=True, slots=True)
class ToolSet:
    """A tool set: an MCP server of its own, with a service behind it for each place."""

    name: str
    server_name: str
    """The name of the MCP server."""
    version: str
    """The version of what the server offers."""
    title: str
    description: str
    instructions: str
    remedies: "Remedies"
    """What to do about an error, in the words of the tool set."""
    load: "Callable[[Path, Settings, HeadStart | None], Awaitable[Service]]"
    """Makes the service of a place, which does not run yet."""
    register: "Callable[[MCPServer[Any], Get], None]"
    """Offers the tools on a server."""
    load_page: "Callable[[Get, Handover, Settings], Page] | None"
    """Makes the page that shows the service in a browser; None if there is none."""
    answer: "Callable[[Any, str, Mapping[str, Any], Tell], Awaitable[Any]] | None" = None
    """Answers the call of a command, by its name and arguments; None if there are no calls."""
    load_rest: "Callable[[Get, bool], App] | None" = None
    """Makes the REST interface, given whether requests must have a token; None if there is none."""
    longest_message_bytes: int = 1_000_000
    """The longest message of a client. The longest query takes 600 KB if all of it is escaped."""


def _codebase() -> ToolSet:
    from vector_index_mcp.codebase import tools
    from vector_index_mcp.codebase.remedies import REMEDIES
    from vector_index_mcp.serving.loading import open_codebase

    async def answer(codebase: Any, name: str, given: Mapping[str, Any], tell: "Tell") -> Any:
        from vector_index_mcp.codebase import calls  # needs LanceDB, which is imported by now

        return await calls.answer(codebase, name, given, tell)

    def load_page(get_service: Get, handover: "Handover", settings: "Settings") -> "Page":
        from vector_index_mcp.editors import template_of
        from vector_index_mcp.page.project import ProjectPage
        from vector_index_mcp.serving.listener import Page  # takes 2 MB, and few services need it

        return Page(ProjectPage(get_service, template_of(settings.editor)), handover)

    return ToolSet(
        name=CODEBASE,
        server_name="vector-index-mcp",
        version=__version__,
        title="Vector index",
        description="Searches this software project by meaning and by identifier",
        instructions=tools.INSTRUCTIONS,
        remedies=REMEDIES,
        load=open_codebase,
        register=tools.register,
        load_page=load_page,
        answer=answer,
    )


def _documents() -> ToolSet:
    from vector_index_mcp.documents import guide, tools
    from vector_index_mcp.documents.remedies import REMEDIES
    from vector_index_mcp.serving.loading import open_documents

    async def answer(documents: Any, name: str, given: Mapping[str, Any], tell: "Tell") -> Any:
        from vector_index_mcp.documents import calls  # needs LanceDB, which is imported by now

        return await calls.answer(documents, name, given, tell)

    def load_rest(get_service: Get, has_token: bool) -> "App":
        from vector_index_mcp.documents import rest  # takes 0.4 s, for which MCP must not wait

        return rest.application(get_service, has_token=has_token)

    def load_page(get_service: Get, handover: "Handover", _: "Settings") -> "Page":
        from vector_index_mcp.page.documents import DocumentsPage
        from vector_index_mcp.serving.listener import Page

        return Page(DocumentsPage(get_service), handover)

    return ToolSet(
        name=DOCUMENTS,
        server_name="qmd",
        version="1.0.0",  # of the contract
        title="Documents",
        description="Finds and reads the user's documents, by words and by meaning",
        instructions=guide.INSTRUCTIONS,
        remedies=REMEDIES,
        load=open_documents,
        register=tools.register,
        load_page=load_page,
        answer=answer,
        load_rest=load_rest,
    )


def _notes() -> ToolSet:
    from vector_index_mcp.notes import guide, tools
    from vector_index_mcp.notes.remedies import REMEDIES
    from vector_index_mcp.serving.loading import open_notes

    def load_page(get_service: Get, handover: "Handover", _: "Settings") -> "Page":
        from vector_index_mcp.page.notes import NotesPage
        from vector_index_mcp.serving.listener import Page

        return Page(NotesPage(get_service), handover)

    return ToolSet(
        name=NOTES,
        server_name="Knowledge MCP Server",
        version=__version__,
        title="Notes",
        description="Keeps instructions, knowledge and to-dos of projects, in git",
        instructions=guide.INSTRUCTIONS,
        remedies=REMEDIES,
        load=open_notes,
        register=tools.register,
        load_page=load_page,
        longest_message_bytes=64_000_000,  # 10 MB of text, each character escaped
    )


def _datasets() -> ToolSet:
    from vector_index_mcp.datasets import guide, tools
    from vector_index_mcp.datasets.remedies import REMEDIES
    from vector_index_mcp.serving.loading import open_datasets

    def load_rest(get_service: Get, _: bool) -> "App":
        from vector_index_mcp.datasets import rest

        return rest.application(get_service)

    def load_page(get_service: Get, handover: "Handover", _: "Settings") -> "Page":
        from vector_index_mcp.page.datasets import DatasetsPage
        from vector_index_mcp.serving.listener import Page

        return Page(DatasetsPage(get_service), handover)

    return ToolSet(
        name=DATASETS,
        server_name="mcpower",
        version="0.1.0",  # of the contract
        title="Datasets",
        description="Searches knowledge that others have prepared",
        instructions=guide.INSTRUCTIONS,
        remedies=REMEDIES,
        load=open_datasets,
        register=tools.register,
        load_page=load_page,
        load_rest=load_rest,
    )


@dataclass(frozen=True, slots=True)
class _Start:
    """What the process of a service does before it loads its tool set."""

    place_of: "Callable[[str, Settings], Path]"
    """Returns the place that a path on the command line means."""
    head_start_of: "Callable[[Path, Settings], HeadStart | None]"
    """Begins the head start; None if there is none."""


def _start_of_codebase() -> _Start:
    from vector_index_mcp.codebase.project import resolve_project
    from vector_index_mcp.serving.loading import head_start_of

    def place_of(path: str, settings: "Settings") -> Path:
        return resolve_project(path, allow_broad=settings.allow_broad_path)

    return _Start(place_of, head_start_of)


def _start_by_path() -> _Start:
    # The place may not exist yet, so the path is only made absolute, and there is no head start.
    return _Start(lambda path, _: Path(os.path.abspath(path)), lambda *_: None)  # noqa: PTH100


@dataclass(frozen=True, slots=True)
class _Entry:
    """How a tool set is loaded, and how its service starts; calling either imports a lot."""

    load: Callable[[], ToolSet]
    start: Callable[[], _Start] = _start_by_path


_TABLE: Mapping[str, _Entry] = {
    CODEBASE: _Entry(_codebase, _start_of_codebase),
    DOCUMENTS: _Entry(_documents),
    NOTES: _Entry(_notes),
    DATASETS: _Entry(_datasets),
}


def named(name: str) -> ToolSet:
    """The tool set with this name.

    Raises:
        SettingsError: If there is none.
    """
    return _entry(name).load()


def of_workspace(workspace: "Workspace") -> ToolSet:
    """The tool set `codebase` for several projects, which `workspace` answers."""
    from vector_index_mcp.codebase import tools

    async def load(*_: Any) -> Service:
        return workspace

    return replace(
        named(CODEBASE),
        description="Searches these software projects by meaning and by identifier",
        instructions=tools.instructions_for([str(path) for path in workspace.projects.values()]),
        load=load,
        register=partial(tools.register, tools=tools.OF_WORKSPACE),
    )


def place_of(name: str, path: str, settings: "Settings") -> Path:
    """The place that `path` means to the tool set with this name.

    Raises:
        ProjectError: If the path is no place of that tool set.
        SettingsError: If there is no such tool set.
    """
    return _entry(name).start().place_of(path, settings)


def head_start_of(name: str, place: Path, settings: "Settings") -> "HeadStart | None":
    """Begin a head start for the service of a place; None if there is none."""
    return _entry(name).start().head_start_of(place, settings)


def _entry(name: str) -> _Entry:
    if name not in _TABLE:
        raise SettingsError(f"there is no tool set {name!r}; there are {', '.join(_TABLE)}")
    return _TABLE[name]
