"""Makes the services of the tool sets from the settings.

Does not import MCP: a command that opens an index itself would wait half a second for that.
"""

import hashlib
import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import anyio.to_thread

from vector_index_mcp.background import contact
from vector_index_mcp.background.endpoint import endpoint_of
from vector_index_mcp.errors import ProjectError
from vector_index_mcp.files.folder import Folder, Reading, Selection
from vector_index_mcp.indexing.place import index_uri
from vector_index_mcp.indexing.preparing.head_start import HeadStart
from vector_index_mcp.serving.folders import (
    MAKING,
    NOTES_STATE,
    TABLES,
    cache_folder,
    state_folder,
    team_place,
)
from vector_index_mcp.serving.lazily import Retrying
from vector_index_mcp.serving.names import CODEBASE, DOCUMENTS
from vector_index_mcp.settings import Settings

if TYPE_CHECKING:
    from vector_index_mcp.codebase.service import Codebase
    from vector_index_mcp.datasets.service import Datasets
    from vector_index_mcp.datasets.workshop import Order
    from vector_index_mcp.documents.home import Home
    from vector_index_mcp.documents.language_model import LanguageModel
    from vector_index_mcp.documents.service import Documents
    from vector_index_mcp.engine.models.cache import EmbeddingCache
    from vector_index_mcp.engine.models.embedder import Embedder
    from vector_index_mcp.engine.models.worker_process import Worker
    from vector_index_mcp.indexing.options import Options
    from vector_index_mcp.indexing.preparing.crew import Crew
    from vector_index_mcp.indexing.preparing.recipe import Recipe
    from vector_index_mcp.indexing.remedies import Remedies
    from vector_index_mcp.indexing.service import LiveIndex
    from vector_index_mcp.notes.service import Notes

_SECONDS_PER_MINUTE = 60
_HASH_CHARS = 16
_LARGEST_TEXT_BYTES = 50_000_000  # required by the contract of datasets


def head_start_of(project: Path, settings: Settings) -> HeadStart | None:
    """Begin to prepare files for the first index of `project`; None if it may have an index."""
    uri = index_uri(project, settings.lancedb_uri)
    if "://" in uri or os.path.exists(uri) or settings.shared_index:
        return None
    try:
        return HeadStart(folder_of(project, settings), settings.chunk_max_chars)
    except OSError:  # no child process: indexing only takes longer
        return None


async def open_codebase(
    project: Path,
    settings: Settings,
    head_start: HeadStart | None = None,
    *,
    is_about_to_index: bool = False,
) -> "Codebase":
    """Load the service of `project` in a thread; it does not run yet.

    If there is no index yet, or it is about to be updated, the children that prepare files start
    at the same time.
    """
    crew = await anyio.to_thread.run_sync(_crew_of, settings, head_start)
    if head_start is not None and not head_start.is_enough:
        await crew.start()
    elif is_about_to_index:
        await crew.warm_up()
    return await anyio.to_thread.run_sync(load_codebase, project, settings, crew)


def folder_of(project: Path, settings: Settings) -> Folder:
    """The project as the folder of an index."""
    return Folder(
        project,
        selection=Selection(settings.ignore_patterns),
        reading=Reading(settings.max_file_bytes),
    )


def _crew_of(settings: Settings, head_start: HeadStart | None) -> "Crew":
    from vector_index_mcp.indexing.preparing.crew import Crew

    return Crew(_recipe_of(settings), head_start)


def _recipe_of(settings: Settings) -> "Recipe":
    from vector_index_mcp.indexing.preparing.recipe import Recipe

    return Recipe(settings.chunk_max_chars)


def load_codebase(
    project: Path, settings: Settings, crew: "Crew | None" = None, branch: str = ""
) -> "Codebase":
    """Load the service of `project`; it does not run yet. Takes 0.5 s, since it imports LanceDB.

    Args:
        project: The folder.
        settings: The settings.
        crew: Prepares files; None for a new one.
        branch: The branch of the shared index to fetch; empty for the project's own.
    """
    from vector_index_mcp.codebase.remedies import REMEDIES
    from vector_index_mcp.codebase.service import Codebase
    from vector_index_mcp.indexing.mirroring.mirror import Shared
    from vector_index_mcp.serving.keys import remote_of

    return Codebase(
        folder_of(project, settings),
        settings.lancedb_uri,
        replace(
            _options_of(settings, _recipe_of(settings), REMEDIES),
            team=team_place(settings),
            remote=remote_of(settings),
            shared=Shared.of(settings.shared_index, branch),
            silence_of_service=_silence_of(CODEBASE, project),
        ),
        _embedder_of(settings, REMEDIES, is_code=True),
        _cache_of(settings),
        crew,
        settings.rerank_seconds,
    )


async def open_documents(
    configuration: Path, settings: Settings, head_start: HeadStart | None = None
) -> "Documents":
    """Load the service of the collections in the file `configuration`, in a thread.

    Raises:
        SettingsError: If that file is invalid.
    """
    assert head_start is None  # the folders are known only when the file is read
    return await anyio.to_thread.run_sync(load_documents, home_of(configuration), settings)


def home_of(configuration: Path) -> "Home":
    """The home of the collections in the file `configuration`."""
    from vector_index_mcp.documents import home

    found = home.home_of(configuration.stem, os.environ, Path.cwd())
    return replace(found, configuration=configuration)


def load_documents(home: "Home", settings: Settings) -> "Documents":
    """Load the service of the documents in `home`; it does not run yet. Takes 0.5 s (LanceDB).

    Raises:
        SettingsError: If the configuration is invalid.
    """
    from vector_index_mcp.documents import configuration
    from vector_index_mcp.documents.remedies import REMEDIES
    from vector_index_mcp.documents.service import Documents
    from vector_index_mcp.indexing.preparing.recipe import Recipe

    return Documents(
        home,
        configuration.read(home.configuration),
        replace(
            _options_of(settings, Recipe(settings.chunk_max_chars, is_prose=True), REMEDIES),
            silence_of_service=_silence_of(DOCUMENTS, home.configuration),
        ),
        _embedder_of(settings, REMEDIES),
        _cache_of(settings),
        _language_model_of(settings),
        allow_broad=settings.allow_broad_path,
    )


async def open_notes(
    home: Path, settings: Settings, head_start: HeadStart | None = None
) -> "Notes":
    """Load the service of the notes in the folder `home`, in a thread; it does not run yet."""
    assert head_start is None  # not needed, since notes are small
    return await anyio.to_thread.run_sync(load_notes, home, settings)


def load_notes(home: Path, settings: Settings) -> "Notes":
    """Load the service of the notes in the folder `home`; it does not run yet."""
    from vector_index_mcp.notes.remedies import REMEDIES
    from vector_index_mcp.notes.service import Notes

    folder = folder_of_notes(home)

    async def load_index() -> "LiveIndex":
        return await anyio.to_thread.run_sync(_index_of_notes, home, folder, settings)

    return Notes(home, folder, Retrying(load_index), REMEDIES)


def index_of_notes(home: Path, settings: Settings) -> "LiveIndex":
    """The index of the notes in `home`, not yet running."""
    return _index_of_notes(home, folder_of_notes(home), settings)


def folder_of_notes(home: Path) -> Path:
    """Return the folder for what a service knows about the notes in `home`."""
    name = _name_of(os.fsencode(home))
    return state_folder() / NOTES_STATE / name


def _index_of_notes(home: Path, folder: Path, settings: Settings) -> "LiveIndex":
    """The index of the notes in `home`, not yet running. Takes 0.5 s, since it imports LanceDB."""
    from vector_index_mcp.indexing.place import Place
    from vector_index_mcp.indexing.preparing.recipe import Recipe
    from vector_index_mcp.indexing.service import LiveIndex
    from vector_index_mcp.notes.layout import PROJECTS
    from vector_index_mcp.notes.limits import LARGEST_FILE_BYTES
    from vector_index_mcp.notes.remedies import REMEDIES

    projects = Folder(home / PROJECTS, reading=Reading(LARGEST_FILE_BYTES))
    return LiveIndex(
        [projects],
        Place(str(folder / "index"), owner=str(home)),
        _options_of(settings, Recipe(settings.chunk_max_chars, is_prose=True), REMEDIES),
        _embedder_of(settings, REMEDIES),
        _cache_of(settings),
    )


async def open_datasets(
    root: Path, settings: Settings, head_start: HeadStart | None = None
) -> "Datasets":
    """Load the service of the datasets in the folder `root`, in a thread; it does not run yet."""
    assert head_start is None  # not needed: the texts of datasets are prepared already
    return await anyio.to_thread.run_sync(load_datasets, root, settings)


def load_datasets(root: Path, settings: Settings) -> "Datasets":
    """Load the service of the datasets in the folder `root`; it does not run yet. Takes 0.5 s."""
    from vector_index_mcp.datasets.conversion import prepare
    from vector_index_mcp.datasets.models import Models
    from vector_index_mcp.datasets.registry import Registry
    from vector_index_mcp.datasets.remedies import REMEDIES
    from vector_index_mcp.datasets.service import Datasets
    from vector_index_mcp.datasets.workshop import Workshop

    name = _name_of(os.fsencode(root))
    cache = cache_folder(settings) / TABLES / name
    registry = Registry(root, root.parent, cache, prepare)

    def other(model: str) -> "Embedder":
        return _embedder_of(settings, REMEDIES, model)

    # Datasets have whole vectors, so queries must not be embedded with fewer dimensions.
    usual = settings.model_copy(update={"embedding_dimension": 0})
    models = Models(settings.embedding_model, _embedder_of(usual, REMEDIES), other)
    index_of = partial(index_of_texts, settings=settings)
    workshop = Workshop(root, index_of, allow_broad=settings.allow_broad_path)
    return Datasets(registry, models, workshop, REMEDIES)


def index_of_texts(order: "Order", root: Path, settings: Settings) -> "LiveIndex":
    """The index of the texts that become a dataset, not yet running.

    The same order leads to the same index, so interrupted work can be continued.

    Args:
        order: Says which texts to index, and how.
        root: The folder of all datasets, which is left out if it lies among the texts.
        settings: The settings for all that the order does not say.
    """
    from vector_index_mcp.datasets.remedies import REMEDIES
    from vector_index_mcp.indexing.place import Place
    from vector_index_mcp.indexing.preparing.recipe import Recipe
    from vector_index_mcp.indexing.service import LiveIndex

    changed = {
        "embedding_model": order.model or settings.embedding_model,
        "chunk_max_chars": order.chunk_chars or settings.chunk_max_chars,
    }
    own = {"embedding_url": ""} if order.model else {}  # a chosen model runs here, on no server
    chosen = settings.model_copy(update={**changed, **own, "embedding_dimension": 0})
    endings = tuple(order.endings)
    is_among = root != order.source and root.is_relative_to(order.source)
    left_out = (f"/{root.relative_to(order.source).as_posix()}/",) if is_among else ()
    known = repr((order.source, endings, left_out, *changed.values()))
    name = _name_of(known.encode("utf-8", "replace"))
    place = Place(str(cache_folder(settings) / MAKING / name), owner=str(order.source))
    mask = f"**/*.{{{','.join(endings)}}}" if len(endings) > 1 else f"**/*.{endings[0]}"
    reading = Reading(_LARGEST_TEXT_BYTES, skips_minified=False, converts=True)
    folder = Folder(order.source, selection=Selection(left_out, mask=mask), reading=reading)
    options = _options_of(chosen, Recipe(chosen.chunk_max_chars, is_prose=True), REMEDIES)
    embedder, cache = _embedder_of(chosen, REMEDIES), _cache_of(settings)
    return LiveIndex([folder], place, options, embedder, cache)


def _name_of(known: bytes) -> str:
    """The name of a folder of ours, from the bytes that identify its content."""
    return hashlib.sha256(known).hexdigest()[:_HASH_CHARS]


def _language_model_of(settings: Settings) -> "LanguageModel | None":
    from vector_index_mcp.documents.language_model import LanguageModel

    if not settings.llm_url:
        return None
    return LanguageModel(
        settings.llm_url, settings.llm_model, settings.llm_key, settings.llm_seconds
    )


def _silence_of(tool_set: str, place: Path) -> Callable[[], str]:
    """Return what asks the service of `place` and says why it is of no use; see `Options`."""

    def silence() -> str:
        try:
            endpoint = endpoint_of(tool_set, place)
        except ProjectError:  # without a runtime folder, nobody runs a service
            return ""
        return contact.silence(endpoint, contact.JOINING_SECONDS)

    return silence


def _options_of(settings: Settings, recipe: "Recipe", remedies: "Remedies") -> "Options":
    from vector_index_mcp.indexing.options import Options

    return Options(
        recipe=recipe,
        quiet_seconds=settings.debounce_quiet_ms / 1000,
        longest_seconds=settings.debounce_longest_ms / 1000,
        rescan_seconds=settings.rescan_seconds,
        state_folder=state_folder(),
        remedies=remedies,
    )


def _embedder_of(
    settings: Settings, remedies: "Remedies", other: str = "", *, is_code: bool = False
) -> "Embedder":
    """The embedder of the settings: a worker, or the server that they name.

    Args:
        settings: Name the model, and how to run it.
        remedies: What to do about an error.
        other: The name of another model; empty for that of the settings. It is not downloaded,
            since the user has not chosen it.
        is_code: Whether the texts are code, and not prose.
    """
    from vector_index_mcp.engine.models import wording
    from vector_index_mcp.engine.models.embed import WorkerEmbedder
    from vector_index_mcp.engine.models.model import full_name
    from vector_index_mcp.errors import Problem
    from vector_index_mcp.processes import children
    from vector_index_mcp.sharing.joining import Joining

    def remedy_of(problem: Problem) -> str:
        if other and problem in {Problem.MODEL_NOWHERE, Problem.USUAL_MODEL_NOWHERE}:
            return (
                f"get it with `hf download {full_name(other)}`, or start once with "
                f"VECTOR_INDEX_EMBEDDING_MODEL={other}"
            )
        return remedies.of(problem)

    idle_seconds = settings.worker_idle_minutes * _SECONDS_PER_MINUTE
    joining = Joining(idle_seconds, otherwise=children.start)

    async def start(module: str, *arguments: str, environment: Mapping[str, str]) -> "Worker":
        offline = {"HF_HUB_OFFLINE": "1"} if other else {}
        return await joining.start(module, *arguments, environment={**environment, **offline})

    by_server = settings.embedding_url and not other
    worker = WorkerEmbedder(
        "" if by_server else other or settings.embedding_model,
        settings.embedding_device,
        idle_seconds,
        dimension=0 if other else settings.embedding_dimension,
        reranker_name="" if other else settings.rerank_model,
        wording=wording.of_code(settings.embedding_model) if is_code else wording.WHOLE,
        start_worker=start,
        remedy_of=remedy_of,
    )
    if not by_server:
        return worker
    from vector_index_mcp.serving.embedding_server import server_embedder

    return server_embedder(settings, _cache_of(settings), worker, remedies.of)


def _cache_of(settings: Settings) -> "EmbeddingCache":
    from vector_index_mcp.engine.models.cache import EmbeddingCache

    return EmbeddingCache(cache_folder(settings), settings.embedding_cache_max_mb * 1_000_000)
