"""Reads the settings in a model's folder, without loading the model or running its code.

The functions raise what reading such files raises: OSError, KeyError, TypeError, ValueError.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

WEIGHTS = "model.safetensors"
_SETTINGS = "config_sentence_transformers.json"
_OURS = "sentence_transformers."
"""The names of the library's own module classes begin with this; others are a model's code."""
_DOCUMENT_PROMPTS = ("document", "passage", "corpus")
_NO_LIMIT = 10**9  # tokenizers without a limit write 10**30
# The name of the width in BERT and most others; T5; DistilBERT; GPT-2 and NomicBERT.
_WIDTHS = ("hidden_size", "d_model", "dim", "n_embd")


@dataclass(frozen=True, slots=True)
class Module:
    """One stage of a model: a text passes through its modules one after the other."""

    type: str
    """The full name of its class, with the Python module it lies in."""
    folder: Path

    @property
    def kind(self) -> str:
        """The name of its class alone."""
        return self.type.rpartition(".")[2]

    @property
    def config(self) -> Mapping[str, Any]:
        """The settings in its folder; empty if there are none."""
        return _said(self.folder / "config.json")


@dataclass(frozen=True, slots=True)
class Prompts:
    """The prompts that a model expects before each query and each document."""

    query: str
    document: str


def modules_of(folder: Path) -> list[Module]:
    """Return the modules of a model; of a router, also the modules that it chooses among."""
    path = folder / "modules.json"
    listed = json_in(path) if path.is_file() else []
    return [
        module
        for entry in listed or [{"type": f"{_OURS}models.Transformer", "path": ""}]
        for module in _routed(Module(str(entry["type"]), folder / entry["path"]))
    ]


def _routed(module: Module) -> Iterator[Module]:
    """Yield a module and, if it is a router, the modules that it chooses among."""
    yield module
    routes = module.folder / "router_config.json"
    if module.kind in {"Router", "Asym"} and routes.is_file():
        for path, type_ in json_in(routes)["types"].items():
            yield Module(str(type_), module.folder / path)


def foreign_code_of(folder: Path) -> str:
    """Return the name of code outside of the library that the model would run; empty if none.

    sentence-transformers 5 runs the code in a local folder without asking for permission.
    """
    for module in modules_of(folder):
        if not module.type.startswith(_OURS):
            return module.type
        function = module.config.get("activation_function", "") if module.kind == "Dense" else ""
        if function and not str(function).startswith("torch."):
            return str(function)
    return ""


def has_weights(folder: Path) -> bool:
    """Return whether the model has weights that are not pickles."""
    folders = {folder, *(module.folder for module in modules_of(folder))}
    return any((each / WEIGHTS).is_file() for each in folders)


def dimension_of(folder: Path) -> int:
    """Return the length of a model's embeddings."""
    dimension = 0
    for module in modules_of(folder):
        if module.kind == "Transformer":
            dimension = _width(json_in(module.folder / "config.json"))
        elif module.kind == "Pooling" and (config := module.config):
            dimension *= max(1, len(ways_of(config)))
        elif module.kind == "Dense" and (config := module.config):
            dimension = int(config["out_features"])
        elif module.kind == "StaticEmbedding":
            dimension = _width_of_weights(module.folder / WEIGHTS)
    if dimension < 1:
        raise ValueError("no file says how long its embeddings are")
    most = _settings(folder).get("truncate_dim")
    return min(dimension, int(most)) if most else dimension


def window_of(folder: Path) -> int | None:
    """Return how many tokens of a text a model reads, prompt included; None if it reads all.

    A model ignores the tokens after that without an error.
    """
    transformers = [module for module in modules_of(folder) if module.kind == "Transformer"]
    windows = [each for module in transformers for each in _windows(module)]
    return min(windows, default=None)


def _windows(module: Module) -> Iterator[int]:
    """Yield the limits of how many tokens a module reads.

    The model's own setting wins over the limits of the tokenizer and the architecture.
    """
    chosen = _said(module.folder / "sentence_bert_config.json").get("max_seq_length")
    if chosen:
        yield int(chosen)
        return
    of_tokenizer = _said(module.folder / "tokenizer_config.json").get("model_max_length")
    for limit in (of_tokenizer, module.config.get("max_position_embeddings")):
        if limit and limit < _NO_LIMIT:
            yield int(limit)


def ways_of(pooling: Mapping[str, Any]) -> set[str]:
    """Return how tokens are pooled into one vector, by the names of sentence-transformers 6."""
    if "pooling_mode" in pooling:
        mode = pooling["pooling_mode"]
        return {mode} if isinstance(mode, str) else set(mode)
    before = {"pooling_mode_mean_tokens": "mean", "pooling_mode_cls_token": "cls"}
    used = (way for way, is_used in pooling.items() if way.startswith("pooling_mode") and is_used)
    return {before.get(way, way) for way in used}


def prompts_of(folder: Path) -> Prompts:
    """Return the prompts for queries and for documents.

    They are those that `encode_query` and `encode_document` choose, with one exception:
    sentence-transformers 5 and 6 add an empty prompt for documents, and prefer it to the model's
    own prompt for passages.
    """
    named = _settings(folder).get("prompts") or {}
    prompts = {name: prompt for name, prompt in named.items() if isinstance(prompt, str)}
    documents = (prompts.get(name) for name in _DOCUMENT_PROMPTS)
    return Prompts(prompts.get("query", ""), next(filter(None, documents), ""))


def _settings(folder: Path) -> Mapping[str, Any]:
    return _said(folder / _SETTINGS)


def _said(path: Path) -> Mapping[str, Any]:
    """Return the JSON object in a file; an empty one if there is no file."""
    return dict(json_in(path)) if path.is_file() else {}


def _width(config: Mapping[str, Any]) -> int:
    """Return the length of a token's vector; multimodal models state it in `text_config`."""
    for part in (config, config.get("text_config") or {}):
        for name in _WIDTHS:
            if name in part:
                return int(part[name])
    raise KeyError(_WIDTHS[0])


def _width_of_weights(path: Path) -> int:
    """Return the length of the rows of the only matrix among the weights."""
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        header = json.loads(file.read(min(length, path.stat().st_size)))
    shapes = [each["shape"] for name, each in header.items() if name != "__metadata__"]
    [(_, width)] = [shape for shape in shapes if len(shape) == 2]
    return int(width)


def json_in(path: Path) -> Any:
    """Return the value in a JSON file."""
    return json.loads(path.read_text(encoding="utf-8"))
