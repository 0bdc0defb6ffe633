"""What `doctor` examines besides the machine: the index of a project, or of documents."""

import shlex
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import anyio.to_thread

from vector_index_mcp.background import contact
from vector_index_mcp.background.endpoint import Endpoint, endpoint_of
from vector_index_mcp.codebase.limits import DEFAULT_TOP_K
from vector_index_mcp.codebase.remedies import REMEDIES as OF_CODEBASE
from vector_index_mcp.documents import configuration
from vector_index_mcp.documents.folders import folder_of as folder_of_collection
from vector_index_mcp.documents.home import DEFAULT_NAME, Home
from vector_index_mcp.documents.remedies import REMEDIES as OF_DOCUMENTS
from vector_index_mcp.engine.models.wording import WHOLE, Wording, of_code
from vector_index_mcp.errors import BackgroundError
from vector_index_mcp.files.folder import Folder
from vector_index_mcp.indexing.place import Place, index_uri
from vector_index_mcp.indexing.remedies import Remedies
from vector_index_mcp.serving.loading import folder_of, load_codebase, open_documents
from vector_index_mcp.serving.names import CODEBASE, DOCUMENTS
from vector_index_mcp.settings import Settings

_ENDED = "the background service has just ended; try again"
_QUERY = "where is the configuration read"


class Subject(Protocol):
    """An index, its service and its tool set, as far as checks need them."""

    @property
    def place(self) -> Place:
        """Where the index lies, and who owns it."""

    @property
    def remedies(self) -> Remedies:
        """What to do about an error."""

    @property
    def wording(self) -> Wording:
        """How texts are prepared for the embedding model."""

    @property
    def build(self) -> str:
        """The command that brings the index up to date."""

    @property
    def stop(self) -> str:
        """The command that ends the service."""

    def endpoint(self) -> Endpoint:
        """The endpoint of the service.

        Raises:
            ProjectError: If the user's runtime folder is not private.
        """

    def folders(self) -> Sequence[Folder]:
        """The indexed folders.

        Raises:
            SettingsError: If the configuration cannot be read.
        """

    def complaints(self) -> tuple[str, str]:
        """The error that the running service reports, and the lesser problem; each may be empty.

        Raises:
            BackgroundError: If the service does not answer.
        """

    def loaded_model(self) -> str:
        """A sentence about the model that the running service has loaded; empty if it has none.

        Raises:
            BackgroundError: If no service runs, or it does not answer.
        """

    def team_vectors(self) -> str:
        """What the running service reports of the team's vectors; empty if there are none.

        Raises:
            BackgroundError: If no service runs, or it does not answer.
        """

    async def ask_service(self) -> None:
        """Have the running service answer a query.

        Raises:
            BackgroundError: If the service does not answer.
        """

    async def open(self) -> Any:
        """Load the service in this process; the caller runs it."""

    async def ask(self, opened: Any) -> None:
        """Have the service that `open` returned answer a query.

        Raises:
            StoreError: If there is no index.
        """


class Project:
    """A software project."""

    remedies = OF_CODEBASE

    def __init__(self, project: Path, settings: Settings) -> None:
        self.project, self._settings = project, settings
        self.place = Place(index_uri(project, settings.lancedb_uri), str(project), project)
        self.wording = of_code(settings.embedding_model)
        path = shlex.quote(str(project))
        self.build = f"vector-index-mcp index {path}"
        self.stop = f"vector-index-mcp stop {path}"

    def endpoint(self) -> Endpoint:
        """The endpoint of the project's service."""
        return endpoint_of(CODEBASE, self.project)

    def folders(self) -> Sequence[Folder]:
        """The project's folder."""
        return (folder_of(self.project, self._settings),)

    def complaints(self) -> tuple[str, str]:
        """The error and the watcher's problem in the service's status."""
        status = _called(self.endpoint(), "status")
        return status["error_message"] or "", status["watcher"]["problem"] or ""

    def loaded_model(self) -> str:
        """A sentence about the model in the service's status."""
        return _loaded(_called(self.endpoint(), "status")["model"])

    def team_vectors(self) -> str:
        """The sentence about the team's vectors in the service's status."""
        return _called(self.endpoint(), "status")["model"]["team_vectors"] or ""

    async def ask_service(self) -> None:
        """Have the running service answer the call `search`."""
        await anyio.to_thread.run_sync(partial(_called, self.endpoint(), "search", query=_QUERY))

    async def open(self) -> Any:
        """Load the codebase."""
        return load_codebase(self.project, self._settings)

    async def ask(self, opened: Any) -> None:
        """As `search_index` does."""
        await opened.search(_QUERY, DEFAULT_TOP_K)


def _loaded(model: Mapping[str, Any]) -> str:
    """A sentence about the model in a service's status; empty if the service has not loaded it."""
    if model["state"] == "loading":
        return "the service is loading it; it is not loaded here as well"
    if model["state"] != "ready":
        return ""
    parts = (model["name"], model["dimension"] and f"{model['dimension']} numbers a vector")
    words = ", ".join(filter(None, (*parts, model["precision"])))
    return f"{words}; the service has loaded it, and it is not loaded here as well"


def _called(endpoint: Endpoint, name: str, **given: Any) -> Mapping[str, Any]:
    """The running service's answer to a call.

    Raises:
        BackgroundError: If the service has ended, or answers with an error.
    """
    answer = contact.call(endpoint, name, given, lambda _: None)
    if answer is None:
        raise BackgroundError(_ENDED)
    return dict(answer)


class Documents:
    """The user's collections of documents."""

    remedies = OF_DOCUMENTS
    wording = WHOLE

    def __init__(self, home: Home, settings: Settings) -> None:
        self._home, self._settings = home, settings
        self.place = Place(home.index, str(home.configuration))
        chosen = "" if home.name == DEFAULT_NAME else f" --index {shlex.quote(home.name)}"
        self.build = f"vector-index-mcp documents update{chosen}"
        self.stop = f"vector-index-mcp documents stop{chosen}"

    def endpoint(self) -> Endpoint:
        """The endpoint of the documents' service."""
        return endpoint_of(DOCUMENTS, self._home.configuration)

    def folders(self) -> Sequence[Folder]:
        """The folders of the collections."""
        found = configuration.read(self._home.configuration)
        return [folder_of_collection(collection) for collection in found.collections]

    def complaints(self) -> tuple[str, str]:
        """The problem of the index and those of collections in the service's status."""
        status = _called(self.endpoint(), "status")
        poor = [each for each in status["collections"] if each["problem"]]
        return status["problem"], "; ".join(f"{each['name']}: {each['problem']}" for each in poor)

    def loaded_model(self) -> str:
        """A sentence about the model in the service's status."""
        return _loaded(_called(self.endpoint(), "status")["model"])

    def team_vectors(self) -> str:
        """Always empty: no team shares vectors of documents."""
        return ""

    async def ask_service(self) -> None:
        """Have the running service search by words; other checks look at vectors."""
        await anyio.to_thread.run_sync(
            partial(_called, self.endpoint(), "search", query=_QUERY, limit=1)
        )

    async def open(self) -> Any:
        """Load the documents."""
        return await open_documents(self._home.configuration, self._settings)

    async def ask(self, opened: Any) -> None:
        """Search as the call `search` does."""
        from vector_index_mcp.documents import asking

        await asking.search(opened, asking.Wanted(_QUERY, asking.Mode.WORDS, limit=1))
