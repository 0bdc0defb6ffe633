"""What the original program was asked and answered, and where ours says something else.

- A search and a list are the JSON object of the contract, as text and as values; the original wrote
  prose.
- An unknown dataset is told in the contract's words, behind "Search failed: ".
- A folder without a manifest is no dataset that failed; manifests are found at any depth.
- The tools have titles, and say that they only read; what they take is described in more words.
"""

import json

import pytest
from greeting import CLIENT
from serving import spoken_to
from shelves import TEXTS, datasets_of, manifest, put, write
from waiting import eventually

from vector_index_mcp.serving import sets

pytestmark = pytest.mark.anyio

WRONG = {
    ("knowledge.listDatasets", '{"x": 1}'): (
        "Invalid arguments: : Unrecognized key(s) in object: 'x'"
    ),
    ("knowledge.search", '{"dataset": "nope", "query": "q"}'): (
        "Search failed: Dataset 'nope' not found. Available datasets: deeper, sample-docs"
    ),
    ("knowledge.search", '{"dataset": "sample-docs", "query": ""}'): (
        "Invalid search parameters: String must contain at least 1 character(s) at query"
    ),
    ("knowledge.search", '{"dataset": "sample-docs", "query": "q", "topK": 0}'): (
        "Invalid search parameters: Number must be greater than or equal to 1 at topK"
    ),
    ("knowledge.search", '{"dataset": "sample-docs", "query": "q", "topK": 101}'): (
        "Invalid search parameters: Number must be less than or equal to 100 at topK"
    ),
    ("knowledge.search", '{"dataset": "sample-docs", "query": "q", "topK": 1.5}'): (
        "Invalid search parameters: Expected integer, received float at topK"
    ),
    ("knowledge.search", '{"query": "q"}'): "Invalid search parameters: Required at dataset",
    ("knowledge.search", '{"dataset": "sample-docs", "query": " "}'): (
        "Invalid search parameters: Query must be non-empty and less than 1024 characters at query"
    ),
    ("nope", "{}"): "Unknown tool: nope",
}


@pytest.fixture(scope="module")
async def ask(tmp_path_factory):
    """Asks a service of datasets, good and bad ones, in plain JSON-RPC."""
    root = tmp_path_factory.mktemp("project") / "datasets"
    await put(root, "sample-docs")
    await put(root / "deep/deep", "deeper")
    (root / "empty").mkdir()
    write(root / "bad-id/manifest.json", manifest("Bad_ID"))
    write(root / "broken/manifest.json", b"{ nope")
    write(root / "no-meta/manifest.json", manifest("no-meta", metadata="m.json"))
    (root / "no-meta/index").mkdir()
    datasets = datasets_of(root)
    async with spoken_to(datasets, sets.DATASETS) as ask:
        # The first question waits for both datasets, but not for longer than a user would.
        await ask("tools/list")  # the service begins behind the first answer
        await datasets.registry.ready()
        await eventually(lambda: not datasets.registry.is_loading)
        yield ask


async def called(ask, name, arguments):
    return (await ask("tools/call", name=name, arguments=arguments))["result"]


async def found(ask, name, **arguments):
    result = await called(ask, name, arguments)
    assert not result.get("isError"), result
    [content] = result["content"]
    assert json.loads(content["text"]) == result["structuredContent"]
    return result["structuredContent"]


@pytest.mark.slow
async def test_the_server_says_who_it_is_and_offers_tools_alone(ask):
    result = (await ask("initialize", **CLIENT))["result"]
    assert result["serverInfo"]["name"] == "mcpower"
    assert result["serverInfo"]["version"] == "0.1.0"
    assert set(result["capabilities"]) == {"tools"}
    for method in ("resources/list", "prompts/list"):
        error = (await ask(method))["error"]
        assert (error["code"], error["message"]) == (-32601, "Method not found")


@pytest.mark.slow
async def test_the_tools_take_what_the_contract_says(ask):
    search, listing = (await ask("tools/list"))["result"]["tools"]
    assert (search["name"], listing["name"]) == ("knowledge.search", "knowledge.listDatasets")
    schema = search["inputSchema"]
    assert schema["required"] == ["dataset", "query"]
    types = {name: field["type"] for name, field in schema["properties"].items()}
    assert types == {"dataset": "string", "query": "string", "topK": "integer"}
    assert listing["inputSchema"].get("required") is None
    assert schema["additionalProperties"] is False


@pytest.mark.slow
@pytest.mark.parametrize(("call", "words"), WRONG.items(), ids=[" ".join(call) for call in WRONG])
async def test_what_is_wrong_is_told_in_the_recorded_words(ask, call, words):
    name, arguments = call
    result = await called(ask, name, json.loads(arguments))
    assert result["isError"]
    assert result["content"] == [{"type": "text", "text": words}]


async def test_what_is_ready_is_listed_and_what_is_not_if_that_is_asked_for(ask):
    listed = await found(ask, "knowledge.listDatasets")
    assert [each["id"] for each in listed["datasets"]] == ["deeper", "sample-docs"]
    sample = listed["datasets"][1]
    assert {key: sample[key] for key in ("name", "description", "defaultTopK", "status")} == {
        "name": "The sample-docs", "description": "What a test needs.", "defaultTopK": 5,
        "status": "ready",
    }  # fmt: skip
    counts = {"totalDatasets": 5, "readyDatasets": 2, "errorDatasets": 3}
    assert listed["metadata"] == counts
    listed = await found(ask, "knowledge.listDatasets", includeErrors=True)
    assert listed["metadata"] == counts
    errors = {each["id"]: each["error"] for each in listed["datasets"] if each["status"] == "error"}
    assert set(errors) == {"bad-id", "broken", "no-meta"}
    assert json.loads(errors["bad-id"]) == [
        {"validation": "regex", "code": "invalid_string", "message": "Invalid", "path": ["id"]}
    ]
    assert errors["no-meta"].startswith("Metadata file not found: ")


async def test_a_search_answers_as_the_contract_says(ask):
    answer = await found(ask, "knowledge.search", dataset="sample-docs", query="yellow bananas")
    best = answer["results"][0]
    assert best["path"] == "docs/fruit.md"
    assert best["title"] == "About docs/fruit.md"
    assert best["snippet"] == TEXTS["docs/fruit.md"]
    scores = [result["score"] for result in answer["results"]]
    assert scores == sorted(scores, reverse=True)
    assert all(0 <= score <= 1 for score in scores)
    facts = answer["metadata"]
    assert facts.pop("durationMs") >= 0
    assert facts == {"dataset": "sample-docs", "query": "yellow bananas", "resultCount": 3}


async def test_at_most_as_many_as_are_wanted(ask):
    answer = await found(ask, "knowledge.search", dataset="sample-docs", query="disk", topK=1)
    assert [result["path"] for result in answer["results"]] == ["docs/errors.md"]


@pytest.mark.parametrize("dataset", ["*", "deeper,sample-docs", "deeper, sample-docs"])
async def test_several_datasets_are_searched_at_once(ask, dataset):
    answer = await found(ask, "knowledge.search", dataset=dataset, query="E1234", topK=2)
    assert [result["path"] for result in answer["results"]] == ["docs/errors.md"] * 2
