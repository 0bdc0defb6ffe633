"""Which model a server has, by what it makes of one text, the probe.

Such a server says nothing about its model but a name, and many answer any name with the model
they have loaded.
"""

import hashlib
from dataclasses import dataclass

import numpy as np

from vector_index_mcp.engine.cache import EmbeddingCache
from vector_index_mcp.engine.model import identity_of
from vector_index_mcp.engine.types import ModelIdentity, Vector
from vector_index_mcp.errors import Problem, ServerError

PROBE = "where is the configuration of the server read?"
_PROBE_HASH = hashlib.sha256(PROBE.encode()).hexdigest()
# Of two vectors of the probe, if one model made them: of bfloat16 and float32 it is 0.9999.
_LEAST_COSINE = 0.999
_LEAST_COSINE_BESIDE_OTHERS = 0.98  # some servers compute texts that come together more roughly
_DECIMALS = 2


@dataclass(frozen=True, slots=True)
class Server:
    """Where it is, and what it is asked for."""

    url: str
    """Up to what stands before `/embeddings`."""
    host: str
    is_local: bool
    """Whether what it is sent stays on this machine."""
    model: str
    """The model's name there."""
    dimension: int = 0
    """How many of the first numbers of its vectors are used; 0 for all."""


class ProbedModel:
    """The model that a server has, as far as is known."""

    def __init__(self, server: Server, cache: EmbeddingCache) -> None:
        """Nothing is known of it yet.

        Args:
            server: Which one.
            cache: Remembers the probe, so that noise in it makes no other model after a restart.
        """
        self.identity: ModelIdentity | None = None
        self._server, self._cache = server, cache
        self._probe: Vector | None = None

    @property
    def own_dimension(self) -> int:
        """The length of its vectors; 0 if that is not known."""
        return len(self._probe) if self._probe is not None else 0

    def made(self, probe: Vector) -> bool:
        """Whether this model has made a vector of the probe alone."""
        return self._is_like(probe, _LEAST_COSINE)

    def made_beside_others(self, probe: Vector) -> bool:
        """Whether it can have made one of the probe among other texts."""
        return self._is_like(probe, _LEAST_COSINE_BESIDE_OTHERS)

    def _is_like(self, probe: Vector, least: float) -> bool:
        return self._probe is not None and _are_alike(probe, self._probe, least)

    def learn(self, probe: Vector) -> None:
        """Know it by its vector of the probe, if it is another one than before. Blocks.

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
        """The probe as this model made it the first time, which names the model for ever."""
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
