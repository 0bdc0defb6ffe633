"""Calls of commands: what a service says while they wait, and if it cannot answer them."""

from typing import Any

import pytest
import qmd
from fakes import FakeEmbedder
from serving import Gate, codebase_of, converged, indexed
from writing import write

from vector_index_mcp.background.greeting import WRONG_USE
from vector_index_mcp.codebase import calls as calls_of_codebase
from vector_index_mcp.documents import calls
from vector_index_mcp.documents.remedies import REMEDIES
from vector_index_mcp.errors import (
    EmbeddingError,
    Problem,
    QueryError,
    SettingsError,
    VectorIndexError,
)
from vector_index_mcp.serving import sets
from vector_index_mcp.serving.answering import answered

pytestmark = pytest.mark.anyio


async def tell(progress: dict[str, Any]) -> None:
    raise AssertionError("nothing is under way")


class Loaded:
    """A service that is there at once."""

    async def get(self) -> None:
        return None


class OneAnswer:
    """A tool set that answers any call with the same error."""

    name = "documents"
    remedies = REMEDIES

    def __init__(self, error: BaseException) -> None:
        self.error = error

    async def answer(self, *_: Any) -> Any:
        raise self.error


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("nonsense", {}),
        ("search", {"query": 5}),
        ("search", {"query": "x", "limit": "many"}),
        ("get", {"file": ["a"]}),
        ("get", {"file": "a", "lines": 1.5}),
    ],
)
async def test_arguments_of_another_kind_are_refused(name, given):
    with pytest.raises(QueryError):
        await calls.answer(None, name, given, tell)


@pytest.mark.parametrize("request_", [{}, {"call": 1, "arguments": {}}, {"call": "get"}])
async def test_what_is_no_call_is_said_to_be_none(request_):
    answer = await answered(OneAnswer(AssertionError()), Loaded(), request_, tell)
    assert answer["status"] == WRONG_USE


async def test_a_set_without_calls_answers_none():
    notes = sets.named(sets.NOTES)
    answer = await answered(notes, Loaded(), {"call": "get", "arguments": {}}, tell)
    assert answer["status"] == WRONG_USE


@pytest.mark.parametrize(
    ("error", "status", "said"),
    [
        (SettingsError("there is none"), WRONG_USE, "there is none"),
        (VectorIndexError("it failed"), 1, "it failed"),
        (
            EmbeddingError("it dies", Problem.WORKER_DIES),
            1,
            "it dies; look at `vector-index-mcp doc",
        ),
        (OSError(28, "No space left on device"), 1, "No space left on device; free some"),
    ],
)
async def test_an_error_becomes_a_sentence(error, status, said):
    answer = await answered(OneAnswer(error), Loaded(), {"call": "get", "arguments": {}}, tell)
    assert (answer["status"], answer["error"].startswith(said)) == (status, True)


async def test_a_search_right_after_a_start_says_that_documents_may_be_missing(tmp_path):
    """As a service that another one has left an index to, which lacks a collection."""
    documents = qmd.documents_of(qmd.written(tmp_path), FakeEmbedder())
    gate = Gate(documents)
    async with documents.running():
        await gate.wait()
        early = await calls.answer(documents, "search", {"query": "lorem"}, tell)
        assert "may be missing" in early["note"]
        gate.open()
        await qmd.settled(documents)
        late = await calls.answer(documents, "search", {"query": "lorem"}, tell)
        assert (late["note"], len(late["results"])) == ("", 1)


class Loading:
    """Receives the progress of a call; a model that it is told of is loaded then."""

    def __init__(self, embedder):
        self.told = []
        self._embedder = embedder

    async def tell(self, progress):
        self.told.append(progress)
        if progress["what"] == "waiting until the embedding model is loaded":
            self._embedder.finish_loading()


async def test_a_command_that_waits_for_the_model_is_told_so(tmp_path):
    root = tmp_path / "project"
    write(root, {"one.py": "apple = 1\n"})
    await indexed(root, FakeEmbedder())
    embedder = FakeEmbedder()
    embedder.keep_loading()
    codebase, loading = codebase_of(root, embedder), Loading(embedder)
    async with codebase.running():
        await converged(codebase)
        for _ in range(2):
            given = {"query": "apple"}
            found = await calls_of_codebase.answer(codebase, "search", given, loading.tell)
            assert found["mode"] == "hybrid"
        with pytest.raises(QueryError):
            await calls_of_codebase.answer(codebase, "search", {"query": " "}, loading.tell)
    assert [each["total"] for each in loading.told if each["what"].startswith("waiting")] == [0]


async def test_nobody_is_told_to_wait_for_a_model_that_is_not_there(tmp_path):
    root = tmp_path / "project"
    write(root, {"one.py": "apple = 1\n"})
    await indexed(root, FakeEmbedder())
    embedder = FakeEmbedder()
    embedder.absent = "there is none"
    codebase, loading = codebase_of(root, embedder), Loading(embedder)
    async with codebase.running():
        await converged(codebase)
        for state in ("off", "unavailable"):
            embedder.state = state
            given = {"query": "apple"}
            found = await calls_of_codebase.answer(codebase, "search", given, loading.tell)
            assert found["mode"] == "lexical"
    assert not loading.told


async def test_so_is_one_that_searches_documents(tmp_path):
    home, embedder = qmd.written(tmp_path), FakeEmbedder()
    embedded = qmd.documents_of(home, FakeEmbedder())
    async with embedded.running():
        await qmd.settled(embedded)
        await embedded.embed()
    embedder.keep_loading()
    documents, loading = qmd.documents_of(home, embedder), Loading(embedder)
    async with documents.running():
        await qmd.settled(documents)
        await calls.answer(documents, "search", {"query": "lorem"}, tell)
        found = await calls.answer(documents, "query", {"query": "lorem"}, loading.tell)
    assert (found["lack"], len(loading.told)) == ("", 1)


async def test_a_folder_is_listed_however_its_letters_are_composed(tmp_path):
    composed, decomposed = "caf\u00e9", "cafe\u0301"
    home = qmd.written(tmp_path)
    write(tmp_path, {f"notes/{decomposed}/a.md": "# A\n", "notes/cafes/b.md": "# B\n"})
    documents = qmd.documents_of(home, FakeEmbedder())
    async with documents.running():
        await qmd.settled(documents)
        for spelled in (composed, decomposed, f"{decomposed}/a.md"):
            listed = await calls.answer(documents, "ls", {"path": f"notes/{spelled}"}, tell)
            keys = [each["key"] for each in listed["documents"]]
            assert keys == [f"notes/{decomposed}/a.md"]


async def test_only_in_a_uri_a_percent_sign_escapes(tmp_path):
    home = qmd.written(tmp_path)
    write(tmp_path, {"notes/a%20b/c.md": "# C\n", "notes/a b/d.md": "# D\n"})
    documents = qmd.documents_of(home, FakeEmbedder())
    async with documents.running():
        await qmd.settled(documents)
        for path, key in [
            ("notes/a%20b", "notes/a%20b/c.md"),
            ("notes/a b", "notes/a b/d.md"),
            ("qmd://notes/a%20b", "notes/a b/d.md"),
            ("qmd://notes/a%2520b", "notes/a%20b/c.md"),
        ]:
            listed = await calls.answer(documents, "ls", {"path": path}, tell)
            assert [each["key"] for each in listed["documents"]] == [key]
