"""Notes found by what they mean, in other words than theirs: program, client and model are real."""

import json
from contextlib import asynccontextmanager

import pytest
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from processes import COMMAND, MODEL_SECONDS, NO_MODEL, needs_model, place_of
from waiting import eventually

pytestmark = pytest.mark.anyio

P = {"project_id": "Shop"}
DOCUMENTS = {
    "deployment": ("Releases", "How a new version reaches the machines of customers, at night."),
    "billing": (
        "Invoices",
        "Amounts are kept in cents. Rounding happens once, when a bill is sent.",
    ),
    "style": ("Naming", "Functions are verbs. Modules are nouns, in the singular."),
}


def arguments(name):
    chapter, content = DOCUMENTS[name]
    return {
        **P,
        "filename": name,
        "title": name.title(),
        "introduction": "About the shop.",
        "keywords": ["shop"],
        "chapters": [{"title": chapter, "content": content}],
    }


@asynccontextmanager
async def client(**settings):
    """An official client of the program, over its standard streams."""
    with place_of({}, **settings) as place:
        command, *rest = [*COMMAND, "notes", "serve", "--home", str(place.folder / "store")]
        server = StdioServerParameters(
            command=command, args=rest, env=place.variables, cwd=place.folder
        )
        async with Client(stdio_client(server), read_timeout_seconds=MODEL_SECONDS) as client:
            yield client


async def answered(client, tool, **given):
    """What an agent reads."""
    result = await client.call_tool(tool, given)
    [content] = result.content
    assert json.loads(content.text) == result.structured_content
    return result.structured_content


@pytest.fixture
async def call():
    """Makes a call that succeeds."""
    async with client() as asked:

        async def called(tool, **given):
            answer = await answered(asked, tool, **given)
            assert answer["success"], answer
            return answer

        yield called


async def test_without_a_model_nothing_is_found_by_meaning_alone_and_that_is_said():
    async with client(**NO_MODEL) as asked:
        await answered(asked, "create_knowledge_file", **arguments("style"))
        given = {**P, "query": "naming things"}
        answer = await answered(asked, "search_knowledge", **given, mode="meaning")
        assert (answer["success"], answer["code"]) == (False, "SEARCH_ERROR")
        answer = await answered(asked, "search_knowledge", **given, mode="both")
        assert answer["note"].startswith("Searched by words only, not by meaning: ")
        assert answer["results"][0]["document"] == "style.md"


async def test_a_key_that_local_indexes_do_not_need_is_not_read():
    async with client(**NO_MODEL, VECTOR_INDEX_LANCEDB_KEY_FILE="/no/such/key") as asked:
        await answered(asked, "create_knowledge_file", **arguments("style"))
        answer = await answered(asked, "search_knowledge", **P, query="naming", mode="both")
        assert answer["results"][0]["document"] == "style.md"


async def test_an_index_that_cannot_be_loaded_costs_the_calls_that_need_it():
    server = {
        "VECTOR_INDEX_EMBEDDING_URL": "http://127.0.0.1:9/v1",
        "VECTOR_INDEX_EMBEDDING_KEY_FILE": "/no/such/key",
    }
    async with client(**server) as asked:
        await answered(asked, "create_knowledge_file", **arguments("style"))
        for _ in range(2):
            given = {**P, "query": "naming", "mode": "meaning"}
            answer = await answered(asked, "search_knowledge", **given)
            assert (answer["success"], answer["code"]) == (False, "SEARCH_ERROR")
            assert "/no/such/key is not a file" in answer["error"]
        answer = await answered(asked, "search_knowledge", **P, query="verbs")
        assert answer["results"][0]["document"] == "style.md"


@pytest.mark.long
@needs_model
async def test_what_was_written_is_found_in_other_words(call):
    for name in DOCUMENTS:
        await call("create_knowledge_file", **arguments(name))
    await call("create_todo", **P, description="Tidy up", tasks=["Throw away unused pictures"])

    async def all_are_embedded():
        found = await call("search_knowledge", **P, query="software", mode="both")
        return "embedding goes on" not in found.get("note", "")

    async def best(query):
        await eventually(all_are_embedded, MODEL_SECONDS)
        found = await call("search_knowledge", **P, query=query, mode="meaning")
        return found["results"][0]["document"]

    assert await best("rolling out software") == "deployment.md"
    assert await best("charging money precisely") == "billing.md"
    assert await best("deleting images nobody needs") == "TODO #1"
    words = await call("search_knowledge", **P, query="rolling", mode="keywords")
    assert words["total_documents"] == 0  # no note has the word

    await call("update_chapter", **P, filename="style.md", chapter_title="Naming",
               new_content="How software is rolled out to the public, step by step.")  # fmt: skip
    assert await best("rolling out software to the public") == "style.md"  # as it is now
