"""Models of two layers with random weights, of the kinds that people choose; made by the library.

In a process of its own: pytest must not import sentence_transformers, which takes any folder called
`datasets` for a library.
"""

import json
import shutil
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from other_process import printed_by

TEXT = "a cat on the roof"
LONG = "the cats of the town sleep on warm roofs in the evening sun and " * 8
PROMPTS = {"query": "Question: ", "passage": "Passage: "}
WIDTH, TOKENS = 16, 32
"""Of every one of them: the length of its vectors, and the most that it reads."""

_MAKE = """
import json, shutil, sys
from pathlib import Path
import torch
from sentence_transformers import CrossEncoder, SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Normalize, Pooling
from sentence_transformers.base.modules import Router, Transformer
from transformers import (
    BertConfig, BertForSequenceClassification, BertModel, ModernBertConfig, ModernBertModel,
    Qwen3Config, Qwen3Model, logging,
)
source, place, wanted = sys.argv[1:]
wanted = json.loads(wanted)
logging.set_verbosity_error()
shape = dict(
    vocab_size=30522, hidden_size=wanted["width"], num_hidden_layers=2, num_attention_heads=4,
    intermediate_size=32, max_position_embeddings=64, initializer_range=0.3,
)
kinds = {
    "bert": lambda: BertModel(BertConfig(**shape)),
    "modernbert": lambda: ModernBertModel(ModernBertConfig(**shape, pad_token_id=0)),
    "qwen3": lambda: Qwen3Model(Qwen3Config(**shape, num_key_value_heads=2, head_dim=8)),
}
torch.manual_seed(7)

def tokenizer(folder):
    for name in ("tokenizer.json", "tokenizer_config.json", "vocab.txt"):
        if (Path(source) / name).exists():
            shutil.copy(Path(source) / name, folder)

def transformer(kind):
    folder = Path(place) / "parts" / str(len(list(Path(place).rglob("config.json"))))
    kinds[kind]().save_pretrained(folder)
    tokenizer(folder)
    return Transformer(str(folder), max_seq_length=wanted["tokens"])

def pooling(mode="mean"):
    return Pooling(wanted["width"], pooling_mode=mode)

def saved(name, *modules, prompts=None):
    model = SentenceTransformer(modules=list(modules), prompts=prompts, device="cpu")
    model.save(f"{place}/{name}")
    return model

prompts, texts, made = wanted["prompts"], wanted["texts"], {}
for kind, mode in (("bert", "cls"), ("modernbert", "mean"), ("qwen3", "lasttoken")):
    model = saved(kind, transformer(kind), pooling(mode), Normalize(), prompts=prompts)
    made[kind] = {
        "query": model.encode(texts, prompt=prompts["query"]).tolist(),
        "document": model.encode(texts, prompt=prompts["passage"]).tolist(),
    }
routes = {f"{way}_modules": [transformer("bert"), pooling()] for way in ("query", "document")}
model = saved("router", Router.for_query_document(**routes))
made["router"] = {
    way: model.encode(texts, task=way, normalize_embeddings=True).tolist()
    for way in ("query", "document")
}
judge = Path(place) / "judge"
BertForSequenceClassification(BertConfig(**shape, num_labels=1)).save_pretrained(judge)
tokenizer(judge)
reader = CrossEncoder(str(judge), device="cpu", activation_fn=torch.nn.Sigmoid())
judged = reader.predict([(texts[0], text) for text in texts]).tolist()
(Path(place) / "judged.json").write_text(json.dumps(judged))
(Path(place) / "made.json").write_text(json.dumps(made))
"""


@dataclass(frozen=True, slots=True)
class Tiny:
    """A model, and what the library makes of TEXT and LONG with it."""

    folder: Path
    queries: np.ndarray
    """Embedded as queries, with the prompt for these where it has prompts."""
    documents: np.ndarray


def made(source: Path, place: Path) -> dict[str, Tiny]:
    """One model of each kind, by name; those that are at `place` already are not made again.

    Beside them a cross-encoder, `place/judge`, and how well it thinks that TEXT and LONG answer
    TEXT, `place/judged.json`.

    Args:
        source: A model of BERT's, whose tokenizer they all have.
        place: An empty folder, or one that this function has filled.
    """
    shape = {"prompts": PROMPTS, "texts": [TEXT, LONG], "width": WIDTH, "tokens": TOKENS}
    result = place / "made.json"  # written last
    if not result.exists():
        printed_by(_MAKE, str(source), str(place), json.dumps(shape))
        shutil.rmtree(place / "parts")
    return {
        name: Tiny(place / name, np.array(each["query"]), np.array(each["document"]))
        for name, each in json.loads(result.read_text()).items()
    }
