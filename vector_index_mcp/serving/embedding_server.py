"""Makes an embedder of the embedding server that the settings name."""

from collections.abc import Callable
from functools import partial

from vector_index_mcp.engine.models.cache import EmbeddingCache
from vector_index_mcp.engine.models.embedder import Embedder
from vector_index_mcp.engine.models.probed_model import Server
from vector_index_mcp.engine.models.remote import ServerEmbedder
from vector_index_mcp.errors import Problem
from vector_index_mcp.files.secrets import masked
from vector_index_mcp.serving.keys import key_of
from vector_index_mcp.settings import Settings, host_of, is_local


def server_embedder(
    settings: Settings,
    cache: EmbeddingCache,
    reranker: Embedder,
    remedy_of: Callable[[Problem], str],
) -> ServerEmbedder:
    """The embedder that uses the server of the settings; it masks credentials in all texts.

    Args:
        settings: Name the server and its model.
        cache: A cache of its own, since the embedder closes it at the end.
        reranker: Judges how well texts answer a query.
        remedy_of: Returns what to do about a problem with the server.
    """
    url = settings.embedding_url
    model, dimension = settings.embedding_model, settings.embedding_dimension
    return ServerEmbedder(
        Server(url, host_of(url), is_local(url), model, dimension),
        cache,
        reranker,
        key_of=partial(key_of, settings.embedding_key, settings.embedding_key_file),
        mask=lambda text: masked(text)[0],
        remedy_of=remedy_of,
    )
