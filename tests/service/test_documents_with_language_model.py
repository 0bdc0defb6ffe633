"""A language model of the user's own: real HTTP, and the plain answer whenever it fails."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from embedding_servers import running
from fakes import FakeEmbedder
from qmd import documents_of, settled, written

from vector_index_mcp.documents import asking
from vector_index_mcp.documents.language_model import LanguageModel

pytestmark = [
    pytest.mark.anyio,
    # Of the server that stands in for a model: it gives up its sockets when it is collected.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


class Server(ThreadingHTTPServer):
    """Answers chats; `answers` holds what it says, by a word of the prompt."""

    daemon_threads = False  # so that closing waits for the last answers

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.answers = {"other ways": "", "passage": ""}
        self.status, self.elsewhere = 200, ""
        self.asked = []
        self.released = threading.Event()
        self.released.set()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}/v1"


class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        prompt = body["messages"][0]["content"]
        self.server.asked.append((self.path, self.headers.get("Authorization"), body))
        self.server.released.wait(20)
        said = next(text for word, text in self.server.answers.items() if word in prompt)
        data = said if isinstance(said, bytes) else answer(said)
        self.send_response(self.server.status)
        self.send_header("Location", self.server.elsewhere)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_):
        pass


def answer(text):
    return json.dumps({"choices": [{"message": {"content": text}}]}).encode()


@pytest.fixture
def server():
    with running(Server()) as server:
        yield server


@pytest.fixture
async def documents(tmp_path, server):
    """The recorded collections with vectors, and a language model."""
    documents = documents_of(written(tmp_path), FakeEmbedder())
    documents.language_model = LanguageModel(server.url, "small", "secret", seconds=10.0)
    async with documents.running():
        await settled(documents)
        await documents.embed()
        yield documents


async def found(documents, query, limit=3):
    wanted = asking.Wanted(query, asking.Mode.BOTH, limit=limit)
    return [each.entry.key for each in (await asking.search(documents, wanted)).found]


async def plainly(documents, query, limit=3):
    """What is found without the language model."""
    model, documents.language_model = documents.language_model, None
    try:
        return await found(documents, query, limit)
    finally:
        documents.language_model = model


async def test_it_words_the_query_in_other_ways(documents, server):
    query = "xylophone"
    assert "docs/api.md" not in (await plainly(documents, query))[:1]
    server.answers["other ways"] = "1. bearer tokens authentication\n- REST API endpoints\n"
    assert (await found(documents, query))[0] == "docs/api.md"
    assert "bearer tokens authentication" in documents.embedder.queries
    path, key, body = server.asked[0]
    assert (path, key, body["model"]) == ("/v1/chat/completions", "Bearer secret", "small")
    assert query in body["messages"][0]["content"]


async def test_it_ranks_what_was_found(documents, server):
    plain = await plainly(documents, "budget roadmap", limit=7)
    grades = [0] * len(plain)
    grades[2] = 10
    server.answers["passage"] = f"Here you are: {json.dumps(grades)}"
    [last] = [body for _, _, body in server.asked[-1:]] or [{}]
    ranked = await found(documents, "budget roadmap", limit=7)
    assert sorted(ranked) == sorted(plain)
    assert ranked != plain
    prompts = [body["messages"][0]["content"] for _, _, body in server.asked]
    assert any("Passage 1:" in prompt for prompt in prompts), last


@pytest.mark.parametrize(
    "said",
    ["", "no numbers", "[1]", "[1, 2", '["a", "b"]', "[[]]", b"{", b"[]", b'{"choices": []}', b""],
    ids=repr,
)
async def test_what_makes_no_sense_changes_nothing(documents, server, said):
    plain = await plainly(documents, "budget roadmap")
    server.answers["passage"] = said
    if isinstance(said, bytes):
        server.answers["other ways"] = said
    assert await found(documents, "budget roadmap") == plain


@pytest.mark.parametrize("grade", ["NaN", "Infinity", "-Infinity", "1e999", "1" * 401])
async def test_grades_that_are_no_numbers_are_none(documents, server, grade):
    server.answers["passage"] = f"[10, {grade}]"
    assert await documents.language_model.scores("budget", ["one", "two"], 10.0) is None


async def test_one_that_fails_changes_nothing(documents, server):
    plain = await plainly(documents, "budget roadmap")
    server.status = 500
    assert await found(documents, "budget roadmap") == plain
    server.shutdown()
    server.server_close()
    assert await found(documents, "budget roadmap") == plain


async def test_no_redirect_takes_the_key_elsewhere(documents, server):
    plain = await plainly(documents, "budget roadmap")
    with running(Server()) as other:
        server.status, server.elsewhere = 307, f"{other.url}/chat/completions"
        assert await found(documents, "budget roadmap") == plain
        assert other.asked == []


async def test_one_that_takes_too_long_is_not_waited_for(documents, server):
    plain = await plainly(documents, "budget roadmap")
    documents.language_model = LanguageModel(server.url, "", "", seconds=0.05)
    server.released.clear()
    assert await found(documents, "budget roadmap") == plain
    [(_, key, body)] = server.asked  # for the second question there is no time left
    assert key is None
    assert "model" not in body


async def test_other_words_that_cannot_be_embedded_are_not_searched(documents, server):
    plain = await plainly(documents, "budget roadmap")
    server.answers["other ways"] = "cost plan\n"
    documents.embedder.poison = "cost plan"
    assert await found(documents, "budget roadmap") == plain


class Judge(FakeEmbedder):
    """It has a cross-encoder, which likes texts that hold `favourite`."""

    has_reranker = True
    reranker_state = "ready"
    favourite = "roadmap"

    async def scores(self, query, texts, seconds=None):
        self.judged = query, list(texts)
        return [float(self.favourite in text) for text in texts]


async def test_a_cross_encoder_counts_more_than_the_language_model(tmp_path, server):
    embedder = Judge()
    documents = documents_of(written(tmp_path), embedder)
    documents.language_model = LanguageModel(server.url, "", "", seconds=10.0)
    async with documents.running():
        await settled(documents)
        await documents.embed()
        await found(documents, "budget")
        query, texts = embedder.judged
        assert query == "budget"
        assert any(text.startswith("Plan\n") for text in texts)
        embedder.favourite = "Lorem"
        assert "docs/large-file.md" in await found(documents, "budget", limit=7)
    prompts = [body["messages"][0]["content"] for _, _, body in server.asked]
    assert not any("Passage" in prompt for prompt in prompts)
