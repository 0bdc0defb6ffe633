"""The page of the datasets over real HTTP: what it tells, what it does, and for whom."""

import json
from contextlib import asynccontextmanager

import pytest
from fakes import FakeEmbedder
from shelves import DIMENSION, MODEL, index_of, put, running, write
from visitor import Visitor
from waiting import eventually

from vector_index_mcp.page.datasets import DatasetsPage
from vector_index_mcp.serving.listener import Page

pytestmark = pytest.mark.anyio

JSON = {"Content-Type": "application/json"}


@pytest.fixture
def root(tmp_path):
    root = tmp_path / "datasets"
    root.mkdir()
    return root


@asynccontextmanager
async def visited(root, embedder=None):
    """The service, and somebody who has its page open."""
    embedder = embedder or FakeEmbedder(MODEL, DIMENSION)
    make = index_of(root.parent / "beside", embedder)
    async with running(root, embedder, index_of=make) as service:

        async def get():
            return service

        page = Page(DatasetsPage(get))
        async with page.running():
            yield service, await Visitor(page).enter()


async def do(visitor, what, given, **headers):
    own = {"Origin": f"http://127.0.0.1:{visitor.port}"} | JSON | headers
    body = given if isinstance(given, bytes) else json.dumps(given).encode()
    return await visitor.get(f"{visitor.room}api/{what}", "POST", body, **own)


def order(tmp_path, **changed):
    source = tmp_path / "texts"
    source.mkdir(exist_ok=True)
    (source / "ships.md").write_text("# Ships\n\nA ship sails.\n")
    return {"sourcePath": str(source), "datasetId": "ships", "name": "The ships"} | changed


async def test_what_there_is_is_told_and_what_cannot_be_served(root):
    await put(root)
    write(root / "bad/manifest.json", b"{")
    async with visited(root) as (_, visitor), visitor.news() as events:
        status = await events.next("status")
        assert status["folder"] == str(root)
        assert [(each["id"], each["status"]) for each in status["datasets"]] == [
            ("bad", "error"), ("sample", "ready"),
        ]  # fmt: skip


async def test_a_question_is_answered_with_its_words_marked(root):
    await put(root)
    async with visited(root) as (_, visitor):
        got = await visitor.see("api/search?query=E1234")
        best = got.values["results"][0]
        assert (best["path"], best["dataset"]) == ("docs/errors.md", "sample")
        assert [text for line in best["lines"] for text, is_marked in line if is_marked] == [
            "E1234"
        ]
        assert (await visitor.see("api/search?query=%20")).status == 400
        assert (await visitor.see("api/search?query=x&dataset=ghost")).status == 400


async def test_one_is_made_while_its_progress_is_told(root, tmp_path):
    embedder = FakeEmbedder(MODEL, DIMENSION)
    embedder.hold()
    async with visited(root, embedder) as (service, visitor), visitor.news() as events:
        got = await do(visitor, "make", order(tmp_path))
        assert (got.status, got.values["id"]) == (200, "ships")

        async def told(is_meant):
            while True:
                jobs = await events.next("jobs")
                if jobs and is_meant(jobs[0]):
                    return jobs[0]

        job = await told(lambda job: job["what"] == "embedding chunks")
        assert (job["done"], job["total"], job["has_ended"]) == (0, 1, False)
        embedder.release()
        job = await told(lambda job: job["has_ended"])
        assert (job["error"], job["documents"], job["chunks"]) == ("", 1, 1)
        await eventually(service.registry.ready)


async def test_what_is_being_made_can_be_cancelled(root, tmp_path):
    embedder = FakeEmbedder(MODEL, DIMENSION)
    embedder.hold()
    async with visited(root, embedder) as (service, visitor):
        number = (await do(visitor, "make", order(tmp_path))).values["number"]
        assert (await do(visitor, "cancel", {"number": "1"})).status == 400
        assert (await do(visitor, "cancel", {"number": number + 1})).status == 200
        assert not service.workshop.jobs[0].ended.is_set()
        assert (await do(visitor, "cancel", {"number": number})).status == 200
        await service.workshop.jobs[0].ended.wait()
        assert service.workshop.jobs[0].error == "cancelled"


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({}, "sourcePath, datasetId, and name are required"),
        (b"", "must be a JSON object"),
        (b"[" * 5_000, "must be a JSON object"),
        (b" " * 30_000, "must be a JSON object"),
        (b"[]", "must be a JSON object"),
        ({"sourcePath": "/", "datasetId": "all", "name": "All"}, "far more than the texts"),
        ({"sourcePath": "x\0", "datasetId": "all", "name": "All"}, "is no folder"),
    ],
)
async def test_an_order_that_makes_no_sense_says_why(root, given, words):
    async with visited(root) as (service, visitor):
        got = await do(visitor, "make", given)
        assert got.status == 400
        assert words in got.values["error"]
        assert service.workshop.jobs == []


async def test_nobody_else_makes_one(root, tmp_path):
    async with visited(root) as (service, visitor):
        wanted = order(tmp_path)
        assert (await do(visitor, "make", wanted, Origin="http://evil.example")).status == 403
        assert (await do(visitor, "make", wanted, Origin="null")).status == 403
        assert (await do(visitor, "make", wanted, Cookie="")).status == 403
        assert (await do(visitor, "search", wanted)).status == 404
        body = json.dumps(wanted).encode()
        assert (await visitor.get(f"{visitor.room}api/make", "POST", body, **JSON)).status == 403
        assert service.workshop.jobs == []
