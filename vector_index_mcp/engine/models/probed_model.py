"""Recognises the model of a server by its vector of one known text, the probe.

Such a server states nothing about its model but a name, and many servers answer to any name with
the model that they have loaded.
"""

import hashlib
from dataclasses import dataclass

import numpy as np

from vector_index_mcp.engine.models.cache import EmbeddingCache
from vector_index_mcp.engine.models.model import identity_of
from vector_index_mcp.engine.types import ModelIdentity, Vector
from vector_index_mcp.errors import Problem, ServerError

PROBE = "where is the configuration of the server read?"
_PROBE_HASH = hashlib.sha256(PROBE.encode()).hexdigest()
# The cosine of two vectors of the probe by the same model. Between bfloat16 and float32 it is
# 0.9999.
_LEAST_COSINE = 0.999
_LEAST_COSINE_BESIDE_OTHERS = 0.98  # some servers are less exact if a request has several texts
_DECIMALS = 2


@dataclass(frozen=True, slots=True)
class Server:
    """The address of a server and the model that it is asked for."""

    url: str
    """The part of the address before `/embeddings`."""
    host: str
    is_local: bool
    """Whether the texts stay on this machine."""
    model: str
    """The model's name there."""
    dimension: int = 0
    """How many of the first numbers of its vectors are used; 0 for all."""


class ProbedModel:
    """The model of a server, as far as it is known."""

    def __init__(self, server: Server, cache: EmbeddingCache) -> None:
        """Begin without knowing the model.

        Args:
            server: The server.
            cache: Keeps the first vector of the probe. So a slightly different vector after a
                restart is not taken for another model.
        """
        self.identity: ModelIdentity | None = None
        self._server, self._cache = server, cache
        self._probe: Vector | None = None

    @property
    def own_dimension(self) -> int:
        """The length of its vectors; 0 if that is not known."""
        return len(self._probe) if self._probe is not None else 0

    def made(self, probe: Vector) -> bool:
        """Return whether this model made `probe`, a vector of the probe alone."""
        return self._is_like(probe, _LEAST_COSINE)

    def made_beside_others(self, probe: Vector) -> bool:
        """Return whether this model may have made `probe` in a request with other texts."""
        return self._is_like(probe, _LEAST_COSINE_BESIDE_OTHERS)

    def _is_like(self, probe: Vector, least: float) -> bool:
        return self._probe is not None and _are_alike(probe, self._probe, least)

    def learn(self, probe: Vector) -> None:
        """Take on the model that made `probe`, if it is another one than before. Blocks.

        Raises:
            ServerError: If its vectors are shorter than wanted.
        """
        wanted = self._server.dimension
        if len(probe) < wanted:
            words = f"makes vectors of {len(probe)} numbers, and {wanted} are wanted"
            raise ServerError(words, Problem.MODEL_TOO_SHORT)
        if not self.made(probe):
            first = self._remembered(probe)
            self._probe, self.identity = first, self._identity_by(first)

    def _remembered(self, probe: Vector) -> Vector:
        """Return the first vector of the probe that this model made; it identifies the model."""
        server = self._server
        digest = hashlib.sha256(f"probe\0{server.url}\0{server.model}".encode()).hexdigest()
        place = ModelIdentity(server.model, digest, len(probe))
        first = self._cache.get(place, [_PROBE_HASH]).get(_PROBE_HASH)
        if first is not None and _are_alike(first, probe, _LEAST_COSINE):
            return first
        self._cache.put(place, {_PROBE_HASH: probe})
        return probe

    def _identity_by(self, probe: Vector) -> ModelIdentity:
        server = self._server
        rounded = (np.round(probe, _DECIMALS) + 0.0).astype("<f4")  # no -0.0
        known = f"{server.url}\0{server.model}\0".encode() + rounded.tobytes()
        digest = hashlib.sha256(known).hexdigest()
        return identity_of(server.model, digest, len(probe), server.dimension)


def _are_alike(one: Vector, other: Vector, least: float) -> bool:
    return len(one) == len(other) and float(one @ other) >= least
