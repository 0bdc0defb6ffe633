"""Texts embedded by a server with OpenAI's API: real HTTP, and whatever such servers do."""

import json
import logging
import os
from contextlib import asynccontextmanager
from functools import partial

import anyio
import numpy as np
import pytest
from embedding_servers import changed, refused, said, served
from fakes import vector_of
from other_process import printed_by
from serving import contents, converged
from waiting import PATIENCE_SECONDS, eventually
from writing import write

from vector_index_mcp.codebase import text, wire
from vector_index_mcp.doctor import finding, model
from vector_index_mcp.doctor.subject import Project
from vector_index_mcp.engine.models import remote
from vector_index_mcp.engine.models.cache import EmbeddingCache
from vector_index_mcp.engine.models.embed import WorkerEmbedder
from vector_index_mcp.engine.models.probed_model import PROBE, Server
from vector_index_mcp.engine.models.remote import Patience, ServerEmbedder
from vector_index_mcp.errors import EmbeddingError, ModelNotFoundError
from vector_index_mcp.indexing.vectors import task as vectors
from vector_index_mcp.processes import children
from vector_index_mcp.serving.embedding_server import server_embedder
from vector_index_mcp.serving.loading import load_codebase
from vector_index_mcp.settings import Settings

pytestmark = [
    pytest.mark.anyio,
    # Of the server: it gives up its sockets when it is collected.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

TEXTS = ["read the settings", "a bird sings", "def main(): pass"]
LONG_AGO = "Wed, 21 Oct 2015 07:28:00 GMT"


@pytest.fixture
def server():
    with served() as server:
        yield server


def remedy_of(problem):
    return f"remedy of {problem}"


class Pauses(list):
    """Notes how long somebody would have slept."""

    async def __call__(self, seconds):
        self.append(seconds)
        await anyio.lowlevel.checkpoint()


def embedder_of(url, folder, *, dimension=0, is_local=True, pauses=None, **patience):
    quick = {"pause": 1.0, "total": 10.0, "short_total": 10.0, "look": 0.01, "longest_look": 0.01}
    return ServerEmbedder(
        Server(url, "127.0.0.1", is_local, "small", dimension),
        EmbeddingCache(folder / "cache", 100_000_000),
        WorkerEmbedder("", start_worker=children.start, remedy_of=remedy_of),
        key_of=lambda: "geheim",
        mask=lambda text: text.replace("hunter2", "*******"),
        remedy_of=remedy_of,
        patience=Patience(**(quick | patience)),
        sleep=Pauses() if pauses is None else pauses,
    )


@pytest.fixture
async def embedder(server, tmp_path):
    async with embedder_of(server.url, tmp_path).running() as embedder:
        yield embedder


def expected(texts, seed="small", dimension=64):
    rows = np.array([vector_of(text, seed, 64) for text in texts])[:, :dimension]
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


@pytest.mark.parametrize("are_queries", [False, True])
async def test_each_text_gets_its_vector_of_unit_length(embedder, server, are_queries):
    vectors = await embedder.embed(TEXTS, are_queries=are_queries)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(vectors, expected(TEXTS), atol=1e-6)
    assert (embedder.state, embedder.reason, embedder.pid) == ("ready", "", None)
    assert {*server.paths} == {"/v1/embeddings"}
    assert (await embedder.embed([], are_queries=are_queries)).shape == (0, 64)


async def test_a_server_that_knows_no_base64_is_asked_for_numbers(embedder, server):
    server.takes_base64 = False
    np.testing.assert_allclose(await embedder.embed(TEXTS), expected(TEXTS), atol=1e-6)


async def test_making_one_asks_nothing(server, tmp_path):
    embedder = embedder_of(server.url, tmp_path)
    async with embedder.running():
        assert (embedder.state, await embedder.identity_at_hand()) == ("off", None)
    assert server.asked == []


async def test_many_and_long_texts_go_in_requests_that_servers_take(embedder, server):
    texts = [f"text {number}" for number in range(150)] + ["x" * 200_000, "", "half \ud800"]
    vectors = await embedder.embed(texts)
    assert len(vectors) == len(texts)
    np.testing.assert_allclose(vectors[:150], expected(texts[:150]), atol=1e-6)
    assert max(map(len, server.asked)) <= 65
    assert max(len(text) for request in server.asked for text in request) <= 64_000
    assert min(len(text) for request in server.asked for text in request) == 1
    assert server.asked[-1][-1] == "half ?"


async def test_only_some_numbers_are_used(server, tmp_path):
    async with embedder_of(server.url, tmp_path, dimension=16).running() as embedder:
        vectors = await embedder.embed(TEXTS)
        np.testing.assert_allclose(vectors, expected(TEXTS, dimension=16), atol=1e-6)
        identity = await embedder.identity()
        assert (identity.name, identity.dimension) == ("small (16 of 64 numbers)", 16)
    async with embedder_of(server.url, tmp_path).running() as whole:
        assert (await whole.identity()).digest != identity.digest


async def test_more_numbers_than_there_are_cannot_be_used(server, tmp_path):
    async with embedder_of(server.url, tmp_path, dimension=65).running() as embedder:
        with pytest.raises(ModelNotFoundError, match=r"64 numbers, and 65 .* model_too_short$"):
            await embedder.embed(TEXTS)
        server.dimension = 128
        embedder.retry()
        assert (await embedder.embed(TEXTS)).shape == (3, 65)


# -- what goes wrong for a while -----------------------------------------------------------


@pytest.mark.parametrize(
    ("reply", "pauses"),
    [
        *((refused(status), [1.0]) for status in (408, 429, 500, 502, 503, 504)),
        (refused(429, Retry_After="0"), [1.0]),
        (refused(429, Retry_After="7"), [7.0]),
        (refused(503, Retry_After="3600"), [8.0]),
        (refused(503, Retry_After=LONG_AGO), [1.0]),
        (refused(503, Retry_After="later"), [1.0]),
        (refused(503, Retry_After="nan"), [1.0]),
    ],
)
async def test_a_server_that_is_busy_is_asked_again(server, tmp_path, reply, pauses):
    slept = Pauses()
    embedder = embedder_of(server.url, tmp_path, pauses=slept, longest_pause=8.0)
    async with embedder.running():
        await embedder.identity()
        server.script.append(reply)
        np.testing.assert_allclose(await embedder.embed(TEXTS), expected(TEXTS), atol=1e-6)
    assert slept == pauses


async def test_pauses_grow_up_to_a_total(server, tmp_path):
    slept = Pauses()
    async with embedder_of(server.url, tmp_path, pauses=slept, look=1e6).running() as embedder:
        await embedder.identity()
        server.script += [refused(429)] * 99
        with pytest.raises(ModelNotFoundError, match=r"HTTP 429; remedy of server_silent$"):
            await embedder.embed(TEXTS)
        assert slept[:3] == [1.0, 2.0, 4.0]
        assert embedder.state == "unavailable"


async def test_a_query_is_not_asked_for_long(server, tmp_path):
    slept = Pauses()
    patience = {"pauses": slept, "short_total": 4.0, "look": 1e6}
    async with embedder_of(server.url, tmp_path, **patience).running() as embedder:
        await embedder.identity()
        server.script += [refused(503)] * 99
        assert await embedder.query_at_hand("where is it") is None
        assert slept[:2] == [1.0, 2.0]
        assert 4.0 not in slept
        assert embedder.state == "unavailable"


async def test_a_server_that_never_answers_is_given_up(server, tmp_path):
    patience = {"answer": 0.5, "total": 0.01, "short_total": 0.01, "look": 1e6}
    async with embedder_of(server.url, tmp_path, **patience).running() as embedder:
        server.released.clear()
        with pytest.raises(ModelNotFoundError, match="127.0.0.1 does not answer within 0.5 s"):
            await embedder.embed(TEXTS)
        assert await embedder.query_at_hand("a query") is None
        server.released.set()
        embedder.retry()
        assert (await embedder.embed(TEXTS)).shape == (3, 64)


async def test_a_query_does_not_wait_for_a_server_that_hangs(server, tmp_path):
    async with embedder_of(server.url, tmp_path, query=0.05).running() as embedder:
        await embedder.identity()
        server.released.clear()
        assert await embedder.query_at_hand("where is it") is None
        assert embedder.state == "ready"
        server.released.set()


async def test_who_gives_up_disturbs_nobody(embedder, server):
    await embedder.identity()
    server.released.clear()
    for are_queries in (False, True):
        before = len(server.asked)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(partial(embedder.embed, TEXTS, are_queries=are_queries))
            await eventually(partial(_is_asked, server, before))
            tasks.cancel_scope.cancel()
    server.released.set()
    np.testing.assert_allclose(await embedder.embed(TEXTS), expected(TEXTS), atol=1e-6)


async def _is_asked(server, before):
    return len(server.asked) > before


async def test_a_query_comes_before_the_batches(embedder, server):
    await embedder.identity()
    server.released.clear()
    before = len(server.asked)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(embedder.embed, [f"text {number}" for number in range(200)])
        await eventually(partial(_is_asked, server, before))
        tasks.start_soon(partial(embedder.embed, ["a query"], are_queries=True))
        await eventually(partial(_is_asked, server, before + 1))
        server.released.set()
    order = [request[1] for request in server.asked[before:]]
    assert order == ["text 0", "a query", "text 64", "text 128", "text 192"]


async def test_no_batch_is_begun_while_a_query_waits(embedder, server, monkeypatch):
    await embedder.identity()
    begun = []

    async def noted(path, body, post=embedder._api.post, **limits):
        begun.append(body["input"][1])
        return await post(path, body, **limits)

    monkeypatch.setattr(embedder._api, "post", noted)
    server.released.clear()
    before = len(server.asked)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(partial(embedder.embed, ["a query"], are_queries=True))
        await eventually(partial(_is_asked, server, before))
        tasks.start_soon(embedder.embed, ["a batch"])
        await anyio.wait_all_tasks_blocked()
        assert begun == ["a query"]
        server.released.set()
    assert begun == ["a query", "a batch"]


@pytest.mark.parametrize("are_queries", [False, True])
async def test_nobody_waits_long_for_a_server_that_is_gone(tmp_path, are_queries):
    slept = Pauses()
    with served() as server:
        embedder = embedder_of(server.url, tmp_path, pauses=slept, total=1e6, look=1e6)
        stack = embedder.running()
        await stack.__aenter__()
        await embedder.identity()
    try:
        with pytest.raises(ModelNotFoundError, match="cannot be reached"):
            await embedder.embed(TEXTS, are_queries=are_queries)
        # The connection that was kept, a new one, and that once more; then the check looks for it.
        assert slept in ([1.0], [1.0, 2.0], [1.0, 2.0, 1.0])
        assert embedder.state == "unavailable"
    finally:
        await stack.__aexit__(None, None, None)


async def test_a_server_that_was_killed_is_found_again(tmp_path):
    with served() as server:
        url, port = server.url, server.server_port
        embedder = embedder_of(url, tmp_path)
        stack = embedder.running()
        await stack.__aenter__()
        known = await embedder.identity()
    try:
        with pytest.raises(ModelNotFoundError, match=r"cannot be reached .* server_silent$"):
            await embedder.embed(TEXTS)
        assert embedder.state == "unavailable"
        with served(port) as server:

            async def is_there():
                return embedder.state == "ready"

            await eventually(is_there)
            np.testing.assert_allclose(await embedder.embed(TEXTS), expected(TEXTS), atol=1e-6)
            assert await embedder.identity() == known
    finally:
        await stack.__aexit__(None, None, None)


# -- what is wrong until somebody does something -------------------------------------------


@pytest.mark.parametrize(
    ("status", "problem"),
    [(401, "refuses"), (403, "refuses"), (404, "invalid"), (501, "invalid"), (418, "invalid")],
)
async def test_what_somebody_must_mend_is_told_and_not_asked_again(
    server, tmp_path, status, problem
):
    server.script += [refused(status)] * 2
    async with embedder_of(server.url, tmp_path).running() as embedder:
        with pytest.raises(ModelNotFoundError, match=f"HTTP {status}; remedy of server_{problem}$"):
            await embedder.embed(TEXTS)
        with pytest.raises(ModelNotFoundError, match=f"HTTP {status}"):
            await embedder.embed(TEXTS)
        await eventually(partial(_looks_no_more, embedder))
        assert len(server.asked) == 1
        server.script.clear()
        embedder.retry()
        assert (await embedder.embed(TEXTS)).shape == (3, 64)


async def _looks_no_more(embedder):
    return not embedder._is_connecting


async def test_no_redirect_is_followed(server, tmp_path):
    with served() as other:
        server.script.append(refused(307, Location=f"{other.url}/embeddings"))
        async with embedder_of(server.url, tmp_path).running() as embedder:
            with pytest.raises(ModelNotFoundError, match="leads elsewhere and is not followed"):
                await embedder.embed(TEXTS)
        assert other.asked == []


async def test_no_proxy_is_asked_for_a_server_of_this_machine(server, tmp_path, monkeypatch):
    with served() as proxy:
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, proxy.url)
        async with embedder_of(server.url, tmp_path).running() as embedder:
            assert (await embedder.embed(TEXTS)).shape == (3, 64)
        assert proxy.asked == []


# -- texts that cannot be embedded, and answers that make no sense -------------------------


def rows(change):
    """The right answer, with `change` done to its rows."""
    return changed(lambda answer: change(answer["data"]))


def embedding(value):
    return rows(lambda data: data[0].update(embedding=value))


NOT_FINITE = json.dumps({"data": [{"index": n, "embedding": [float("nan")]} for n in range(4)]})
WITHOUT = "answers without the vectors of 4 texts"


@pytest.mark.parametrize(
    ("reply", "sentence"),
    [
        (refused(422), "answers with HTTP 422"),
        (refused(400), "answers with HTTP 400"),
        (refused(413), "answers with HTTP 413"),
        (rows(lambda data: data.pop()), WITHOUT),
        (rows(lambda data: data.append(data[0])), "answers with 5 vectors for 4 texts"),
        (rows(lambda data: data[0].update(index=2)), WITHOUT),
        (rows(lambda data: data[0].update(index=[])), WITHOUT),
        (rows(lambda data: data[0].pop("embedding")), WITHOUT),
        (embedding([1.0] * 63), "answers with vectors of different or impossible lengths"),
        (embedding([]), "answers with vectors of different or impossible lengths"),
        (embedding([0.0] * 64), "answers with vectors that are zero or no numbers"),
        (embedding([1e400] * 64), "answers with vectors that are zero or no numbers"),
        (embedding([[1.0]] * 64), WITHOUT),
        (embedding([10**400]), WITHOUT),
        (embedding(["x"] * 64), WITHOUT),
        (embedding("no base64!"), WITHOUT),
        (embedding("AAAA"), WITHOUT),
        (embedding(None), WITHOUT),
        (said(NOT_FINITE.encode()), "answers with vectors that are zero or no numbers"),
        (said(b"[]"), WITHOUT),
        (said(b'{"data": 1}'), WITHOUT),
        (said(b""), "answers with something that is no JSON"),
        (said(b"[" * 20_000), "answers with something that is no JSON"),
        (said(b"\xff\xfe"), "answers with something that is no JSON"),
        (said(b" " * 100_000), "answers with more than"),
        (said(b"", Content_Encoding="gzip"), "answers with something compressed"),
    ],
)
async def test_what_makes_no_sense_is_refused_with_a_sentence(
    embedder, server, caplog, reply, sentence
):
    await embedder.identity()
    caplog.set_level(logging.DEBUG)
    server.script.append(reply)
    with pytest.raises(EmbeddingError) as caught:
        await embedder.embed(TEXTS)
    words = f"3 texts could not be embedded: the server at 127.0.0.1 {sentence}"
    assert str(caught.value).startswith(words)
    assert type(caught.value) is EmbeddingError
    assert embedder.state == "ready"
    shown = f"{caplog.text} {caught.value} {caught.value.__cause__} {embedder.notice}"
    assert not any(text in shown for text in (*TEXTS, PROBE, "geheim"))
    np.testing.assert_allclose(await embedder.embed(TEXTS), expected(TEXTS), atol=1e-6)


@pytest.mark.parametrize("reply", [refused(422), said(b"nonsense"), said(NOT_FINITE.encode())])
async def test_a_server_that_embeds_nothing_is_no_embedding_server(embedder, server, reply):
    server.script += [reply] * 5
    with pytest.raises(ModelNotFoundError, match="remedy of server_invalid$"):
        await embedder.embed(TEXTS)


async def test_a_text_that_the_server_fails_on_again_and_again_is_given_up(embedder, server):
    await embedder.identity()
    server.script += [refused(500)] * 3
    with pytest.raises(EmbeddingError, match="3 texts .* HTTP 500") as caught:
        await embedder.embed(TEXTS)
    assert type(caught.value) is EmbeddingError


async def test_the_key_is_told_to_the_server_and_to_nobody_else(server, tmp_path, caplog):
    caplog.set_level(logging.DEBUG)
    server.key = "another"
    async with embedder_of(server.url, tmp_path).running() as embedder:
        with pytest.raises(ModelNotFoundError) as caught:
            await embedder.embed(TEXTS)
        assert server.heads[0]["Authorization"] == "Bearer geheim"
        shown = f"{caplog.text} {caught.value} {embedder.reason} {embedder.notice}"
        assert "geheim" not in shown
        assert not any(text in shown for text in TEXTS)


async def test_what_is_sent_is_masked(embedder, server):
    await embedder.embed(["login with hunter2"])
    await embedder.query_at_hand("hunter2 is it")
    assert server.asked[-2:] == [[PROBE, "login with *******"], [PROBE, "******* is it"]]


# -- which model it is ---------------------------------------------------------------------


async def test_another_model_behind_the_same_name_is_another_model(embedder, server):
    first = await embedder.identity()
    server.seed = "other"
    np.testing.assert_allclose(await embedder.embed(TEXTS), expected(TEXTS, "other"), atol=1e-6)
    second = await embedder.identity()
    assert (second.name, second.dimension) == (first.name, first.dimension)
    assert second.digest != first.digest
    server.dimension = 4096
    assert (await embedder.embed(TEXTS)).shape == (3, 4096)
    assert (await embedder.identity()).dimension == 4096


async def test_a_model_that_changes_in_the_middle_mixes_no_vectors(embedder, server):
    await embedder.identity()
    texts = [f"text {number}" for number in range(100)]

    def change(answer):
        server.seed = "other"  # from the next request on
        return changed(lambda _: None)(answer)

    server.script.append(change)
    np.testing.assert_allclose(await embedder.embed(texts), expected(texts, "other"), atol=1e-6)


async def test_a_server_with_a_model_for_each_request_is_refused(embedder, server):
    await embedder.identity()

    def alternating(answer):
        server.seed = "other" if server.seed == "small" else "small"
        return changed(lambda _: None)(answer)

    server.script += [alternating] * 20
    with pytest.raises(EmbeddingError, match="one model after another|several models"):
        await embedder.embed(TEXTS * 50)


async def test_noise_makes_no_other_model_not_even_after_a_restart(server, tmp_path):
    async with embedder_of(server.url, tmp_path).running() as embedder:
        known = await embedder.identity()
        server.noise = 0.005
        await embedder.embed(TEXTS)
        assert await embedder.identity() == known
    async with embedder_of(server.url, tmp_path).running() as embedder:
        assert await embedder.identity() == known


async def test_a_model_that_is_only_a_little_different_is_another(embedder, server):
    known = await embedder.identity()
    server.noise = 0.05
    await embedder.embed(TEXTS)
    assert (await embedder.identity()).digest != known.digest


async def test_other_servers_have_other_models(server, tmp_path):
    async with embedder_of(server.url, tmp_path).running() as embedder:
        known = await embedder.identity()
    with served() as other:
        async with embedder_of(other.url, tmp_path).running() as embedder:
            assert (await embedder.identity()).digest != known.digest


async def test_what_must_be_known_is_said(server, tmp_path):
    async with embedder_of(server.url, tmp_path).running() as embedder:
        assert embedder.notice == "texts are embedded by the server at 127.0.0.1"
        server.name = "\x1b[2Jlarge"
        await embedder.embed(TEXTS)
        assert embedder.notice.endswith("asked for the model small, it answers with ?[2Jlarge")
    away = embedder_of(server.url, tmp_path, is_local=False)
    assert away.notice.endswith("127.0.0.1: they leave this machine, and so do queries")


# -- as the settings say -------------------------------------------------------------------


@asynccontextmanager
async def by_settings(server, tmp_path, **fields):
    settings = Settings(embedding_url=server.url, embedding_model="small", **fields)
    cache = EmbeddingCache(tmp_path / "cache", 100_000_000)
    none = WorkerEmbedder("", start_worker=children.start, remedy_of=remedy_of)
    async with server_embedder(settings, cache, none, remedy_of).running() as embedder:
        with anyio.fail_after(PATIENCE_SECONDS):
            yield embedder


async def test_the_key_may_stand_in_a_file(server, tmp_path):
    file = tmp_path / "key"
    file.write_text("geheim\n", "utf-8")
    async with by_settings(server, tmp_path, embedding_key_file=str(file)) as embedder:
        assert (await embedder.embed(TEXTS)).shape == (3, 64)
        assert await embedder.query_at_hand("password=hunter2-Xk9fQ2") is not None
        assert "hunter2" not in str(server.asked[-1])


@pytest.mark.parametrize("content", [None, b"", b"two words", b"\xff\xfe", b"x" * 20_000])
async def test_a_file_that_holds_no_key_is_told(server, tmp_path, content):
    file = tmp_path / "key"
    if content is not None:
        file.write_bytes(content)
    async with by_settings(server, tmp_path, embedding_key_file=str(file)) as embedder:
        with pytest.raises(ModelNotFoundError, match="the key .* cannot be read .*key ") as caught:
            await embedder.embed(TEXTS)
    assert "two words" not in str(caught.value)
    assert str(caught.value).endswith("remedy of server_refuses")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes")
async def test_a_pipe_holds_no_key(server, tmp_path):
    os.mkfifo(tmp_path / "key")
    async with by_settings(server, tmp_path, embedding_key_file=str(tmp_path / "key")) as embedder:
        with pytest.raises(ModelNotFoundError, match="is not a file"):
            await embedder.embed(TEXTS)


def settings_of(server, tmp_path, **fields):
    given = {"embedding_url": server.url, "embedding_model": "small", "embedding_key": "geheim"}
    beside = {"embedding_cache_dir": str(tmp_path / "cache"), "rescan_seconds": 3_600}
    return Settings(**given | beside | fields)


@pytest.fixture
def project(tmp_path, monkeypatch):
    for name in ("HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, str(tmp_path / name))
    return write(
        tmp_path / "project",
        {
            "garage.py": "def automobile():\n    return 'wheels'\n",
            "sky.py": "def cloud():\n    return 'rain'\n",
        },
    )


def models_in(server, texts_before=0):
    return [text for request in server.asked[texts_before:] for text in request]


async def test_a_project_is_indexed_and_searched_by_a_server(server, tmp_path, project):
    codebase = load_codebase(project, settings_of(server, tmp_path))
    async with codebase.running():
        await converged(codebase)
        answer = await codebase.search("vehicle password=hunter2-Xk9fQ2", 1)
        assert answer.hits[0].chunk.key == "garage.py"  # the fake model knows that word
        assert answer.is_hybrid
        status = await wire.index_status(codebase)
        assert (status.model.name, status.model.state) == ("small", "ready")
        assert status.model.server == "texts are embedded by the server at 127.0.0.1"
        assert "embedding: texts are embedded by the server" in text.of_status(status)
        assert "geheim" not in status.model_dump_json()
        assert status.worker_memory_bytes is None
    assert "hunter2" not in str(server.asked)

    before = len(server.asked)
    async with (again := load_codebase(project, settings_of(server, tmp_path))).running():
        await converged(again)
        assert (await again.search("vehicle", 1)).hits[0].chunk.key == "garage.py"
    assert models_in(server, before) == [PROBE, PROBE, "vehicle"]  # nothing is embedded twice


async def test_an_index_follows_the_model_that_the_server_has(server, tmp_path, project):
    codebase = load_codebase(project, settings_of(server, tmp_path))
    async with codebase.running():
        await converged(codebase)
        first = (await codebase.index.status()).model
        server.seed = "other"
        await codebase.search("vehicle", 1)

        async def is_embedded_anew():
            model = (await codebase.index.status()).model
            return model.digest != first.digest and not codebase.index.ledger.unembedded_count

        await eventually(is_embedded_anew)
        await converged(codebase)
        assert (await codebase.search("vehicle", 1)).hits[0].chunk.key == "garage.py"
    rows, _ = await contents(project / ".lancedb")
    held = np.array([row["vector"] for row in rows.values()])
    sent = [each for each in models_in(server) if "def " in each]
    assert held.shape == (2, 64)
    assert (held @ expected(sent, "other").T).max(axis=1).min() > 0.999


async def test_an_index_goes_on_when_its_server_is_back(tmp_path, project, monkeypatch):
    monkeypatch.setattr(vectors, "_GLANCE_SECONDS", 0.01)
    monkeypatch.setattr(remote, "Patience", partial(Patience, short_total=0.0, look=0.01))
    with served() as server:
        port = server.server_port
    codebase = load_codebase(project, settings_of(server, tmp_path))
    async with codebase.running():

        async def is_given_up():
            return codebase.index.progress.embedder_state == "unavailable"

        await eventually(is_given_up)
        answer = await codebase.search("automobile", 1)
        assert (answer.is_hybrid, answer.hits[0].chunk.key) == (False, "garage.py")
        assert "cannot be reached" in (await codebase.index.status()).progress.embedder_reason
        with served(port):

            async def is_embedded():
                return (await codebase.index.status()).embedded == 2

            await eventually(is_embedded)


@pytest.mark.parametrize(
    ("key", "name", "verdict", "words"),
    [
        ("geheim", "small", finding.Verdict.OK, "small, 64 numbers a vector; texts are embedded"),
        ("geheim", "large", finding.Verdict.WARNING, "it answers with large"),
        ("wrong", "small", finding.Verdict.FAILED, "at 127.0.0.1 answers with HTTP 401"),
    ],
)
def test_the_doctor_examines_the_server(server, tmp_path, project, key, name, verdict, words):
    server.name = name
    asked, like, _ = model._TEXTS
    server.meanings[like] = f"{asked} and more"
    settings = settings_of(server, tmp_path, embedding_key=key)
    subject = Project(project, settings)
    case = finding.Case(subject, settings, {}, tmp_path / "cache", tmp_path / "state")
    found = model.model(case)
    assert (found.verdict, words in found.words) == (verdict, True), found
    assert bool(found.remedy) == (verdict is not finding.Verdict.OK)
    assert "geheim" not in str(found)
    assert "wrong" not in str(found)


EMBEDS = """
import sys, anyio
from pathlib import Path
from vector_index_mcp.codebase.remedies import REMEDIES
from vector_index_mcp.serving.loading import _embedder_of
from vector_index_mcp.settings import Settings

async def main():
    settings = Settings(embedding_url=sys.argv[1], embedding_key="geheim", embedding_model="small",
                        embedding_cache_dir=sys.argv[2])
    async with _embedder_of(settings, REMEDIES).running() as embedder:
        assert (await embedder.embed(["text"])).shape == (1, 64)
        heavy = {"torch", "transformers", "sentence_transformers", "huggingface_hub"}
        print("embedded", embedder.pid, *(heavy & set(sys.modules)))

anyio.run(main)
"""


def test_no_model_library_is_imported(server, tmp_path):
    assert printed_by(EMBEDS, server.url, str(tmp_path)) == ["embedded", "None"]
