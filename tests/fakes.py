"""Stand-ins for what tests cannot have for real: an embedding model."""

import functools
import hashlib
from contextlib import asynccontextmanager

import anyio
import numpy as np

from vector_index_mcp.engine.text.words import words
from vector_index_mcp.engine.types import ModelIdentity
from vector_index_mcp.errors import EmbeddingError, ModelNotFoundError

SYNONYMS = {"automobile": "car", "vehicle": "car", "purchase": "buy"}
"""What this model knows and full-text search does not."""


class FakeEmbedder:
    """An `Embedder` whose vectors are sums of their words' vectors, so shared words are near.

    Attributes that tests set: `absent` (why there is no model), `poison` (no text that holds it
    can be embedded), `failing_calls` (numbers of the calls to `embed` that fail, from 1).
    """

    def __init__(self, name="fake", dimension=64):
        digest = hashlib.sha256(name.encode()).hexdigest()
        self.state = "off"
        self.reason = ""
        self.precision = "float32"
        self.pid = None
        self.sharers = 0
        self.notice = ""
        self.absent = ""
        self.poison = None
        self.failing_calls = set()
        self.is_at_hand = False
        self.calls = 0
        self.texts = []
        """Every text embedded so far but queries."""
        self.queries = []
        self._identity = ModelIdentity(name, digest, dimension)
        self._changed = anyio.Event()
        self._gate = anyio.Event()
        self._gate.set()
        self._holds_queries = True
        self._loaded = True
        self.is_running = False

    @asynccontextmanager
    async def running(self):
        self.is_running = True
        try:
            yield self
        finally:
            self.is_running = False

    def start(self):
        if self.state == "off":
            if self.absent:
                self._set_state("unavailable", self.absent)
            else:
                self._set_state("ready" if self._loaded else "loading")

    async def query_at_hand(self, text):
        return None  # as where only the worker knows the model

    def retry(self):
        if self.state == "unavailable":
            self._set_state("off")

    def keep_loading(self):
        """From now on the model is not ready, until `finish_loading`."""
        self._loaded = False

    def finish_loading(self):
        self._loaded = True
        if self.state == "loading":
            self._set_state("ready")

    def fail_loading(self, reason):
        """There is no model, as turns out now."""
        self.absent = reason
        self._set_state("unavailable", reason)

    def hold(self, *, queries=True):
        """From now on calls to `embed` wait, until `release`; those for queries if told so."""
        self._gate, self._holds_queries = anyio.Event(), queries

    def release(self):
        self._gate.set()

    async def identity_at_hand(self):
        return self._identity if self.is_at_hand else None

    async def identity(self):
        self.start()
        self._raise_if_unavailable()
        return self._identity

    has_reranker = False
    reranker_state = "off"
    reranker_reason = ""

    def start_reranker(self):
        if self.reranker_state == "off":
            self.reranker_state = "loading"

    async def embed(self, texts, *, are_queries=False):
        self.calls += 1
        call = self.calls
        self.start()
        while self.state != "ready":
            self._raise_if_unavailable()
            await self._changed.wait()
        if self._holds_queries or not are_queries:
            await self._gate.wait()
        if call in self.failing_calls:
            raise EmbeddingError(f"call {call} was told to fail")
        if self.poison is not None and any(self.poison in text for text in texts):
            raise EmbeddingError("this text cannot be embedded")
        (self.queries if are_queries else self.texts).extend(texts)
        dimension = self._identity.dimension
        vectors = [vector_of(text, self._identity.name, dimension) for text in texts]
        return np.array(vectors, dtype="<f4").reshape(len(texts), dimension)

    def _raise_if_unavailable(self):
        if self.state == "unavailable":
            raise ModelNotFoundError(self.reason)

    def _set_state(self, state, reason=""):
        self.state, self.reason = state, reason
        self._changed.set()
        self._changed = anyio.Event()


@functools.cache
def _word_vector(word, dimension):
    digest = hashlib.sha256(word.encode()).digest()
    return np.random.default_rng(int.from_bytes(digest[:8], "big")).normal(size=dimension)


def vector_of(text, seed, dimension):
    total = np.zeros(dimension)
    for word in words(text) or [""]:
        meaning = SYNONYMS.get(word, word)
        total += _word_vector(f"{seed} {meaning}", dimension)
    return total / np.linalg.norm(total)
