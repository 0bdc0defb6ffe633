"""A BERT that embeds many texts at once on a processor, with torch and nothing above it.

What it makes is what sentence-transformers makes (tests/contract compares them), sooner and in less
memory: texts lie behind each other without padding, and transformers need not be imported.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np
import torch
from torch.nn import functional

from vector_index_mcp.engine import bert
from vector_index_mcp.engine.bert import Bert, Layer, Pair
from vector_index_mcp.engine.model import Model
from vector_index_mcp.engine.types import Vectors

# Of a batch. More gain nothing, and each takes 20 kB while it is computed: 317 MB at most, beside
# 382 with twice as many. Half as many: 0.9 times the chunks a second with two threads (AVX2).
_MOST_TOKENS = 1_024

_Linear = Callable[[torch.Tensor], torch.Tensor]
_Norm = tuple[torch.Tensor, torch.Tensor]


@dataclass(frozen=True, slots=True)
class _Computed:
    """What is computed in one layer."""

    together: _Linear
    """Query, key and value of each token, side by side."""
    attended: _Linear
    attended_norm: _Norm
    inner: _Linear
    outer: _Linear
    outer_norm: _Norm


class PackedBert:
    """Embeds texts, in one precision."""

    device = "cpu"

    def __init__(self, model: Bert, precision: str = "float32") -> None:
        """Make the matrices.

        Args:
            model: What is computed.
            precision: As torch names it.
        """
        self._bert = model
        self._kind = getattr(torch, precision)
        self._words, self._places = torch.from_numpy(model.words), torch.from_numpy(model.places)
        self._norm = self._tensors(model.norm)
        self._layers = [self._computed(layer) for layer in model.layers]

    def in_precision(self, precision: str) -> "PackedBert":
        """The same model in another one."""
        return PackedBert(self._bert, precision)

    def encode(self, texts: Sequence[str], *, are_queries: bool = False) -> Vectors:
        """Embed `texts`: float32 rows, in order, of any length."""
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
        """A vector for each of some texts."""
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
        """What the tokens of each text see in each other; texts of one length are one step."""
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
    """The numbers of `texts` in batches to be computed at once, by their lengths."""
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
    """What embeds as `model` does; None if it is of a kind that is not known here."""
    return bert.made_of(model, PackedBert)
