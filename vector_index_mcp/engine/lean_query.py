"""Single queries embedded here and now: no torch, no other process, 10 ms.

Most queries are a dozen words, and nobody should have to wait until a process has loaded a library
for them, nor keep its memory. The weights are mapped, not read: the pages of the layers are shared
by all services of a machine, and given back when it needs them. What is computed is what
sentence-transformers computes, in float32 (tests/contract compares them).

Only BERT as Devlin et al. (2018) describe it is known here, with mean or first-token pooling: the
default model and its family. For every other model `load` gives None, and the worker is asked.
"""

import json
import math
import mmap
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from vector_index_mcp.engine.model import Model
from vector_index_mcp.engine.model_folder import json_in, prompts_of, ways_of
from vector_index_mcp.engine.types import Vector

if TYPE_CHECKING:  # 10 MB that only who asks by meaning needs
    from tokenizers import Tokenizer

_Array = npt.NDArray[np.float32]
_MODULES = {"Transformer", "Pooling", "Normalize"}
_DEFAULT_TOKENS = 512
_LEAST_NORM = 1e-12
# erf to 1.5e-7: Abramowitz, Stegun, Handbook of Mathematical Functions (1964), formula 7.1.26.
_ERF_P = 0.3275911
_ERF = (1.061405429, -1.453152027, 1.421413741, -0.284496736, 0.254829592)


@dataclass(frozen=True, slots=True)
class _Layer:
    """The weights of one layer: pairs of a matrix, transposed, and a bias."""

    query: tuple[_Array, _Array]
    key: tuple[_Array, _Array]
    value: tuple[_Array, _Array]
    attended: tuple[_Array, _Array]
    attended_norm: tuple[_Array, _Array]
    inner: tuple[_Array, _Array]
    outer: tuple[_Array, _Array]
    outer_norm: tuple[_Array, _Array]


class QueryEncoder:
    """Embeds one text at a time. Made by `load`; any thread may use it."""

    def __init__(
        self,
        tokenizer: "Tokenizer",
        tensors: Mapping[str, _Array],
        config: Mapping[str, Any],
        *,
        pools_first: bool,
        prompt: str,
        is_lower: bool,
        dimension: int,
    ) -> None:
        """Take the parts of a model.

        Args:
            tokenizer: Its own.
            tensors: Its weights by their names.
            config: Its config.json.
            pools_first: Whether the first token stands for the text, and not the mean of all.
            prompt: What stands before each query.
            is_lower: Whether capitals are lost before the tokenizer sees a text.
            dimension: How many of the first numbers are used.
        """
        self._tokenizer, self._tensors = tokenizer, tensors
        self._heads, self._epsilon = config["num_attention_heads"], config["layer_norm_eps"]
        self._pools_first, self._prompt, self._is_lower = pools_first, prompt, is_lower
        self._dimension = dimension
        self._layers = [self._layer(number) for number in range(config["num_hidden_layers"])]

    def encode(self, text: str) -> Vector:
        """The embedding of a query: float32 of unit length."""
        text = (self._prompt + text).strip()
        ids = self._tokenizer.encode(text.lower() if self._is_lower else text).ids
        tensors = self._tensors
        hidden = tensors["embeddings.word_embeddings.weight"][ids]
        hidden = hidden + tensors["embeddings.position_embeddings.weight"][: len(ids)]
        hidden = hidden + tensors["embeddings.token_type_embeddings.weight"][0]
        hidden = self._normed(hidden, self._pair("embeddings.LayerNorm"))
        for layer in self._layers:
            hidden = self._through(layer, hidden)
        pooled = hidden[0] if self._pools_first else hidden.mean(axis=0)
        pooled = pooled[: self._dimension]
        length = max(float(np.linalg.norm(pooled)), _LEAST_NORM)
        return np.asarray(pooled / length, dtype="<f4")

    def _through(self, layer: _Layer, hidden: _Array) -> _Array:
        tokens, width = hidden.shape

        def by_head(pair: tuple[_Array, _Array]) -> _Array:
            found = hidden @ pair[0] + pair[1]
            return found.reshape(tokens, self._heads, -1).transpose(1, 0, 2)

        query, key, value = by_head(layer.query), by_head(layer.key), by_head(layer.value)
        scores = query @ key.transpose(0, 2, 1) / math.sqrt(query.shape[-1])
        weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
        weights /= weights.sum(axis=-1, keepdims=True)
        attended = (weights @ value).transpose(1, 0, 2).reshape(tokens, width)
        attended = attended @ layer.attended[0] + layer.attended[1]
        hidden = self._normed(hidden + attended, layer.attended_norm)
        inner = _gelu(hidden @ layer.inner[0] + layer.inner[1])
        return self._normed(hidden + inner @ layer.outer[0] + layer.outer[1], layer.outer_norm)

    def _normed(self, hidden: _Array, pair: tuple[_Array, _Array]) -> _Array:
        centred = hidden - hidden.mean(axis=-1, keepdims=True)
        variance = (centred * centred).mean(axis=-1, keepdims=True)
        return np.asarray(centred / np.sqrt(variance + self._epsilon) * pair[0] + pair[1])

    def _layer(self, number: int) -> _Layer:
        name = f"encoder.layer.{number}"
        return _Layer(
            query=self._dense(f"{name}.attention.self.query"),
            key=self._dense(f"{name}.attention.self.key"),
            value=self._dense(f"{name}.attention.self.value"),
            attended=self._dense(f"{name}.attention.output.dense"),
            attended_norm=self._pair(f"{name}.attention.output.LayerNorm"),
            inner=self._dense(f"{name}.intermediate.dense"),
            outer=self._dense(f"{name}.output.dense"),
            outer_norm=self._pair(f"{name}.output.LayerNorm"),
        )

    def _dense(self, name: str) -> tuple[_Array, _Array]:
        weight, bias = self._pair(name)
        return weight.T, bias

    def _pair(self, name: str) -> tuple[_Array, _Array]:
        return self._tensors[f"{name}.weight"], self._tensors[f"{name}.bias"]


def _gelu(x: _Array) -> _Array:
    z = np.abs(x) / math.sqrt(2)
    t = 1 / (1 + _ERF_P * z)
    series = np.zeros_like(t)
    for coefficient in _ERF:
        series = (series + coefficient) * t
    erf = np.sign(x) * (1 - series * np.exp(-z * z))
    return np.asarray(x * 0.5 * (1 + erf), dtype=np.float32)


def load(model: Model) -> QueryEncoder | None:
    """What embeds queries as `model` does; None if it is of a kind that is not known here."""
    try:
        return _loaded(model.folder, model.identity.dimension)
    except Exception:  # noqa: BLE001  # what tokenizers raises is nothing narrower
        return None  # the worker knows better, or says what is wrong


def _loaded(folder: Path, dimension: int) -> QueryEncoder | None:
    config, pooling = json_in(folder / "config.json"), json_in(folder / "1_Pooling" / "config.json")
    sentence = json_in(folder / "sentence_bert_config.json")
    modules = {module["type"].rpartition(".")[2] for module in json_in(folder / "modules.json")}
    ways = ways_of(pooling)
    if (
        config["model_type"] != "bert"
        or config["hidden_act"] != "gelu"
        or config.get("position_embedding_type", "absolute") != "absolute"
        or not modules <= _MODULES
        or ways not in ({"mean"}, {"cls"})
        or not pooling.get("include_prompt", True)
    ):
        return None
    tensors = _mapped(folder / "model.safetensors")
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_padding()
    of_tokenizer = json_in(folder / "tokenizer_config.json").get("model_max_length")
    most = sentence.get("max_seq_length") or of_tokenizer or _DEFAULT_TOKENS
    tokenizer.enable_truncation(min(most, config["max_position_embeddings"]))
    return QueryEncoder(
        tokenizer,
        tensors,
        config,
        pools_first=ways == {"cls"},
        prompt=prompts_of(folder).query,
        is_lower=bool(sentence.get("do_lower_case")),
        dimension=dimension,
    )


def _mapped(path: Path) -> dict[str, _Array]:
    """The tensors of a file of safetensors, by name, none of them read yet.

    Raises:
        ValueError: If one is of another type than float32, or the file is none.
    """
    with path.open("rb") as file:
        data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    start = 8 + int.from_bytes(data[:8], "little")
    found = {}
    for name, said in json.loads(data[8:start]).items():
        if name == "__metadata__" or said["dtype"].startswith("I"):  # positions, counted up
            continue
        if said["dtype"] != "F32":
            raise ValueError(f"{name} is of type {said['dtype']}")
        begin, end = said["data_offsets"]
        values = np.frombuffer(data, "<f4", (end - begin) // 4, start + begin)
        found[name.removeprefix("bert.")] = values.reshape(said["shape"])
    return found
