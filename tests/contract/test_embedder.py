"""What the embedding worker promises, kept by the real model in a real process."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import anyio
import numpy as np
import psutil
import pytest
from processes import FAKE_WORKER, with_import_hook
from waiting import eventually

from vector_index_mcp.engine.models.embed import WorkerEmbedder
from vector_index_mcp.engine.models.model import OFFLINE_PACKAGE
from vector_index_mcp.engine.models.question_map import turned
from vector_index_mcp.engine.models.wording import WORDS, WORDS_AND_GIST
from vector_index_mcp.errors import EmbeddingError, ModelNotFoundError, WorkerDiedError
from vector_index_mcp.processes import children, stopping

needs_model = pytest.mark.skipif(
    find_spec(OFFLINE_PACKAGE) is None, reason="the extra `offline` is not installed"
)
pytestmark = [pytest.mark.long, pytest.mark.anyio]
worker_embedder = partial(
    WorkerEmbedder, start_worker=children.start, remedy_of=lambda problem: f"remedy of {problem}"
)

MODEL = "all-MiniLM-L6-v2"
LONG = "where is the configuration of the server read and checked? " * 30
MOST_GROWTH_BYTES = 30_000_000  # 60 MB if freed memory is kept
# Imported by every interpreter that has it on its path: writes to the standard output whenever a
# model library is imported, as some of them do.
CHATTER = """
import os, sys
class Chatty:
    def find_spec(name, path=None, target=None):
        if name.partition(".")[0] in {"torch", "sentence_transformers"}:
            os.write(1, b'{"event": "loading", "library": "chatty"}\\n')
            print("loading", name, flush=True)
            open(CHATTED, "w").close()
sys.meta_path.insert(0, Chatty)
"""


@dataclass
class Started:
    embedder: WorkerEmbedder
    state_when_known: str
    chatted: bool


@pytest.fixture(scope="module")
async def started(tmp_path_factory):
    """A worker that all tests here may use, among chatty libraries."""
    folder = tmp_path_factory.mktemp("chatty")
    chatter = CHATTER.replace("CHATTED", repr(str(folder / "chatted")))
    (folder / "sitecustomize.py").write_text(chatter, encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HF_HUB_OFFLINE", "1")
        patch.setenv("PYTHONPATH", str(folder), prepend=os.pathsep)
        async with worker_embedder(MODEL).running() as embedder:
            await embedder.identity()
            state_when_known = embedder.state
            await embedder.embed(["warm"])
            yield Started(embedder, state_when_known, (folder / "chatted").exists())


@pytest.fixture
def worker(started):
    return started.embedder


@pytest.fixture
async def stand_in(tmp_path, monkeypatch):
    """A worker without a model, which is ready at once: for what the parent does about its end."""
    variables = with_import_hook(tmp_path / "hook", FAKE_WORKER, {})
    monkeypatch.setenv("PYTHONPATH", variables["PYTHONPATH"], prepend=os.pathsep)
    async with worker_embedder(MODEL).running() as embedder:
        await embedder.embed(["warm"])
        yield embedder


@pytest.fixture
def offline(monkeypatch, tmp_path):
    """No hub, and nothing in its cache."""
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hub"))


@needs_model
async def test_a_worker_that_is_given_words_alone_makes_their_vectors(worker):
    code = "def load(path: str) -> Config:\n    return parse(open(path).read())  # ---\n"
    [words, whole] = await worker.embed([WORDS.given(code), code])
    async with worker_embedder(MODEL, wording=WORDS).running() as other:
        [of_words] = await other.embed([code])
        vector, model = await other.query_at_hand(code)
        at_hand = await other.identity_at_hand()
        assert await other.identity() == model == at_hand == WORDS.identity(await worker.identity())
    assert words @ of_words > 0.999 > whole @ of_words
    assert words @ vector > 0.999


@needs_model
async def test_what_code_is_for_brings_its_vector_nearer_to_a_question(worker):
    code = """store.py class Store
def put(self, key, row):
    # Keeps what a user has bought, until the order is paid.
    self._rows.setdefault(key, []).append(row)
    self._dirty.add(key)
    if len(self._rows[key]) > self._most:
        self._rows[key].pop(0)
"""
    [question] = await worker.embed(["where is the shopping cart kept"], are_queries=True)
    async with worker_embedder(MODEL, wording=WORDS_AND_GIST).running() as other:
        [with_gist, plain] = await other.embed([code, "store.py\nx = 1"])
        [as_query] = await other.embed([code], are_queries=True)
        asked, _ = await other.query_at_hand(code)
    assert as_query @ asked > 0.999
    [words] = await worker.embed([WORDS.given(code)])
    assert question @ with_gist > question @ words
    assert 0.8 < words @ with_gist < 0.999 < turned(words) @ as_query
    assert np.linalg.norm(with_gist) == pytest.approx(1, abs=1e-5)
    assert np.linalg.norm(plain) == pytest.approx(1, abs=1e-5)


async def test_making_an_embedder_starts_nothing():
    embedder = worker_embedder(MODEL)
    assert (embedder.state, embedder.reason, embedder.precision) == ("off", "", "")
    assert embedder.pid is None


@needs_model
async def test_the_identity_is_known_before_the_model_is_loaded(started):
    assert started.state_when_known == "loading"
    identity = await started.embedder.identity()
    assert (identity.name, identity.dimension, len(identity.digest)) == (MODEL, 384, 64)


@needs_model
async def test_a_model_that_wants_prompts_gets_one_for_each_kind_of_text(worker, tmp_path):
    model = tmp_path / "prompted"
    original = Path(find_spec(OFFLINE_PACKAGE).submodule_search_locations[0]) / "model"
    shutil.copytree(original, model, copy_function=os.symlink)
    config = model / "config_sentence_transformers.json"
    values = json.loads(config.read_text("utf-8"))
    config.unlink()
    prompts = {"query": "query: ", "document": "passage: "}
    config.write_text(json.dumps(values | {"prompts": prompts}), "utf-8")

    expected = await worker.embed(["query: a cat", "passage: a cat", "a cat"])
    async with worker_embedder(str(model)).running() as prompted:
        [asked] = await prompted.embed(["a cat"], are_queries=True)
        [found] = await prompted.embed(["a cat"])
        assert (await prompted.identity()).digest != (await worker.identity()).digest
    assert [int(np.argmax(expected @ vector)) for vector in (asked, found)] == [0, 1]
    assert asked @ expected[0] > 0.999 > asked @ expected[2]


@needs_model
async def test_a_cross_encoder_judges_texts(tiny_models):
    folder = tiny_models["bert"].folder.with_name("judge")
    async with worker_embedder(MODEL, reranker_name=str(folder)).running() as embedder:
        assert embedder.has_reranker
        texts = ["a cat", "a dog on the roof", "a cat"]
        scores = await embedder.scores("cats", texts)
        assert scores[0] == pytest.approx(scores[2], abs=0.02)
        assert len(set(scores)) > 1
        assert all(0 < score < 1 for score in scores)
        assert (await embedder.embed(texts)).shape == (3, 384)  # as before
    async with worker_embedder("", reranker_name=str(folder)).running() as judge:
        assert await judge.scores("cats", texts) == pytest.approx(scores, abs=0.02)
        with pytest.raises(EmbeddingError, match="this worker has no embedding model"):
            await judge.embed(texts)


@needs_model
async def test_without_a_cross_encoder_nothing_is_judged(worker, tmp_path):
    assert not worker.has_reranker
    with pytest.raises(EmbeddingError, match="no cross-encoder is configured"):
        await worker.scores("cats", ["a cat"])
    async with worker_embedder(MODEL, reranker_name=str(tmp_path / "none")).running() as embedder:
        with pytest.raises(EmbeddingError, match="1 text could not be ranked.*does not exist"):
            await embedder.scores("cats", ["a cat"])
        assert (await embedder.embed(["a cat"])).shape == (1, 384)


@needs_model
async def test_a_worker_that_answered_is_ready(worker):
    assert (worker.state, worker.reason) == ("ready", "")
    assert worker.precision in {"float32", "bfloat16"}
    assert psutil.pid_exists(worker.pid)


@needs_model
@pytest.mark.parametrize("are_queries", [False, True])
@pytest.mark.parametrize(
    "texts",
    [[], ["one"], [""], ["a", LONG, "🙂\x00\u2028\r\n"], [f"text {i}" for i in range(40)]],
    ids=len,
)
async def test_a_batch_is_rows_of_unit_length(worker, texts, are_queries):
    vectors = await worker.embed(texts, are_queries=are_queries)
    assert vectors.shape == (len(texts), 384)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-3)


@needs_model
async def test_the_rows_keep_the_order_of_the_texts(worker):
    texts = ["short", LONG, "a middling text about parsers", "x " * 50, "def main(): pass"]
    together = await worker.embed(texts)
    alone = np.concatenate([await worker.embed([text]) for text in texts])
    assert np.sum(together * alone, axis=1).min() > 0.99
    assert (np.argmax(together @ alone.T, axis=1) == np.arange(len(texts))).all()


@needs_model
async def test_what_means_the_same_is_near(worker):
    texts = ["delete a file from disk", "os.unlink(path)", "the weather is sunny today"]
    query, code, weather = await worker.embed(texts)
    assert query @ code > query @ weather


@needs_model
async def test_each_of_many_callers_gets_its_own_answer(worker):
    texts = [f"text number {number}" for number in range(20)]
    expected = await worker.embed(texts)
    found = {}

    async def ask(number):
        found[number] = await worker.embed([texts[number]], are_queries=number % 2 == 0)

    async with anyio.create_task_group() as tasks:
        for number in range(len(texts)):
            tasks.start_soon(ask, number)
    for number, vectors in found.items():
        assert np.argmax(expected @ vectors[0]) == number


@needs_model
@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGSTOP")
async def test_an_urgent_request_overtakes_a_queue_of_others(worker):
    order = []

    async def ask(name, texts, are_queries=False):
        await worker.embed(texts, are_queries=are_queries)
        order.append(name)

    os.kill(worker.pid, signal.SIGSTOP)  # until it has been asked for everything
    async with anyio.create_task_group() as tasks:
        for number in range(5):
            tasks.start_soon(ask, number, [LONG] * 8)
        await anyio.wait_all_tasks_blocked()
        tasks.start_soon(ask, "urgent", ["where is it?"], True)
        await anyio.wait_all_tasks_blocked()
        os.kill(worker.pid, signal.SIGCONT)
    assert order.index("urgent") <= 2
    assert [name for name in order if name != "urgent"] == list(range(5))


@needs_model
async def test_a_caller_that_gives_up_disturbs_nobody(worker):
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(worker.embed, [LONG] * 16)
        await anyio.wait_all_tasks_blocked()
        tasks.cancel_scope.cancel()
    vectors = await worker.embed(["one", "two"])
    assert vectors.shape == (2, 384)


@needs_model
async def test_texts_that_cannot_be_embedded_cost_no_worker(worker):
    pid = worker.pid
    with pytest.raises(EmbeddingError, match="1 text could not be embedded"):
        await worker.embed(["half a pair \ud800"])
    assert (await worker.embed(["whole"])).shape == (1, 384)
    assert worker.pid == pid


@needs_model
async def test_what_libraries_print_does_not_disturb_the_answers(started):
    assert started.chatted
    assert (await started.embedder.embed(["text"])).shape == (1, 384)


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGSTOP")
async def test_a_worker_killed_in_the_middle_of_a_batch_is_replaced(stand_in):
    pid = stand_in.pid
    os.kill(pid, signal.SIGSTOP)  # so that it is in the middle of whatever it is asked for
    errors = []

    async def ask():
        with pytest.raises(WorkerDiedError, match=r"64 texts could not be embedded: .*died") as e:
            await stand_in.embed(["text"] * 64)
        errors.append(e.value)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(ask)
        tasks.start_soon(ask)
        await anyio.wait_all_tasks_blocked()
        os.kill(pid, signal.SIGKILL)
    assert len(errors) == 2
    with anyio.fail_after(100):
        assert (await stand_in.embed(["next"])).shape == (1, 32)
    assert stand_in.pid not in {None, pid}


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGSTOP")
async def test_a_caller_can_give_up_although_the_worker_reads_nothing(stand_in):
    pid = stand_in.pid
    os.kill(pid, signal.SIGSTOP)
    with anyio.move_on_after(0.2) as given_up:
        await stand_in.embed(["word " * 100_000])
    assert given_up.cancelled_caught
    os.kill(pid, signal.SIGCONT)
    with anyio.fail_after(100):
        assert (await stand_in.embed(["next"])).shape == (1, 32)
    assert stand_in.pid == pid


@pytest.mark.skipif(sys.platform != "linux", reason="about glibc's heaps")
@needs_model
async def test_batches_of_all_shapes_do_not_let_the_worker_grow():
    words = LONG.split() * 4
    async with worker_embedder(MODEL).running() as embedder:
        await embedder.embed([LONG])
        worker = psutil.Process(embedder.pid)
        before = worker.memory_info().rss
        for count in range(1, 33, 3):  # about as much to compute each time, see `batches`
            await embedder.embed([" ".join(words[: 1_300 // count])] * count)
        await eventually(lambda: worker.memory_info().rss - before <= MOST_GROWTH_BYTES)


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGSTOP")
@pytest.mark.parametrize("text", ["text", "word " * 100_000], ids=["short", "fills the pipe"])
async def test_a_worker_that_hangs_is_replaced(stand_in, monkeypatch, text):
    pid = stand_in.pid
    os.kill(pid, signal.SIGSTOP)
    with monkeypatch.context() as patch:
        patch.setattr(stand_in, "_patience_seconds", 0.2)
        with anyio.fail_after(100), pytest.raises(EmbeddingError, match="worker died"):
            await stand_in.embed([text])
    with anyio.fail_after(100):
        assert (await stand_in.embed(["next"])).shape == (1, 32)
    assert stand_in.pid not in {None, pid}


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGSTOP")
async def test_no_worker_is_ended_for_the_time_in_which_the_service_did_not_run(
    stand_in, monkeypatch
):
    """As after Ctrl-Z, or the pause of a container: the answer is there, but nobody has read it."""
    monkeypatch.setattr(stopping, "_LOOK_SECONDS", 0.3)
    patience = 0.6
    monkeypatch.setattr(stand_in, "_patience_seconds", patience)
    pid, found = stand_in.pid, []

    async def ask():
        found.append(await stand_in.embed(["text"]))

    os.kill(pid, signal.SIGSTOP)  # until it has been asked
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(ask)
        await anyio.wait_all_tasks_blocked()
        os.kill(pid, signal.SIGCONT)
        time.sleep(1.5 * patience)  # noqa: ASYNC251 - this process does not run meanwhile
    assert found[0].shape == (await stand_in.embed(["next"])).shape == (1, 32)
    assert stand_in.pid == pid


SERVICE = """
import json, sys
import anyio
from vector_index_mcp.engine.models.embed import WorkerEmbedder
from vector_index_mcp.processes import children

async def main():
    worker = WorkerEmbedder("all-MiniLM-L6-v2", start_worker=children.start, remedy_of=str)
    async with worker.running() as embedder:
        vectors = await embedder.embed(["text"])
        imported = sorted(sys.modules)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(embedder.embed, ["a long text " * 200] * 2000)
            await anyio.wait_all_tasks_blocked()
            report = {"pid": embedder.pid, "shape": vectors.shape, "imported": imported}
            sys.stdout.write(json.dumps(report) + "\\n")
            sys.stdout.flush()

anyio.run(main)
"""


@pytest.fixture(scope="module")
def service():
    """A process that embeds a batch that never ends, and what it tells about itself."""
    process = subprocess.Popen(
        [sys.executable, "-c", SERVICE],
        env={**os.environ, "HF_HUB_OFFLINE": "1"},
        stdout=subprocess.PIPE,
    )
    with process:
        try:
            yield process, json.loads(process.stdout.readline())
        finally:
            process.kill()


@needs_model
async def test_a_process_that_embeds_does_not_import_the_model_libraries(service):
    _, report = service
    assert report["shape"] == [1, 384]
    heavy = {"torch", "transformers", "sentence_transformers", "huggingface_hub", OFFLINE_PACKAGE}
    assert not heavy & set(report["imported"])


@needs_model
async def test_a_worker_ends_with_the_process_it_works_for(service):
    process, report = service
    worker = psutil.Process(report["pid"])
    process.kill()
    process.wait()
    gone, alive = psutil.wait_procs([worker], timeout=30)
    assert not [left for left in alive if left.status() != psutil.STATUS_ZOMBIE]


@needs_model
async def test_a_service_that_ends_does_not_wait_for_the_model(monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    async with worker_embedder(MODEL).running() as embedder:
        await embedder.identity()
        assert embedder.state == "loading"
        pid = embedder.pid
    assert not psutil.pid_exists(pid)
    assert embedder.pid is None


async def test_a_model_that_is_missing_is_told_with_the_remedy(offline):
    async with worker_embedder("nobody/no-such-model").running() as embedder:
        for ask in (
            embedder.identity(),
            embedder.embed(["text"]),
            embedder.embed([], are_queries=True),
        ):
            with pytest.raises(
                ModelNotFoundError, match=r"nobody/no-such.*; remedy of model_nowhere$"
            ):
                await ask
        assert embedder.state == "unavailable"
        assert embedder.reason.endswith("; remedy of model_nowhere")


async def test_nobody_waits_for_a_model_that_turns_out_to_be_missing(offline):
    async with worker_embedder("nobody/no-such-model").running() as embedder:

        async def ask():
            with pytest.raises(ModelNotFoundError):
                await embedder.embed(["text"])

        async with anyio.create_task_group() as tasks:
            for _ in range(5):
                tasks.start_soon(ask)


async def test_a_retry_looks_for_the_model_again(offline, tmp_path):
    folder = tmp_path / "model"
    async with worker_embedder(str(folder)).running() as embedder:
        with pytest.raises(ModelNotFoundError, match="does not exist"):
            await embedder.identity()
        folder.mkdir()
        with pytest.raises(ModelNotFoundError, match="does not exist"):
            await embedder.identity()
        embedder.retry()
        with pytest.raises(ModelNotFoundError, match="no model.safetensors"):
            await embedder.identity()


async def test_a_folder_that_cannot_be_loaded_is_told_with_the_remedy(offline, tmp_path):
    (tmp_path / "config.json").write_text('{"hidden_size": 4}', encoding="utf-8")
    (tmp_path / "model.safetensors").write_text("not weights", encoding="utf-8")
    async with worker_embedder(str(tmp_path)).running() as embedder:
        assert (await embedder.identity()).dimension == 4
        with pytest.raises(ModelNotFoundError, match="loaded .*; remedy of model_unloadable$"):
            await embedder.embed(["text"])
        assert embedder.pid is None


async def test_no_process_is_started_to_tell_that_a_folder_has_no_model(tmp_path):
    async def start(*_, **__):
        pytest.fail("a worker is started")

    for folder, words in ((tmp_path / "nowhere", "does not exist"), (tmp_path, "no model.safe")):
        async with worker_embedder(str(folder), start_worker=start).running() as embedder:
            with pytest.raises(ModelNotFoundError, match=rf"{words}.*; remedy of model_"):
                await embedder.embed(["text"])


async def test_a_retry_never_meets_the_worker_before_it(offline):
    before = set(psutil.Process().children())
    async with worker_embedder("nobody/no-such-model").running() as embedder:
        for _ in range(5):
            with pytest.raises(ModelNotFoundError, match="could not be downloaded"):
                await embedder.embed(["text"])
            assert set(psutil.Process().children()) == before
            embedder.retry()


async def test_a_worker_that_talks_nonsense_is_given_up(monkeypatch, tmp_path):
    (tmp_path / "sitecustomize.py").write_text("print('nonsense')", encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
    async with worker_embedder(MODEL).running() as embedder:
        with pytest.raises(ModelNotFoundError, match="3 times in a row .*; remedy of worker_dies$"):
            await embedder.embed(["text"])
        assert embedder.pid is None


@pytest.mark.parametrize(
    "frame",
    [
        "[]",
        "5",
        "null",
        '{"rows": 1, "dimension": 1}',
        '{"id": 2}',
        '{"id": 2, "rows": "x", "dimension": 32}',
        '{"id": 2, "rows": -1, "dimension": -1}',
        '{"event": "model"}',
        '{"event": "unavailable"}',
    ],
)
async def test_a_worker_whose_answer_is_none_is_replaced_and_that_is_logged(
    frame, tmp_path, monkeypatch, caplog
):
    once = tmp_path / "once"
    odd = f"""
        if request["id"] == 2 and not os.path.exists({str(once)!r}):
            open({str(once)!r}, "w").close()
            sys.stdout.buffer.write({frame.encode()!r} + bytes([10]) + bytes(8))
            sys.stdout.buffer.flush()
            continue
        texts = request["texts"]
"""
    worker = FAKE_WORKER.replace('        texts = request["texts"]\n', odd.lstrip("\n"))
    variables = with_import_hook(tmp_path / "hook", worker, {})
    monkeypatch.setenv("PYTHONPATH", variables["PYTHONPATH"], prepend=os.pathsep)
    with anyio.fail_after(100):
        async with worker_embedder(MODEL).running() as embedder:
            await embedder.embed(["warm"])
            with pytest.raises(EmbeddingError, match="worker died"):
                await embedder.embed(["text"])
            assert "it sent no valid answer" in caplog.text
            assert (await embedder.embed(["next"])).shape == (1, 32)


@pytest.mark.parametrize("line", ["no JSON", "[]", "5", "{}", "[" * 100_000])
async def test_a_worker_that_cannot_read_a_request_ends_at_once_and_says_why(line):
    code = (
        "import sys; from vector_index_mcp.engine.models import worker; "
        "worker.main(sys.stdin.buffer, sys.stdout.buffer, int, '', 'cpu')"
    )
    command = [sys.executable, "-c", code]
    async with await anyio.open_process(command, stdout=subprocess.DEVNULL) as worker:
        # The input stays open: its end would end the worker, too.
        await worker.stdin.send(line.encode() + b"\n")
        with anyio.fail_after(30):
            said = b"".join([data async for data in worker.stderr])
            assert await worker.wait() == 1
    assert b"it cannot read a request" in said


NO_DESCRIPTORS = """
import os, resource, sys
import anyio
from vector_index_mcp.engine.models.embed import WorkerEmbedder
from vector_index_mcp.errors import ModelNotFoundError
from vector_index_mcp.processes import children

async def main():
    worker = WorkerEmbedder("all-MiniLM-L6-v2", start_worker=children.start, remedy_of=str)
    async with worker.running() as embedder:
        used = max(map(int, os.listdir("/proc/self/fd"))) + 1
        limits = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (used, limits[1]))
        try:
            await embedder.embed(["text"])
        except ModelNotFoundError as error:
            sys.stdout.write(f"{embedder.state}: {error}")

anyio.run(main)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="counts descriptors in /proc")
async def test_a_worker_that_cannot_be_started_is_told_and_ends_nothing():
    command = [sys.executable, "-c", NO_DESCRIPTORS]
    done = await anyio.run_process(command, check=True)
    assert done.stdout.startswith(b"unavailable: the embedding worker cannot be started")
    assert done.stdout.endswith(b"(Too many open files); worker_not_started")
