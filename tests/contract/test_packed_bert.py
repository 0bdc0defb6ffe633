"""What the worker computes without sentence-transformers is what that computes."""

from types import SimpleNamespace

import numpy as np
import pytest
from tiny_models import LONG, TEXT

from vector_index_mcp.engine.models import lean_query, worker
from vector_index_mcp.engine.models.model import find_model

pytestmark = pytest.mark.long  # they load the library of models

# Of many lengths, in no order, several of one length, more than one batch.
TEXTS = [
    *(f"def parse_{n}(line): return line.split({n})" for n in (7, 8, 9)),
    "where is the configuration read? " * 60,
    "",
    "größenwahn naïve café 你好 🙂",
    *("the retry delay doubles " * (n * 7 % 23) for n in range(0, 40, 5)),
]


@pytest.fixture(scope="module")
def packed_bert():
    """Imported when it is needed: every tester would load torch to collect these tests."""
    from vector_index_mcp.engine.models import packed_bert

    return packed_bert


@pytest.fixture(scope="module")
def full(model, packed_bert):
    return packed_bert.load(model)


def unit(vectors):
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def cosines(one, other):
    return np.sum(unit(one) * unit(other), axis=1)


def test_it_computes_what_the_library_does(tiny_models, packed_bert):
    tiny = tiny_models["bert"]
    packed = packed_bert.load(find_model(str(tiny.folder)))
    queries = packed.encode([TEXT, LONG], are_queries=True)
    np.testing.assert_allclose(unit(queries), tiny.queries, atol=2e-6)
    np.testing.assert_allclose(unit(packed.encode([TEXT, LONG])), tiny.documents, atol=2e-6)


def test_each_of_many_texts_has_the_vector_that_it_has_alone(model, full, packed_bert, monkeypatch):
    """As `lean_query` computes it, which is compared with the library."""
    monkeypatch.setattr(packed_bert, "_MOST_TOKENS", 200)
    one_by_one = lean_query.load(model)
    expected = np.stack([one_by_one.encode(text) for text in TEXTS])
    np.testing.assert_allclose(unit(full.encode(TEXTS)), expected, atol=5e-6)
    assert full.encode([]).shape == (0, 384)


def test_a_faster_precision_comes_near(full):
    found = cosines(full.encode(TEXTS), full.in_precision("bfloat16").encode(TEXTS))
    assert 0.999 < found.min() < 0.999999  # nearer would be no other precision


@pytest.mark.parametrize("answer", [RuntimeError("shapes"), np.full((2, 384), np.nan, "<f4")])
def test_what_it_cannot_compute_is_left_to_the_library(model, packed_bert, monkeypatch, answer):
    class Broken:
        def encode(self, texts):
            if isinstance(answer, Exception):
                raise answer
            return answer

    assert worker._known(model) is not None
    monkeypatch.setattr(packed_bert, "load", lambda model: Broken())
    assert worker._known(model) is None


@pytest.mark.parametrize("has_instructions", [False, True])
def test_a_precision_without_instructions_is_not_even_tried(
    tiny_models, packed_bert, monkeypatch, has_instructions
):
    tried = []
    monkeypatch.setattr(worker, "_has_bfloat16", lambda: has_instructions)
    monkeypatch.setattr(
        packed_bert.PackedBert,
        "in_precision",
        lambda model, precision: tried.append(precision) or model,
    )
    encoder = worker.Encoder(find_model(str(tiny_models["bert"].folder)), "cpu")
    assert tried == ["bfloat16"] * has_instructions
    assert encoder.encode([TEXT]).shape == (1, 16)


def test_a_library_that_does_not_tell_its_instructions_is_tried(monkeypatch):
    import torch

    assert worker._has_bfloat16() in {False, True}

    def fails():
        raise RuntimeError("built without oneDNN")

    for unknown in (SimpleNamespace(), SimpleNamespace(_is_mkldnn_bf16_supported=fails)):
        monkeypatch.setattr(torch, "ops", SimpleNamespace(mkldnn=unknown))
        assert worker._has_bfloat16()
