"""Loading a model does without what it does not need, and gets it where it does."""

from importlib.util import find_spec

import pytest
from other_process import printed_by

from vector_index_mcp.engine.models.model import OFFLINE_PACKAGE

pytestmark = [
    pytest.mark.skipif(
        find_spec(OFFLINE_PACKAGE) is None, reason="the extra `offline` is not installed"
    ),
    pytest.mark.slow,
]

MODEL = "all-MiniLM-L6-v2"
LEFT_OUT = ["scipy", "sklearn", "torch._dynamo", "torch.distributed.tensor"]
BEGINNING = f"""
import sys
from vector_index_mcp.engine.models import lean_transformers
from vector_index_mcp.engine.models import library
from vector_index_mcp.engine.models.model import find_model

def there():
    return [name for name in {LEFT_OUT} if sys.modules.get(name)]

texts = ["def parse(line): return line.split(',')", "where are changes noticed?", "x " * 400]
"""


def test_a_lean_model_embeds_as_a_whole_one_does_and_nobody_else_misses_anything():
    code = f"""
import torch
model = find_model("{MODEL}")
with lean_transformers.standing_in(torch):
    lean = library._sentence_transformer(model, "cpu")
vectors = lean.encode(texts).tobytes()
print(*there(), "-")
lean_transformers.forget()
assert vectors == library._sentence_transformer(model, "cpu").encode(texts).tobytes()
print(*there(), "-")

from sklearn.metrics import pairwise_distances
assert pairwise_distances([[0.0, 3.0], [4.0, 0.0]])[0][1] == 5.0
assert torch.distributed.is_available()
assert torch._dynamo.config.cache_size_limit
"""
    lean, whole = " ".join(printed_by(BEGINNING + code)).split("-")[:2]
    assert lean.split() == []
    assert whole.split() == LEFT_OUT


def test_a_model_that_needs_more_than_is_known_gets_everything():
    code = f"""
lean_transformers._module = lambda *_, **__: None
loaded = library.embedding_model(find_model("{MODEL}"), "cpu")
print(*there())
assert loaded.encode(texts).shape == (3, 384)
"""
    assert printed_by(BEGINNING + code) == LEFT_OUT


def test_a_cross_encoder_judges_the_same_with_less(tiny_models):
    folder = tiny_models["bert"].folder.with_name("judge")
    code = f"""
pairs = [("where are changes noticed?", text) for text in texts]
model = find_model({str(folder)!r})
scores = library.cross_encoder(model, "cpu").predict(pairs).tobytes()
print(*there(), "-")
lean_transformers.forget()
assert scores == library._cross_encoder(model, "cpu").predict(pairs).tobytes()
print(*there(), "-")
"""
    lean, whole = " ".join(printed_by(BEGINNING + code)).split("-")[:2]
    assert lean.split() == []
    assert {"scipy", "sklearn"} <= set(whole.split())


def test_who_computes_with_the_library_is_not_disturbed(tiny_models):
    folder = tiny_models["bert"].folder
    code = f"""
loaded = library.embedding_model(find_model({str(folder)!r}), "cpu")
lean_transformers.standing_in = lambda _: sys.exit("a part is replaced under who uses it")
library.cross_encoder(find_model({str(folder.with_name("judge"))!r}), "cpu").predict([("a", "b")])
assert loaded.encode(texts).shape == (3, 16)
print("done")
"""
    assert printed_by(BEGINNING + code) == ["done"]


def test_torch_lacks_kernels_without_data_until_the_library_is_loaded(tiny_models):
    folder = tiny_models["bert"].folder
    code = f"""
from vector_index_mcp.engine.models import lean_torch
from vector_index_mcp.engine.models import worker
torch = lean_torch.imported()
assert lean_torch.imported() is torch

def has_kernel():
    matrix = torch.empty(1, 1, 3, 3, device="meta")
    try:
        return bool(torch.nn.functional.scaled_dot_product_attention(matrix, matrix, matrix).shape)
    except NotImplementedError:
        return False

print(has_kernel())
worker.Encoder(find_model("{MODEL}"), "cpu").encode(texts)
print(has_kernel())
library.embedding_model(find_model({str(folder)!r}), "cpu")
print(has_kernel())
"""
    assert printed_by(BEGINNING + code) == ["False", "False", "True"]
