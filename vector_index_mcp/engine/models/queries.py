"""Embeds queries in this process, if the model is on this machine and `lean_query` knows it."""

import logging
from dataclasses import dataclass
from pathlib import Path

import anyio
import anyio.to_thread
import numpy as np

from vector_index_mcp.engine.models import lean_query
from vector_index_mcp.engine.models.model import model_on_this_machine
from vector_index_mcp.engine.models.model_folder import WEIGHTS
from vector_index_mcp.engine.models.wording import WHOLE, Wording
from vector_index_mcp.engine.types import ModelIdentity, Vector
from vector_index_mcp.errors import ModelNotFoundError

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Loaded:
    encoder: lean_query.QueryEncoder | None
    identity: ModelIdentity | None
    weights: Path
    stamp: tuple[int, ...]

    @property
    def is_current(self) -> bool:
        """Whether the mapped file of weights is unchanged.

        If it was truncated meanwhile, reading the mapping would kill this process (SIGBUS).
        """
        return self.encoder is None or _stamp_of(self.weights) == self.stamp


class Queries:
    """Embeds queries, one at a time."""

    def __init__(self, model_name: str, dimension: int = 0, wording: Wording = WHOLE) -> None:
        """Prepare; the model is loaded for the first query.

        Args:
            model_name: See `find_model`.
            dimension: See `find_model`.
            wording: Which part of a query the model gets to read.
        """
        self._model_name, self._dimension, self._wording = model_name, dimension, wording
        self._loaded: _Loaded | None = None
        self._asking = anyio.Lock()

    def forget(self) -> None:
        """Look for the model again when the next query comes."""
        self._loaded = None

    async def embed(self, text: str) -> tuple[Vector, ModelIdentity] | None:
        """Return a query's embedding and the model; None if only the worker can embed it."""
        async with self._asking:
            if self._loaded is None or not self._loaded.is_current:
                self._loaded = await anyio.to_thread.run_sync(
                    _load, self._model_name, self._dimension
                )
            loaded = self._loaded
            if loaded.encoder is None or loaded.identity is None:
                return None
            given = self._wording.given(text)
            vector = await anyio.to_thread.run_sync(_encoded, loaded.encoder, given)
            if vector is None:  # the model's files do not fit together: other texts would fail too
                self._loaded = _NOTHING
                return None
            return self._wording.turned(vector), self._wording.identity(loaded.identity)


def _encoded(encoder: lean_query.QueryEncoder, text: str) -> Vector | None:
    """Return the embedding of a query; None if the model's files do not fit together.

    Only embedding a text shows whether the config, the weights and the tokenizer fit together.
    """
    try:
        with np.errstate(all="ignore"):
            vector = encoder.encode(text)
    except Exception as error:  # noqa: BLE001  # numpy and tokenizers raise anything
        _log.warning(
            "the model's files do not fit together; the worker embeds queries instead: %s", error
        )
        return None
    if not np.isfinite(vector).all():
        _log.warning(
            "the model's vectors contain NaN or infinity; the worker embeds queries instead"
        )
        return None
    return vector


def _load(model_name: str, dimension: int) -> _Loaded:
    try:
        model = model_on_this_machine(model_name, dimension)
    except (ModelNotFoundError, OSError):  # the worker will report it
        model = None
    weights = model.folder / WEIGHTS if model is not None else Path()
    stamp = _stamp_of(weights)
    encoder = lean_query.load(model) if model is not None else None
    if model is None or encoder is None:
        _log.debug("queries are embedded by the worker")
        return _NOTHING
    return _Loaded(encoder, model.identity, weights, stamp)


def _stamp_of(path: Path) -> tuple[int, ...]:
    """Return the size, mtime and inode of a file; empty if there is none."""
    try:
        status = path.stat()
    except OSError:
        return ()
    return status.st_size, status.st_mtime_ns, status.st_ino


_NOTHING = _Loaded(None, None, Path(), ())
