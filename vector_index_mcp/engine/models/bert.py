"""Reads the files of a BERT model; `lean_query` computes it with numpy, `packed_bert` with torch.

This module knows only BERT as Devlin et al. (2018) describe it, with mean or first-token pooling:
the default model and its family. It maps the weights into memory instead of reading them: all
processes of a machine share their pages, and the system takes pages back when it needs memory.
"""

import json
import mmap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import numpy as np
import numpy.typing as npt

from vector_index_mcp.engine.models.model import Model
from vector_index_mcp.engine.models.model_folder import Prompts, json_in, prompts_of, ways_of

if TYPE_CHECKING:  # 10 MB of memory that only searches by meaning need
    from tokenizers import Tokenizer

_Made = TypeVar("_Made")
Array = npt.NDArray[np.float32]
Pair = tuple[Array, Array]
"""A weight matrix, as it lies in the file, and its bias."""
_MODULES = {"Transformer", "Pooling", "Normalize"}
_DEFAULT_TOKENS = 512


@dataclass(frozen=True, slots=True)
class Layer:
    """The weights of one layer."""

    query: Pair
    key: Pair
    value: Pair
    attended: Pair
    attended_norm: Pair
    inner: Pair
    outer: Pair
    outer_norm: Pair


@dataclass(frozen=True, slots=True)
class Bert:
    """A model whose files have been read."""

    tokenizer: "Tokenizer"
    words: Array
    """The vector of each token of the vocabulary, one row each."""
    places: Array
    """The vector that is added to a token at each position, one row each."""
    norm: Pair
    layers: Sequence[Layer]
    heads: int
    epsilon: float
    pools_first: bool
    """Whether a text's vector is that of its first token; otherwise the mean of all its tokens."""
    prompts: Prompts
    is_lower: bool
    """Whether a text is put into lower case before the tokenizer sees it."""
    dimension: int
    """How many of the first numbers of each vector are used."""

    def tokens_of(self, texts: Sequence[str], prompt: str) -> list[list[int]]:
        """Return the token ids of each text, with `prompt` before it."""
        given = [(prompt + text).strip() for text in texts]
        lowered = [text.lower() for text in given] if self.is_lower else given
        return [encoded.ids for encoded in self.tokenizer.encode_batch(lowered)]


def made_of(model: Model, make: Callable[[Bert], _Made]) -> _Made | None:
    """Return what `make` makes of `model`; None if this module does not know its kind."""
    try:
        bert = _read(model.folder, model.identity.dimension)
        return make(bert) if bert is not None else None
    except Exception:  # noqa: BLE001  # tokenizers raise bare Exception
        return None  # sentence-transformers can load it, or reports what is wrong


def _read(folder: Path, dimension: int) -> Bert | None:
    config, pooling = json_in(folder / "config.json"), json_in(folder / "1_Pooling" / "config.json")
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
    sentence = json_in(folder / "sentence_bert_config.json")
    tensors = _mapped(folder / "model.safetensors")
    embeddings = "embeddings.{}_embeddings.weight"
    return Bert(
        _tokenizer(folder, sentence.get("max_seq_length"), config["max_position_embeddings"]),
        words=tensors[embeddings.format("word")],
        places=tensors[embeddings.format("position")] + tensors[embeddings.format("token_type")][0],
        norm=_pair(tensors, "embeddings.LayerNorm"),
        layers=[_layer(tensors, number) for number in range(config["num_hidden_layers"])],
        heads=config["num_attention_heads"],
        epsilon=config["layer_norm_eps"],
        pools_first=ways == {"cls"},
        prompts=prompts_of(folder),
        is_lower=bool(sentence.get("do_lower_case")),
        dimension=dimension,
    )


def _tokenizer(folder: Path, chosen: int | None, places: int) -> "Tokenizer":
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_padding()
    of_tokenizer = json_in(folder / "tokenizer_config.json").get("model_max_length")
    tokenizer.enable_truncation(min(chosen or of_tokenizer or _DEFAULT_TOKENS, places))
    return tokenizer


def _layer(tensors: Mapping[str, Array], number: int) -> Layer:
    name = f"encoder.layer.{number}"
    return Layer(
        query=_pair(tensors, f"{name}.attention.self.query"),
        key=_pair(tensors, f"{name}.attention.self.key"),
        value=_pair(tensors, f"{name}.attention.self.value"),
        attended=_pair(tensors, f"{name}.attention.output.dense"),
        attended_norm=_pair(tensors, f"{name}.attention.output.LayerNorm"),
        inner=_pair(tensors, f"{name}.intermediate.dense"),
        outer=_pair(tensors, f"{name}.output.dense"),
        outer_norm=_pair(tensors, f"{name}.output.LayerNorm"),
    )


def _pair(tensors: Mapping[str, Array], name: str) -> Pair:
    return tensors[f"{name}.weight"], tensors[f"{name}.bias"]


def _mapped(path: Path) -> dict[str, Array]:
    """Map the tensors of a safetensors file into memory, by name, without reading them.

    Raises:
        ValueError: If a tensor is not float32, or the file is not a safetensors file.
    """
    with path.open("rb") as file:  # mapped as writable: torch warns of every read-only array
        data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
    start = 8 + int.from_bytes(data[:8], "little")
    found = {}
    for name, tensor in json.loads(data[8:start]).items():
        # Integers are position ids, 0, 1, 2 and so on: nobody needs to read them.
        if name == "__metadata__" or tensor["dtype"].startswith("I"):
            continue
        if tensor["dtype"] != "F32":
            raise ValueError(f"{name} is of type {tensor['dtype']}")
        begin, end = tensor["data_offsets"]
        values = np.frombuffer(data, "<f4", (end - begin) // 4, start + begin)
        found[name.removeprefix("bert.")] = values.reshape(tensor["shape"])
    return found
