"""Models that somebody chooses are computed as their library does, by the real worker."""

import json
from functools import partial

import numpy as np
import pytest
from tiny_models import LONG, TEXT, WIDTH, made

from vector_index_mcp.engine import lean_query
from vector_index_mcp.engine.embed import WorkerEmbedder
from vector_index_mcp.engine.model import OFFLINE_MODEL, find_model, model_at_hand
from vector_index_mcp.errors import ModelNotFoundError
from vector_index_mcp.processes import children

pytestmark = [pytest.mark.anyio]
worker_embedder = partial(
    WorkerEmbedder, start_worker=children.start, remedy_of=lambda problem: f"remedy of {problem}"
)
NEAR = 5e-3  # some processors compute in bfloat16


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    original = model_at_hand(OFFLINE_MODEL)
    if original is None:
        pytest.skip("the extra `offline` is not installed")
    return made(original.folder, tmp_path_factory.mktemp("tiny"))


@pytest.mark.parametrize("name", ["bert", "modernbert", "qwen3", "router"])
async def test_queries_and_documents_are_each_computed_in_their_own_way(models, name):
    tiny = models[name]
    async with worker_embedder(str(tiny.folder)).running() as embedder:
        queries = await embedder.embed([TEXT, LONG], urgent=True)
        documents = await embedder.embed([TEXT, LONG])
        assert (await embedder.identity()).dimension == WIDTH
    np.testing.assert_allclose(queries, tiny.queries, atol=NEAR)
    np.testing.assert_allclose(documents, tiny.documents, atol=NEAR)
    assert np.abs(queries - documents).max() > 4 * NEAR  # else they could be confused


@pytest.mark.parametrize("name", ["modernbert", "qwen3", "router"])
def test_what_is_computed_in_another_way_is_left_to_the_worker(models, name):
    assert lean_query.load(find_model(str(models[name].folder))) is None


def test_a_query_embedded_at_once_has_the_prompt_for_queries(models):
    encoder = lean_query.load(find_model(str(models["bert"].folder)))
    assert encoder is not None
    for text, expected in zip([TEXT, LONG], models["bert"].queries, strict=True):
        np.testing.assert_allclose(encoder.encode(text), expected, atol=2e-6)


async def test_a_model_whose_architecture_is_its_own_code_is_refused_with_what_to_do(tmp_path):
    (tmp_path / "model.safetensors").write_bytes(b"")
    (tmp_path / "configuration_mine.py").write_text("raise SystemExit('it has run')")
    auto = {"AutoConfig": "configuration_mine.MyConfig", "AutoModel": "modeling_mine.MyModel"}
    config = {"model_type": "mine", "hidden_size": 8, "auto_map": auto}
    (tmp_path / "config.json").write_text(json.dumps(config))
    async with worker_embedder(str(tmp_path)).running() as embedder:
        with pytest.raises(ModelNotFoundError, match="; remedy of model_with_code$"):
            await embedder.embed([TEXT])
