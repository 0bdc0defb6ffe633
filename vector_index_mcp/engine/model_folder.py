"""What the files in a model's folder say of it, read without loading it and without running any.

Raises what reading such files raises: OSError, KeyError, TypeError, ValueError.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

WEIGHTS = "model.safetensors"
_SETTINGS = "config_sentence_transformers.json"
_OURS = "sentence_transformers."
"""What the classes of a model's modules are called that are no code of the model's own."""
_DOCUMENT_PROMPTS = ("document", "passage", "corpus")
_NO_LIMIT = 10**9  # tokenizers write 10**30 for none
# BERT and most others; T5; DistilBERT; GPT-2 and NomicBERT.
_WIDTHS = ("hidden_size", "d_model", "dim", "n_embd")


@dataclass(frozen=True, slots=True)
class Module:
    """A part of a model: texts go through one after the other."""

    type: str
    """The name of its class, with that of the module it lies in."""
    folder: Path

    @property
    def kind(self) -> str:
        """The name of its class."""
        return self.type.rpartition(".")[2]

    @property
    def config(self) -> Mapping[str, Any]:
        """What its folder says of it; empty if that is nothing."""
        return _said(self.folder / "config.json")


@dataclass(frozen=True, slots=True)
class Prompts:
    """What a model wants before each text."""

    query: str
    document: str


def modules_of(folder: Path) -> list[Module]:
    """The parts of a model; of one that computes queries in another way, both ways."""
    path = folder / "modules.json"
    listed = json_in(path) if path.is_file() else []
    return [
        module
        for said in listed or [{"type": f"{_OURS}models.Transformer", "path": ""}]
        for module in _routed(Module(str(said["type"]), folder / said["path"]))
    ]


def _routed(module: Module) -> Iterator[Module]:
    """A module, or those among which it chooses."""
    yield module
    routes = module.folder / "router_config.json"
    if module.kind in {"Router", "Asym"} and routes.is_file():
        for path, type_ in json_in(routes)["types"].items():
            yield Module(str(type_), module.folder / path)


def foreign_code_of(folder: Path) -> str:
    """The name of code that would have to run, and is not of the library; empty if none does.

    sentence-transformers 5 runs the code in a local folder without being allowed to.
    """
    for module in modules_of(folder):
        if not module.type.startswith(_OURS):
            return module.type
        function = module.config.get("activation_function", "") if module.kind == "Dense" else ""
        if function and not str(function).startswith("torch."):
            return str(function)
    return ""


def has_weights(folder: Path) -> bool:
    """Whether there are weights that are no pickles."""
    folders = {folder, *(module.folder for module in modules_of(folder))}
    return any((each / WEIGHTS).is_file() for each in folders)


def dimension_of(folder: Path) -> int:
    """The length of a model's embeddings."""
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
        raise ValueError("nothing says how long its embeddings are")
    most = _settings(folder).get("truncate_dim")
    return min(dimension, int(most)) if most else dimension


def window_of(folder: Path) -> int | None:
    """How many tokens of a text a model reads, prompt included; None if it reads all of them.

    What lies behind is left out without a word.
    """
    transformers = [module for module in modules_of(folder) if module.kind == "Transformer"]
    windows = [each for module in transformers for each in _windows(module)]
    return min(windows, default=None)


def _windows(module: Module) -> Iterator[int]:
    """What limits how much of a text a module reads; whoever made the model decides before all."""
    chosen = _said(module.folder / "sentence_bert_config.json").get("max_seq_length")
    if chosen:
        yield int(chosen)
        return
    of_tokenizer = _said(module.folder / "tokenizer_config.json").get("model_max_length")
    for limit in (of_tokenizer, module.config.get("max_position_embeddings")):
        if limit and limit < _NO_LIMIT:
            yield int(limit)


def ways_of(pooling: Mapping[str, Any]) -> set[str]:
    """How tokens become one vector, as sentence-transformers 6 names it, or earlier ones did."""
    if "pooling_mode" in pooling:
        mode = pooling["pooling_mode"]
        return {mode} if isinstance(mode, str) else set(mode)
    before = {"pooling_mode_mean_tokens": "mean", "pooling_mode_cls_token": "cls"}
    used = (way for way, is_used in pooling.items() if way.startswith("pooling_mode") and is_used)
    return {before.get(way, way) for way in used}


def prompts_of(folder: Path) -> Prompts:
    """What stands before queries, and what before texts that are to be found.

    As `encode_query` and `encode_document` choose them; but these take an empty one for documents
    that nobody wrote, which sentence-transformers 5 and 6 add, before one for passages.
    """
    said = _settings(folder).get("prompts") or {}
    prompts = {name: prompt for name, prompt in said.items() if isinstance(prompt, str)}
    documents = (prompts.get(name) for name in _DOCUMENT_PROMPTS)
    return Prompts(prompts.get("query", ""), next(filter(None, documents), ""))


def _settings(folder: Path) -> Mapping[str, Any]:
    return _said(folder / _SETTINGS)


def _said(path: Path) -> Mapping[str, Any]:
    """What a file says; nothing if there is none."""
    return dict(json_in(path)) if path.is_file() else {}


def _width(config: Mapping[str, Any]) -> int:
    """How long a token's vector is; of a model of more than texts, in the part for them."""
    for part in (config, config.get("text_config") or {}):
        for name in _WIDTHS:
            if name in part:
                return int(part[name])
    raise KeyError(_WIDTHS[0])


def _width_of_weights(path: Path) -> int:
    """The length of the rows of the only matrix among the weights."""
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        said = json.loads(file.read(min(length, path.stat().st_size)))
    shapes = [each["shape"] for name, each in said.items() if name != "__metadata__"]
    [(_, width)] = [shape for shape in shapes if len(shape) == 2]
    return int(width)


def json_in(path: Path) -> Any:
    """What a file of JSON says."""
    return json.loads(path.read_text(encoding="utf-8"))
