"""The REST interface: its endpoints translate between HTTP and the service.

The contract fixes paths, names, defaults and texts. The OpenAPI description comes from the models
that check the requests, so it cannot differ from them. Requests from web pages are refused before
they come here.
"""

import os
import stat
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import anyio
import anyio.to_thread
from fastapi import APIRouter, Depends, FastAPI, Request

from vector_index_mcp.documents import rest_models as models
from vector_index_mcp.documents import text
from vector_index_mcp.documents.limits import MOST_TEXTS, line, whole
from vector_index_mcp.documents.rest_errors import Refused, answers, install
from vector_index_mcp.documents.wire import Skipped
from vector_index_mcp.engine.batched import batched
from vector_index_mcp.errors import ModelNotFoundError, SettingsError, UnknownError

if TYPE_CHECKING:  # the service imports lancedb, which takes a second
    from vector_index_mcp.documents.service import Documents

GetService = Callable[[], Awaitable["Documents"]]

VERSION = "1.0.0"
_PATIENCE_SECONDS = 0.5  # /health waits this long for a service that is starting
_MOST_OPERATIONS = 32  # at most this many operations may run or wait
_TEXTS_AT_ONCE = 32  # a small batch, so that other embedding need not wait long
_UNKNOWN_CONTEXT = "there is no context for {}; GET /contexts lists the contexts"


def application(get_service: GetService, *, has_token: bool = False) -> FastAPI:
    """Return the REST interface of the documents as an ASGI application.

    Args:
        get_service: Waits for the running service and returns it.
        has_token: Whether the description says that requests must carry a token.
    """
    app = FastAPI(
        title="qmd",
        version=VERSION,
        description="Finds and reads the user's documents, by words and by meaning.",
        docs_url=None,  # these pages would load scripts from other servers
        redoc_url=None,
        redirect_slashes=False,
    )
    for router in (_documents, _collections, _contexts, _state):
        app.include_router(router)
    app.state.get_service = get_service
    install(app)
    describe = app.openapi

    def described() -> dict[str, Any]:
        return _corrected(describe(), has_token=has_token)

    app.openapi = described  # type: ignore[method-assign]
    return app


def _corrected(description: dict[str, Any], *, has_token: bool) -> dict[str, Any]:
    """Return the description without FastAPI's own error answers, and with the token if needed."""
    for path in description["paths"].values():
        for endpoint in path.values():
            endpoint["responses"].pop("422", None)
    components = description["components"]
    for name in ("HTTPValidationError", "ValidationError"):
        components["schemas"].pop(name, None)
    if has_token:
        components["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
        description["security"] = [{"token": []}]
    return description


async def _service(request: Request) -> "Documents":
    documents: Documents = await request.app.state.get_service()
    return documents


_Get = Annotated[Any, Depends(_service)]
_documents, _collections, _contexts, _state = (
    APIRouter(tags=[tag]) for tag in ("documents", "collections", "contexts", "state")
)

# -- documents -------------------------------------------------------------------------------


async def _search(
    documents: "Documents", asked: models.SearchRequest, mode: str
) -> models.SearchAnswer:
    from vector_index_mcp.documents import calls, rendering

    found = await rendering.answer_to(documents, asked, mode)
    items = rendering.items_of(found)
    content = text.of_results_in_rest(items, asked.query)
    if found.note:  # the contract has no place of its own for it
        content += f"\n\n{found.note}."
    if not asked.detailed:
        return models.SearchAnswer(results=items, content=content)
    hits = [await calls.hit_of(documents, found, each) for each in found.found]
    return models.SearchAnswer(results=items, content=content, hits=hits, note=found.note)


@_documents.post("/search", response_model_exclude_unset=True, responses=answers(body=True))
async def search(documents: _Get, asked: models.SearchRequest) -> models.SearchAnswer:
    """Find documents by their words."""
    return await _search(documents, asked, "search")


@_documents.post("/vsearch", response_model_exclude_unset=True, responses=answers(body=True))
async def vsearch(documents: _Get, asked: models.MeaningRequest) -> models.SearchAnswer:
    """Find documents by meaning."""
    return await _search(documents, asked, "vsearch")


@_documents.post("/query", response_model_exclude_unset=True, responses=answers(body=True))
async def query(documents: _Get, asked: models.SearchRequest) -> models.SearchAnswer:
    """Find documents by words and by meaning together."""
    return await _search(documents, asked, "query")


@_documents.post("/get", responses=answers(404, body=True))
async def get(documents: _Get, asked: models.GetRequest) -> models.GetAnswer:
    """Read one document, or a part of it."""
    from vector_index_mcp.documents import rendering, retrieval

    part = retrieval.Part(line(asked.from_line), line(asked.max_lines), asked.line_numbers)
    found = await retrieval.get(documents, asked.file, part)
    if isinstance(found, retrieval.Missing):
        raise UnknownError(found.sentence)
    return models.GetAnswer(document=rendering.document_of(found))


@_documents.post("/multi_get", responses=answers(body=True))
async def multi_get(documents: _Get, asked: models.MultiGetRequest) -> models.MultiGetAnswer:
    """Read several documents."""
    from vector_index_mcp.documents import rendering, retrieval

    part = retrieval.Part(None, line(asked.max_lines), asked.line_numbers)
    many = await retrieval.multi_get(
        documents, asked.pattern, part, whole(asked.max_bytes), is_rest=True
    )
    found = [rendering.part_of(each, is_rest=True) for each in many.documents]
    problems = [Skipped(text=error) for error in many.errors]
    return models.MultiGetAnswer(results=[*problems, *found])


@_documents.post("/embed", responses=answers(body=True))
async def embed(documents: _Get, asked: models.EmbedRequest) -> models.EmbedAnswer:
    """Embed texts with the model that embeds the documents."""
    if not asked.texts:
        raise Refused(400, "Empty texts list")
    if len(asked.texts) > MOST_TEXTS:
        raise Refused(413, f"Too many texts ({len(asked.texts)} > {MOST_TEXTS})")
    _check_queue(documents)
    embeddings: list[list[float]] = []
    async with documents.operations.doing("embed texts"):
        try:
            for texts in batched(asked.texts, _TEXTS_AT_ONCE):
                vectors = await documents.embedder.embed(texts)
                embeddings += vectors.tolist()
        except ModelNotFoundError as error:
            raise Refused(503, "Model not loaded") from error
    return models.EmbedAnswer(embeddings=embeddings)


# -- collections -----------------------------------------------------------------------------


@_collections.post("/collections/add", responses=answers(body=True))
async def add_collection(
    documents: _Get, asked: models.AddCollectionRequest
) -> models.CollectionAdded:
    """Add a folder of documents, and index it."""
    from vector_index_mcp.documents.configuration import Collection

    path = await anyio.to_thread.run_sync(_folder, asked.path)
    _check_queue(documents)
    count = await documents.add(Collection(asked.name, path, asked.glob_pattern))
    return models.CollectionAdded(
        name=asked.name,
        path=str(path),
        documents=count,
        content=text.of_added(asked.name, count),
    )


@_collections.get("/collections", responses=answers())
async def list_collections(documents: _Get) -> models.CollectionsAnswer:
    """List all collections."""
    from vector_index_mcp.documents import rendering

    status = rendering.status_of(await documents.look())
    found = [models.CollectionAnswer(**each.model_dump()) for each in status.collections]
    counts = {each.name: each.documents for each in found}
    return models.CollectionsAnswer(collections=found, content=text.of_collections(counts))


@_collections.get("/collections/{name}", responses=answers(404))
async def show_collection(documents: _Get, name: str) -> models.CollectionInDetail:
    """Show one collection."""
    from vector_index_mcp.documents import rendering

    documents.configuration.named(name)
    status = rendering.status_of(await documents.look())
    for each in status.collections:
        if each.name == name:
            return models.CollectionInDetail(**each.model_dump(), last_indexed=each.last_updated)
    raise UnknownError(f"Collection not found: {name}")  # it was removed meanwhile


@_collections.delete("/collections/{name}", responses=answers(404, body=True))
async def remove_collection(documents: _Get, name: str) -> models.CollectionRemoved:
    """Remove a collection from the index; its files stay."""
    documents.configuration.named(name)
    _check_queue(documents)
    await documents.remove(name)
    return models.CollectionRemoved(name=name, content=text.of_removed(name))


@_collections.put("/collections/{name}", responses=answers(404, body=True))
async def rename_collection(
    documents: _Get, name: str, asked: models.RenameRequest
) -> models.CollectionRenamed:
    """Rename a collection."""
    documents.configuration.named(name)
    _check_queue(documents)
    await documents.rename(name, asked.new_name)
    content = text.of_renamed(name, asked.new_name)
    return models.CollectionRenamed(old_name=name, new_name=asked.new_name, content=content)


@_collections.post("/index", responses=answers(body=True))
async def index(documents: _Get) -> models.Indexed:
    """Bring all collections up to date, and wait until that is done."""
    _check_queue(documents)
    updates = await documents.update(name="index")
    total = sum(each.new + each.updated + each.unchanged for each in updates)
    content = await _with_problems(documents, text.of_indexed(len(updates), total))
    return models.Indexed(collections=len(updates), total_documents=total, content=content)


@_collections.post("/update", responses=answers(body=True))
async def update(documents: _Get, asked: models.UpdateRequest | None = None) -> models.Updated:
    """Bring all collections up to date; with `pull`, run `git pull` first."""
    _check_queue(documents)
    updates = await documents.update(pull=asked is not None and asked.pull)
    pulled = {each.collection.name: each.pulled for each in updates if each.pulled}
    content = await _with_problems(documents, text.of_updated(len(updates), pulled))
    return models.Updated(collections=len(updates), content=content)


async def _with_problems(documents: "Documents", content: str) -> str:
    """Return a message, and what could not be read; the contract has no field for it."""
    from vector_index_mcp.documents.reach import out_of_reach

    problems = await out_of_reach(documents)
    return f"{content}\n\n{problems}." if problems else content


def _check_queue(documents: "Documents") -> None:
    """Refuse the request if too many operations wait already."""
    if len(documents.operations.listed) >= _MOST_OPERATIONS:
        raise Refused(503, f"{_MOST_OPERATIONS} operations wait already; try again later")


def _folder(written: str) -> Path:
    """Return the folder at an absolute path, or at one with `~`; clients have no working folder."""
    try:
        path = Path(os.path.normpath(Path(written).expanduser()))
        is_folder = path.is_absolute() and stat.S_ISDIR(path.stat().st_mode)
    except (OSError, RuntimeError, ValueError):  # no such user, or not a valid path
        is_folder = False
    if not is_folder:
        raise SettingsError(
            f"{written[:300]!r} is not a folder; give the absolute path of an existing folder"
        )
    return path


# -- contexts --------------------------------------------------------------------------------


@_contexts.post("/contexts/add", responses=answers(404, body=True))
async def add_context(documents: _Get, asked: models.AddContextRequest) -> models.ContextAdded:
    """Set the context of the documents below a path."""
    from vector_index_mcp.documents.contexts import target_of

    target = target_of(asked.path, documents.configuration)
    await documents.set_context(target.collection, target.prefix, asked.text)
    return models.ContextAdded(path=asked.path, content=text.of_context_added(asked.path))


@_contexts.get("/contexts", responses=answers())
async def list_contexts(documents: _Get) -> models.ContextsAnswer:
    """List all contexts, with the paths that remove them."""
    from vector_index_mcp.documents.contexts import listed, path_of

    configuration = documents.configuration
    found = [
        models.ContextAnswer(path=path_of(each, configuration), text=each.text)
        for each in listed(configuration)
    ]
    return models.ContextsAnswer(contexts=found)


@_contexts.delete("/contexts/{path:path}", responses=answers(404, body=True))
async def remove_context(documents: _Get, path: str) -> models.ContextRemoved:
    """Remove the context of the documents below a path."""
    from vector_index_mcp.documents.contexts import target_of

    configuration = documents.configuration
    try:
        target = target_of(path, configuration)
    except SettingsError:
        try:  # the slash that the path begins with was taken for the one after /contexts
            target = target_of(f"/{path}" if path else "", configuration)
        except SettingsError as error:
            raise UnknownError(_UNKNOWN_CONTEXT.format(path[:300])) from error
    if not target.collection and not configuration.global_context:
        raise UnknownError(_UNKNOWN_CONTEXT.format(path))
    await documents.remove_context(target.collection, target.prefix)
    return models.ContextRemoved(path=path)


# -- state -----------------------------------------------------------------------------------


@_state.get("/status", responses=answers())
async def status(documents: _Get) -> models.StatusAnswer:
    """The state of the index, and the operations under way."""
    from vector_index_mcp.documents import rendering

    state = await documents.look()
    found, problems = rendering.status_of(state), rendering.problems_of(state)
    operations = [
        models.OperationAnswer(name=each.name, seconds=round(each.seconds, 3))
        for each in documents.operations.listed
    ]
    return models.StatusAnswer(
        total_documents=found.total_documents,
        needs_embedding=found.needs_embedding,
        has_vector_index=found.has_vector_index,
        collections=[models.CollectionInStatus(**c.model_dump()) for c in found.collections],
        operations=operations,
        content=text.of_status(found, problems),
    )


@_state.get("/health", responses=answers())
async def health(request: Request) -> models.Health:
    """Whether the server can answer requests. Answers within half a second."""
    documents: Documents | None = None
    with anyio.move_on_after(_PATIENCE_SECONDS):
        documents = await request.app.state.get_service()
    if documents is None:
        return models.Health(status="unhealthy", model_loaded=False)
    is_healthy = not (documents.problem or documents.index.state.error)
    return models.Health(
        status="healthy" if is_healthy else "unhealthy",
        model_loaded=documents.embedder.state == "ready",
    )
