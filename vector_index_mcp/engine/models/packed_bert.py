"""Computes a BERT for many texts at once on a CPU, with torch alone.

The vectors are those of sentence-transformers (tests/contract compares them), made faster and in
less memory: texts are concatenated instead of padded, and transformers is not imported.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np
import torch
from torch.nn import functional

from vector_index_mcp.engine.models import bert
from vector_index_mcp.engine.models.bert import Bert, Layer, Pair
from vector_index_mcp.engine.models.model import Model
from vector_index_mcp.engine.types import Vectors

# The most tokens of a batch. A token takes 20 kB while it is computed. Measured with two threads
# (AVX2): twice as many tokens are no faster and need 382 MB instead of 317; half as many make 0.9
# times the chunks a second.
_MOST_TOKENS = 1_024

_Linear = Callable[[torch.Tensor], torch.Tensor]
_Norm = tuple[torch.Tensor, torch.Tensor]


@dataclass(frozen=True, slots=True)
class _Computed:
    """The operations of one layer."""

    together: _Linear
    """Query, key and value of each token, side by side."""
    attended: _Linear
    attended_norm: _Norm
    inner: _Linear
    outer: _Linear
    outer_norm: _Norm


class PackedBert:
    """Embeds texts in one precision."""

    device = "cpu"

    def __init__(self, model: Bert, precision: str = "float32") -> None:
        """Convert the weights.

        Args:
            model: The model to compute.
            precision: The number type's name in torch, such as `bfloat16`.
        """
        self._bert = model
        self._kind = getattr(torch, precision)
        self._words, self._places = torch.from_numpy(model.words), torch.from_numpy(model.places)
        self._norm = self._tensors(model.norm)
        self._layers = [self._computed(layer) for layer in model.layers]

    def in_precision(self, precision: str) -> "PackedBert":
        """Return the same model in another precision."""
        return PackedBert(self._bert, precision)

    def encode(self, texts: Sequence[str], *, are_queries: bool = False) -> Vectors:
        """Embed `texts`: float32 rows in their order, not normalized."""
        model = self._bert
        prompt = model.prompts.query if are_queries else model.prompts.document
        tokens = model.tokens_of(texts, prompt)
        found = np.empty((len(texts), model.dimension), dtype="<f4")
        with torch.inference_mode():
            for batch in _batches(tokens):
                vectors = self._pooled([tokens[number] for number in batch])
                found[batch] = vectors[:, : model.dimension].numpy()
        return found

    def _pooled(self, texts: list[list[int]]) -> torch.Tensor:
        """Return one vector for each text, given as token ids."""
        lengths = [len(text) for text in texts]
        ids = torch.tensor([token for text in texts for token in text])
        places = torch.cat([torch.arange(length) for length in lengths])
        hidden = self._normed((self._words[ids] + self._places[places]).to(self._kind), self._norm)
        for layer in self._layers:
            seen = self._seen(layer.together(hidden), lengths)
            hidden = self._normed(layer.attended(seen).add_(hidden), layer.attended_norm)
            inner = functional.gelu(layer.inner(hidden))
            hidden = self._normed(layer.outer(inner).add_(hidden), layer.outer_norm)
        parts = torch.split(hidden.float(), lengths)
        is_first = self._bert.pools_first
        return torch.stack([part[0] if is_first else part.mean(0) for part in parts])

    def _seen(self, together: torch.Tensor, lengths: list[int]) -> torch.Tensor:
        """Return the attention within each text; texts of the same length are one computation."""
        heads, width = self._bert.heads, together.shape[1] // 3
        found = torch.empty((len(together), width), dtype=together.dtype)
        start = 0
        for length, same in groupby(lengths):
            texts = len(list(same))
            end = start + length * texts
            parts = together[start:end].view(texts, length, 3, heads, width // heads)
            query, key, value = parts.permute(2, 0, 3, 1, 4)
            seen = functional.scaled_dot_product_attention(query, key, value)
            found[start:end] = seen.transpose(1, 2).reshape(end - start, width)
            start = end
        return found

    def _normed(self, hidden: torch.Tensor, norm: _Norm) -> torch.Tensor:
        return functional.layer_norm(hidden, hidden.shape[1:], *norm, self._bert.epsilon)

    def _computed(self, layer: Layer) -> _Computed:
        pairs = (layer.query, layer.key, layer.value)
        weights, biases = (np.concatenate(arrays) for arrays in zip(*pairs, strict=True))
        return _Computed(
            together=self._linear((weights, biases)),
            attended=self._linear(layer.attended),
            attended_norm=self._tensors(layer.attended_norm),
            inner=self._linear(layer.inner),
            outer=self._linear(layer.outer),
            outer_norm=self._tensors(layer.outer_norm),
        )

    def _linear(self, pair: Pair) -> _Linear:
        weight, bias = self._tensors(pair)
        return lambda hidden: functional.linear(hidden, weight, bias)

    def _tensors(self, pair: Pair) -> _Norm:
        weight, bias = (torch.from_numpy(array).to(self._kind) for array in pair)
        return weight, bias


def _batches(texts: Sequence[Sequence[int]]) -> Iterator[list[int]]:
    """Yield the indices of `texts`, ordered by length, in batches that are computed at once."""
    batch: list[int] = []
    tokens = 0
    for number in sorted(range(len(texts)), key=lambda number: len(texts[number])):
        if batch and tokens + len(texts[number]) > _MOST_TOKENS:
            yield batch
            batch, tokens = [], 0
        batch.append(number)
        tokens += len(texts[number])
    if batch:
        yield batch


def load(model: Model) -> PackedBert | None:
    """Return `model` ready to embed; None if `bert` does not know its kind."""
    return bert.made_of(model, PackedBert)
