"""Embeds single queries in this process, in 10 ms, with numpy and without torch.

Most queries are a dozen words. They should not have to wait until a process has loaded a library,
nor keep its memory in use. The result is what sentence-transformers computes, in float32
(tests/contract compares them).

`load` returns None for models that `bert` does not know; the worker then embeds the query.
"""

import math

import numpy as np

from vector_index_mcp.engine.models import bert
from vector_index_mcp.engine.models.bert import Array, Bert, Layer, Pair
from vector_index_mcp.engine.models.model import Model
from vector_index_mcp.engine.types import Vector

_LEAST_NORM = 1e-12
# erf to 1.5e-7: Abramowitz, Stegun, Handbook of Mathematical Functions (1964), formula 7.1.26.
_ERF_P = 0.3275911
_ERF = (1.061405429, -1.453152027, 1.421413741, -0.284496736, 0.254829592)


class QueryEncoder:
    """Embeds one text at a time; any thread may use it."""

    def __init__(self, model: Bert) -> None:
        """Prepare to compute `model`."""
        self._bert = model

    def encode(self, text: str) -> Vector:
        """Return the embedding of a query: float32, unit length."""
        model = self._bert
        [ids] = model.tokens_of([text], model.prompts.query)
        hidden = self._normed(model.words[ids] + model.places[: len(ids)], model.norm)
        for layer in model.layers:
            hidden = self._through(layer, hidden)
        pooled = hidden[0] if model.pools_first else hidden.mean(axis=0)
        pooled = pooled[: model.dimension]
        length = max(float(np.linalg.norm(pooled)), _LEAST_NORM)
        return np.asarray(pooled / length, dtype="<f4")

    def _through(self, layer: Layer, hidden: Array) -> Array:
        tokens, width = hidden.shape

        def by_head(pair: Pair) -> Array:
            found = _linear(hidden, pair)
            return found.reshape(tokens, self._bert.heads, -1).transpose(1, 0, 2)

        query, key, value = by_head(layer.query), by_head(layer.key), by_head(layer.value)
        scores = query @ key.transpose(0, 2, 1) / math.sqrt(query.shape[-1])
        weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
        weights /= weights.sum(axis=-1, keepdims=True)
        attended = _linear(
            (weights @ value).transpose(1, 0, 2).reshape(tokens, width), layer.attended
        )
        hidden = self._normed(hidden + attended, layer.attended_norm)
        inner = _gelu(_linear(hidden, layer.inner))
        return self._normed(hidden + _linear(inner, layer.outer), layer.outer_norm)

    def _normed(self, hidden: Array, pair: Pair) -> Array:
        centred = hidden - hidden.mean(axis=-1, keepdims=True)
        variance = (centred * centred).mean(axis=-1, keepdims=True)
        return np.asarray(centred / np.sqrt(variance + self._bert.epsilon) * pair[0] + pair[1])


def _linear(hidden: Array, pair: Pair) -> Array:
    return np.asarray(hidden @ pair[0].T + pair[1])


def _gelu(x: Array) -> Array:
    z = np.abs(x) / math.sqrt(2)
    t = 1 / (1 + _ERF_P * z)
    series = np.zeros_like(t)
    for coefficient in _ERF:
        series = (series + coefficient) * t
    erf = np.sign(x) * (1 - series * np.exp(-z * z))
    return np.asarray(x * 0.5 * (1 + erf), dtype=np.float32)


def load(model: Model) -> QueryEncoder | None:
    """Return an encoder of queries for `model`; None if `bert` does not know its kind."""
    return bert.made_of(model, QueryEncoder)
