"""A query embedded here is what sentence-transformers makes of it; what is not known is left."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from other_process import printed_by

from vector_index_mcp.engine.models import lean_query
from vector_index_mcp.engine.models.model import Model
from vector_index_mcp.engine.models.queries import Queries
from vector_index_mcp.engine.types import ModelIdentity

pytestmark = pytest.mark.anyio

QUERIES = [
    "where is the retry delay computed",
    "HttpClient.send_request()",
    "größenwahn naïve café 你好 🙂",
    "a b c " * 400,  # more tokens than the model takes
    "",
    "x",
    "  SHOUTED  ",
]


def as_model(folder):
    return Model(ModelIdentity("tiny", "00", 384), folder)


FAMILY = {"mean": ("mean", ""), "cls": ("cls", ""), "with a prompt": ("mean", "Question: ")}
"""Random models of two layers with the tokenizer of the real one: their pooling, their prompt."""
# In a process of its own: the library takes any folder called `datasets` for a library. In one for
# all models: importing it takes 4 s.
LIBRARY = """
import json, shutil, sys
from pathlib import Path
from sentence_transformers import SentenceTransformer, models
from transformers import BertConfig, BertModel
source, place = sys.argv[1:]
given = json.load(sys.stdin)

def make(folder, pooling, prompt):
    shape = dict(hidden_size=16, num_hidden_layers=2, num_attention_heads=4, intermediate_size=32)
    bert = BertModel(BertConfig(max_position_embeddings=40, **shape))
    bert.save_pretrained(f"{folder}/bert")
    for path in Path(source).glob("*"):
        if path.name in ("tokenizer.json", "tokenizer_config.json", "vocab.txt"):
            shutil.copy(path, f"{folder}/bert")
    words = models.Transformer(f"{folder}/bert", max_seq_length=32)
    parts = [words, models.Pooling(16, pooling_mode=pooling), models.Normalize()]
    prompts = {"query": prompt} if prompt else None
    SentenceTransformer(modules=parts, prompts=prompts, device="cpu").save(f"{folder}/model")
    return f"{folder}/model"

def embedded(folder):
    model = SentenceTransformer(folder, device="cpu", local_files_only=True)
    found = model.encode_query(given["queries"], normalize_embeddings=True)
    return folder, [[float(number) for number in vector] for vector in found]

folders = {name: make(f"{place}/{name}", *how) for name, how in given["family"].items()}
found = {name: embedded(folder) for name, folder in {"default": source, **folders}.items()}
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def of_library(model, tmp_path_factory):
    """For each model its folder, and what its library makes of QUERIES."""
    command = [sys.executable, "-c", LIBRARY, model.folder, tmp_path_factory.mktemp("models")]
    given = json.dumps({"queries": QUERIES, "family": FAMILY})
    done = subprocess.run(command, input=given, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("name", ["default", *FAMILY])
@pytest.mark.long
def test_a_query_is_computed_as_the_library_does(of_library, name):
    folder, expected = of_library[name]
    encoder = lean_query.load(as_model(Path(folder)))
    assert encoder is not None
    for query, vector in zip(QUERIES, expected, strict=True):
        np.testing.assert_allclose(encoder.encode(query), vector, atol=2e-6)


@pytest.mark.long
@pytest.mark.parametrize(
    ("file", "change"),
    [
        ("config.json", {"model_type": "roberta"}),
        ("config.json", {"hidden_act": "relu"}),
        ("config.json", {"position_embedding_type": "relative_key"}),
        ("1_Pooling/config.json", {"pooling_mode_mean_tokens": False}),
        ("1_Pooling/config.json", {"pooling_mode_max_tokens": True}),
        ("1_Pooling/config.json", {"include_prompt": False}),
        ("modules.json", None),
        ("tokenizer.json", None),
    ],
)
def test_what_is_not_known_is_left_to_the_worker(model, tmp_path, file, change):
    folder = tmp_path / "model"
    shutil.copytree(model.folder, folder)
    assert lean_query.load(as_model(folder)) is not None
    path = folder / file
    if change is None:
        path.write_text("{")
    else:
        path.write_text(json.dumps(json.loads(path.read_text()) | change))
    assert lean_query.load(as_model(folder)) is None


@pytest.mark.long
@pytest.mark.parametrize("size", [0, 7, 100, 5_000_000])
def test_weights_that_are_cut_off_are_left_to_the_worker(model, tmp_path, size):
    folder = tmp_path / "model"
    shutil.copytree(model.folder, folder)
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:size])
    assert lean_query.load(as_model(folder)) is None


def with_changed(name, change):
    """A change of the weights with a name."""

    def changed(folder):
        path = folder / "model.safetensors"
        data = path.read_bytes()
        start = 8 + int.from_bytes(data[:8], "little")
        said = json.loads(data[8:start])
        begin, end = said[name]["data_offsets"]
        body = bytearray(data[start:])
        body[begin:end] = change(said[name], bytes(body[begin:end]))
        head = json.dumps(said).encode()
        path.write_bytes(len(head).to_bytes(8, "little") + head + body)

    return changed


def turned(said, data):
    said["shape"].reverse()
    return data


def of_others(folder):
    """A tokenizer of another model: it knows more words than there are weights for."""
    path = folder / "tokenizer.json"
    said = json.loads(path.read_text())
    said["model"]["vocab"] = {word: at + 50_000 for word, at in said["model"]["vocab"].items()}
    path.write_text(json.dumps(said))


INNER = "encoder.layer.0.intermediate.dense.weight"
BIAS = "encoder.layer.0.output.dense.bias"


@pytest.mark.long
@pytest.mark.parametrize(
    "spoil",
    [
        with_changed(INNER, turned),
        with_changed(BIAS, lambda _, data: b"\xff" * len(data)),  # no numbers
        with_changed(BIAS, lambda _, data: b"\xff\xff\x7f\x7f" * (len(data) // 4)),  # the largest
        of_others,
    ],
    ids=["shapes", "no-numbers", "too-large", "another-tokenizer"],
)
async def test_files_that_do_not_fit_together_are_left_to_the_worker(model, tmp_path, spoil):
    folder = tmp_path / "model"
    shutil.copytree(model.folder, folder)
    spoil(folder)
    queries = Queries(str(folder))
    assert [await queries.embed("retry delay") for _ in range(2)] == [None, None]


@pytest.mark.long
async def test_a_model_that_comes_back_is_found_when_somebody_looks_again(model, tmp_path):
    folder = tmp_path / "model"
    queries = Queries(str(folder))
    assert await queries.embed("x") is None
    shutil.copytree(model.folder, folder)
    assert await queries.embed("x") is None
    queries.forget()
    vector, identity = await queries.embed("x")
    assert (vector.shape, identity.dimension) == ((384,), 384)


CUT_OFF = """
import os, sys
import anyio
from vector_index_mcp.engine.models.queries import Queries

async def main():
    queries, weights = Queries(sys.argv[1]), os.path.join(sys.argv[1], "model.safetensors")
    before = await queries.embed("retry delay")
    with open(weights, "r+b") as file:
        data = file.read()
        file.truncate(1_000_000)
        during = await queries.embed("retry delay")
        file.seek(0)
        file.write(data[:-4] + bytes(4))
        file.flush()
    queries.forget()
    after = await queries.embed("retry delay")
    print(before is not None, during is None, after[1] != before[1])

anyio.run(main)
"""


@pytest.mark.long
def test_weights_that_are_written_over_end_no_process_and_are_another_model(model, tmp_path):
    """They are mapped: a page that is not there any more is a SIGBUS."""
    folder = shutil.copytree(model.folder, tmp_path / "model")
    assert printed_by(CUT_OFF, str(folder)) == ["True"] * 3
