"""Loading a model does without what it does not need, and gets it where it does."""

import json
from importlib.util import find_spec

import pytest
from other_process import printed_by

from vector_index_mcp.engine.models.model import OFFLINE_PACKAGE

pytestmark = [
    pytest.mark.skipif(
        find_spec(OFFLINE_PACKAGE) is None, reason="the extra `offline` is not installed"
    ),
    pytest.mark.long,
]

MODEL = "all-MiniLM-L6-v2"
LEFT_OUT = ["scipy", "sklearn", "torch._dynamo", "torch.distributed.tensor"]
# All that can follow each other in one process, where the library is imported twice: in part, and
# as a whole because a part is missing. Each import of it takes seconds.
STEPS = """
import json, sys
from vector_index_mcp.engine.models import lean_torch, lean_transformers, library, worker
from vector_index_mcp.engine.models.model import find_model
default, judge = map(find_model, sys.argv[1:3])
left_out, said = sys.argv[3:], {}
texts = ["def parse(line): return line.split(',')", "where are changes noticed?", "x " * 400]
pairs = [("where are changes noticed?", text) for text in texts]

def there():
    return [name for name in left_out if sys.modules.get(name)]

def has_kernel():
    matrix = torch.empty(1, 1, 3, 3, device="meta")
    try:
        return bool(torch.nn.functional.scaled_dot_product_attention(matrix, matrix, matrix).shape)
    except NotImplementedError:
        return False

torch = lean_torch.imported()
assert lean_torch.imported() is torch
said["kernels"] = [has_kernel()]
worker.Encoder(default, "cpu").encode(texts)
said["kernels"] += [has_kernel(), lean_transformers.is_imported()]
lean = library.embedding_model(default, "cpu")
said["are imported"] = "torch._meta_registrations" in sys.modules  # to use one imports more
vectors, said["lean"] = lean.encode(texts), there()

def taken_away(_):
    raise AssertionError("a part is replaced under who uses it")

standing_in, lean_transformers.standing_in = lean_transformers.standing_in, taken_away
scores = library.cross_encoder(judge, "cpu").predict(pairs)
said["lean judge"], said["shape"] = there(), lean.encode(texts).shape
lean_transformers.standing_in = standing_in

lean_transformers.forget()
lean_transformers._module = lambda *_, **__: None
whole = library.embedding_model(default, "cpu")
said["whole"] = there()
said["same vectors"] = vectors.tobytes() == whole.encode(texts).tobytes()
whole_judge = library.cross_encoder(judge, "cpu")
said["same scores"] = scores.tobytes() == whole_judge.predict(pairs).tobytes()

from sklearn.metrics import pairwise_distances
said["distance"] = float(pairwise_distances([[0.0, 3.0], [4.0, 0.0]])[0][1])
said["others"] = [torch.distributed.is_available(), bool(torch._dynamo.config.cache_size_limit)]
said["kernels"].append(has_kernel())
print(json.dumps(said))
"""


@pytest.fixture(scope="module")
def said(tiny_models):
    """What all steps have found out, by what it is about."""
    judge = tiny_models["bert"].folder.with_name("judge")
    return json.loads(" ".join(printed_by(STEPS, MODEL, str(judge), *LEFT_OUT)))


def test_a_lean_model_embeds_as_a_whole_one_does(said):
    assert said["lean"] == []
    assert said["same vectors"]


def test_nobody_else_misses_anything(said):
    assert said["distance"] == 5.0
    assert said["others"] == [True, True]


def test_a_model_that_needs_more_than_is_known_gets_everything(said):
    assert said["whole"] == LEFT_OUT


def test_a_cross_encoder_judges_the_same_with_less(said):
    assert said["lean judge"] == []
    assert said["same scores"]


def test_who_computes_with_the_library_is_not_disturbed(said):
    assert said["shape"] == [3, 384]


def test_torch_lacks_kernels_without_data_until_the_library_is_loaded(said):
    of_torch, of_worker, is_library_there, of_library = said["kernels"]
    assert not is_library_there
    assert (of_torch, of_worker, of_library) == (False, False, True)
    assert said["are imported"]
