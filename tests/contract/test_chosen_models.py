"""Models that somebody chooses are computed as their library does, by the real worker."""

import json
from functools import partial

import numpy as np
import pytest
from serving import call, codebase_of, serving, settled
from tiny_models import LONG, TEXT, TOKENS, WIDTH
from waiting import eventually
from writing import write

from vector_index_mcp.datasets.workshop import order_of
from vector_index_mcp.engine.models import lean_query
from vector_index_mcp.engine.models.embed import WorkerEmbedder
from vector_index_mcp.engine.models.model import find_model
from vector_index_mcp.engine.models.model_folder import window_of
from vector_index_mcp.errors import ModelNotFoundError
from vector_index_mcp.processes import children
from vector_index_mcp.serving.loading import index_of_texts, load_codebase, load_datasets
from vector_index_mcp.settings import Settings

pytestmark = [pytest.mark.anyio, pytest.mark.long]
worker_embedder = partial(
    WorkerEmbedder, start_worker=children.start, remedy_of=lambda problem: f"remedy of {problem}"
)
NEAR = 1e-2  # some processors compute in bfloat16: 0.0075 seen


@pytest.mark.parametrize("name", ["bert", "modernbert", "qwen3", "router"])
async def test_queries_and_documents_are_each_computed_in_their_own_way(tiny_models, name):
    tiny = tiny_models[name]
    async with worker_embedder(str(tiny.folder)).running() as embedder:
        queries = await embedder.embed([TEXT, LONG], are_queries=True)
        documents = await embedder.embed([TEXT, LONG])
        assert (await embedder.identity()).dimension == WIDTH
    np.testing.assert_allclose(queries, tiny.queries, atol=NEAR)
    np.testing.assert_allclose(documents, tiny.documents, atol=NEAR)
    assert np.abs(queries - documents).max() > 4 * NEAR  # else they could be confused


@pytest.mark.parametrize("name", ["modernbert", "qwen3", "router"])
def test_what_is_computed_in_another_way_is_left_to_the_worker(tiny_models, name):
    assert lean_query.load(find_model(str(tiny_models[name].folder))) is None


def test_a_query_embedded_at_once_has_the_prompt_for_queries(tiny_models):
    encoder = lean_query.load(find_model(str(tiny_models["bert"].folder)))
    assert encoder is not None
    for text, expected in zip([TEXT, LONG], tiny_models["bert"].queries, strict=True):
        np.testing.assert_allclose(encoder.encode(text), expected, atol=2e-6)


def cut(vectors, dimension):
    first = vectors[:, :dimension]
    return first / np.linalg.norm(first, axis=1, keepdims=True)


async def test_the_first_numbers_of_a_vector_are_one_of_unit_length(tiny_models):
    tiny, wanted = tiny_models["bert"], WIDTH // 2
    async with worker_embedder(str(tiny.folder), dimension=wanted).running() as embedder:
        queries = await embedder.embed([TEXT, LONG], are_queries=True)
        documents = await embedder.embed([TEXT, LONG])
        at_once, model = await embedder.query_at_hand(TEXT)
        assert await embedder.identity() == await embedder.identity_at_hand() == model
    assert model.dimension == wanted
    np.testing.assert_allclose(queries, cut(tiny.queries, wanted), atol=NEAR)
    np.testing.assert_allclose(documents, cut(tiny.documents, wanted), atol=NEAR)
    np.testing.assert_allclose(at_once, cut(tiny.queries, wanted)[0], atol=2e-6)


async def test_what_lies_behind_a_models_window_is_not_read_and_the_window_is_known(tiny_models):
    tiny = tiny_models["bert"]
    window = window_of(tiny.folder)
    assert window == TOKENS
    read = " ".join(["cats"] * (window // 2))
    async with worker_embedder(str(tiny.folder)).running() as embedder:
        beyond, other, within = await embedder.embed(
            [f"{read} {read} {read} dogs", f"{read} {read} {read} birds", f"{read} dogs {read}"]
        )
    np.testing.assert_allclose(beyond, other, atol=1e-5)
    assert np.abs(beyond - within).max() > NEAR


async def test_more_numbers_than_a_model_has_are_refused_with_what_to_do(tiny_models):
    name = str(tiny_models["bert"].folder)
    async with worker_embedder(name, dimension=WIDTH + 1).running() as embedder:
        assert await embedder.query_at_hand(TEXT) is None
        with pytest.raises(ModelNotFoundError, match="17 are wanted; remedy of model_too_short$"):
            await embedder.embed([TEXT])


async def test_an_index_never_mixes_vectors_of_different_lengths(tiny_models, tmp_path):
    """Kept for a while with whole vectors, then cut ones, then whole ones: cached, all of them."""
    root = tmp_path / "project"
    root.mkdir()
    write(root, {"cats.txt": TEXT, "long.txt": LONG})
    computed = {}
    for step, wanted in enumerate((0, 8, 4, 0, 8)):
        embedder = worker_embedder(str(tiny_models["bert"].folder), dimension=wanted)
        codebase = codebase_of(root, embedder)
        async with serving(codebase) as client:
            await call(client, "search_index", query="a cat")  # which looks whose vectors they are

            async def status_of_this_length(client=client, wanted=wanted or WIDTH):
                status = await settled(client)
                return status["model"]["dimension"] == wanted and status

            status = await eventually(status_of_this_length)
            answer = await call(client, "search_index", query="where do cats sleep")
            assert (answer["mode"], answer["note"]) == ("hybrid", None)
        model = status["model"]
        assert ("numbers" in model["name"]) == bool(wanted)
        computed[step] = model["chunks_embedded"]
    assert computed == {0: 2, 1: 2, 2: 2, 3: 0, 4: 0}


async def test_datasets_are_searched_with_whole_vectors(tiny_models, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    name = str(tiny_models["bert"].folder)
    settings = Settings(embedding_model=name, embedding_dimension=4)
    datasets = load_datasets(tmp_path / "datasets", settings)
    texts = tmp_path / "texts"
    texts.mkdir()
    order = order_of({"sourcePath": str(texts), "datasetId": "x", "name": "X"})
    vector, _ = await datasets._models.embedded(name, TEXT)
    assert vector.shape == (WIDTH,)
    made = index_of_texts(order, tmp_path / "datasets", settings)
    assert (await made.embedder.identity_at_hand()).dimension == WIDTH
    project = load_codebase(tmp_path, settings)
    assert (await project.index.embedder.identity_at_hand()).dimension == 4


async def test_a_model_whose_architecture_is_its_own_code_is_refused_with_what_to_do(tmp_path):
    (tmp_path / "model.safetensors").write_bytes(b"")
    (tmp_path / "configuration_mine.py").write_text("raise SystemExit('it has run')")
    auto = {"AutoConfig": "configuration_mine.MyConfig", "AutoModel": "modeling_mine.MyModel"}
    config = {"model_type": "mine", "hidden_size": 8, "auto_map": auto}
    (tmp_path / "config.json").write_text(json.dumps(config))
    async with worker_embedder(str(tmp_path)).running() as embedder:
        with pytest.raises(ModelNotFoundError, match="; remedy of model_with_code$"):
            await embedder.embed([TEXT])
