"""The embedding server that the settings name: its key, and what is kept from it."""

import re
from collections.abc import Callable
from functools import partial
from pathlib import Path

from vector_index_mcp.engine.cache import EmbeddingCache
from vector_index_mcp.engine.embedder import Embedder
from vector_index_mcp.engine.probed_model import Server
from vector_index_mcp.engine.remote import ServerEmbedder
from vector_index_mcp.errors import Problem, SettingsError
from vector_index_mcp.files.secrets import masked
from vector_index_mcp.settings import Settings, host_of, is_local

_LONGEST_KEY_BYTES = 10_000
_KEY = re.compile(rb"[!-~]+")


def server_embedder(
    settings: Settings,
    cache: EmbeddingCache,
    reranker: Embedder,
    remedy_of: Callable[[Problem], str],
) -> ServerEmbedder:
    """What embeds with the server of the settings.

    Args:
        settings: Which one.
        cache: Nobody else may use it, since it is closed at the end.
        reranker: Judges how well texts answer a query.
        remedy_of: What to do about a problem with the server.
    """
    url = settings.embedding_url
    model, dimension = settings.embedding_model, settings.embedding_dimension
    return ServerEmbedder(
        Server(url, host_of(url), is_local(url), model, dimension),
        cache,
        reranker,
        key_of=partial(_key_of, settings),
        mask=lambda text: masked(text)[0],
        remedy_of=remedy_of,
    )


def _key_of(settings: Settings) -> str:
    """The key of the server.

    Raises:
        OSError: If its file cannot be read.
        SettingsError: If that holds no key.
    """
    if not settings.embedding_key_file:
        return settings.embedding_key
    path = Path(settings.embedding_key_file).expanduser()
    if not path.is_file():  # a pipe would keep us waiting
        raise SettingsError(f"{path} is not a file")
    with path.open("rb") as file:
        key = file.read(_LONGEST_KEY_BYTES + 1).strip()
    if len(key) > _LONGEST_KEY_BYTES or not _KEY.fullmatch(key):
        raise SettingsError(f"{path} does not hold a key alone")
    return key.decode()
