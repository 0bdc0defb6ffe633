"""What the real worker does with a cross-encoder: other work goes on, and nobody waits for it."""

import json
import os
import shutil
import signal
import sys
from contextlib import suppress
from functools import partial

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file
from serving import call, codebase_of, serving, settled
from tiny_models import LONG, TEXT
from waiting import eventually
from writing import write

from vector_index_mcp.engine.models.embed import WorkerEmbedder
from vector_index_mcp.errors import EmbeddingError
from vector_index_mcp.processes import children

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.long,
    pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGSTOP and no pipe"),
]
NEAR = 0.02  # some processors compute in bfloat16
QUESTION = "where do the cats sleep in the evening"


@pytest.fixture
def tiny(tiny_models, tmp_path):
    """A folder with a model, a cross-encoder and what that thinks; of this test alone."""
    return shutil.copytree(tiny_models["bert"].folder.parent, tmp_path / "tiny")


@pytest.fixture
def worker(tiny):
    start = partial(WorkerEmbedder, start_worker=children.start, remedy_of=str)
    return start(str(tiny / "bert"), reranker_name=str(tiny / "judge"))


def opened_once_it_is_read(pipe):
    """The end of a pipe to write to; nothing while nobody reads it."""
    with suppress(OSError):
        return os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)


async def test_texts_are_embedded_while_it_is_loaded(tiny, worker):
    pipe = tiny / "judge" / "extra.txt"  # whoever reads the model waits for its end
    os.mkfifo(pipe)
    try:
        async with worker.running() as embedder:
            embedder.start_reranker()
            end = await eventually(lambda: opened_once_it_is_read(pipe))
            assert (await embedder.embed([TEXT])).shape == (1, 16)
            assert embedder.reranker_state == "loading"
            os.close(end)
            await eventually(lambda: embedder.reranker_state == "ready")
            scores = await embedder.scores(QUESTION, [TEXT, "a dog " * 40, TEXT] * 5)
            assert scores == pytest.approx(scores[:3] * 5, abs=NEAR)
            expected = json.loads((tiny / "judged.json").read_text())
            assert await embedder.scores(TEXT, [TEXT, LONG]) == pytest.approx(expected, abs=NEAR)
            assert abs(expected[0] - expected[1]) > 2 * NEAR
            with pytest.raises(EmbeddingError, match="nobody waits for it any more"):
                await embedder.scores(QUESTION, [TEXT], seconds=-1.0)
    finally:
        pipe.unlink()


def overflowing(source, place, word):
    """A copy of the model with which nothing can be computed for texts with `word`."""
    shutil.copytree(source, place)
    number = json.loads((place / "tokenizer.json").read_text())["model"]["vocab"][word]
    weights = load_file(place / "model.safetensors")
    [table] = [name for name in weights if name.endswith("word_embeddings.weight")]
    weights[table] = weights[table].copy()
    weights[table][number] = np.inf
    save_file(weights, place / "model.safetensors", {"format": "pt"})
    return str(place)


async def test_what_cannot_be_compared_is_no_answer(tiny, tmp_path):
    """Weights of half precision overflow for some texts, and give no number for them."""
    bert = overflowing(tiny / "bert", tmp_path / "bert", "roof")
    judge = overflowing(tiny / "judge", tmp_path / "judge", "roof")
    worker = WorkerEmbedder(bert, start_worker=children.start, remedy_of=str, reranker_name=judge)
    async with worker.running() as embedder:
        with pytest.raises(EmbeddingError, match="numbers for them are infinite or undefined"):
            await embedder.embed(["a dog", TEXT])
        assert np.isfinite(await embedder.embed(["a dog"])).all()
        embedder.start_reranker()
        await eventually(lambda: embedder.reranker_state == "ready")
        with pytest.raises(EmbeddingError, match="could not be ranked.*infinite or undefined"):
            await embedder.scores(QUESTION, ["a dog", TEXT])
        assert len(await embedder.scores(QUESTION, ["a dog"])) == 1


async def test_one_that_is_not_there_is_told_and_looked_for_again_when_somebody_wants(tiny):
    start = partial(WorkerEmbedder, start_worker=children.start, remedy_of=str)
    worker = start(str(tiny / "bert"), reranker_name=str(tiny / "later"))
    async with worker.running() as embedder:
        embedder.start_reranker()
        await eventually(lambda: embedder.reranker_state == "unavailable")
        assert "later does not exist" in embedder.reranker_reason
        assert (await embedder.embed([TEXT])).shape == (1, 16)
        (tiny / "later").symlink_to(tiny / "judge")
        embedder.retry()
        embedder.start_reranker()
        await eventually(lambda: embedder.reranker_state == "ready")
        assert embedder.reranker_reason == ""


async def test_a_search_does_not_wait_for_one_that_hangs(worker, tmp_path):
    root = tmp_path / "project"
    root.mkdir()
    write(root, {f"cat_{n}.txt": f"{TEXT} number {n} sleeps in the evening" for n in range(4)})
    codebase = codebase_of(root, worker, rerank_seconds=0.2)

    async def asked(client):
        answer = await call(client, "search_index", query=QUESTION)
        assert answer["mode"] == "hybrid"
        return [hit["file_path"] for hit in answer["results"]], answer["note"]

    async with serving(codebase) as client:
        await settled(client)
        plain, note = await asked(client)
        assert note == "Ranked without the cross-encoder: it is still loading."
        await eventually(lambda: worker.reranker_state == "ready")
        pid = worker.pid
        os.kill(pid, signal.SIGSTOP)
        try:
            late = "Ranked without the cross-encoder: it took longer than 0.2 s."
            assert await asked(client) == (plain, late)
        finally:
            os.kill(pid, signal.SIGCONT)

        async def is_judged():
            return (await asked(client))[1] is None

        await eventually(is_judged)  # nothing of what nobody waits for is left to be done
        assert worker.pid == pid
