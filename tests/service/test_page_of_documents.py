"""The page of documents: what it answers, over a port that is really listened on."""

from contextlib import asynccontextmanager
from urllib.parse import quote, urlencode

import pytest
from fakes import FakeEmbedder
from qmd import documents_of, settled, written
from visitor import Visitor
from waiting import eventually
from writing import write

from vector_index_mcp.page.documents import DocumentsPage
from vector_index_mcp.serving.listener import Page

pytestmark = pytest.mark.anyio

MORE = {
    "notes/guide.md": "---\ntitle: The Guide\ntags: [travel, rail]\ndate: 2026-03-01\n---\n"
    "# The Guide\n\nSee [the plan](plan.md#next), [[Budget]] and [nothing](gone.md).\n\n"
    "<script>hacked = 1</script>\n\n## Trains\n\nTrains leave hourly.\n",
    "notes/plan.md": "# Plan\n\n## Next\n\nBuy tickets for the train.\n",
    "notes/budget.md": "# Budget\n\n| what | cost |\n|---|--:|\n| tickets | 40 |\n",
    "notes/50% #1.md": "# Odd name\n",
}


@asynccontextmanager
async def visiting(tmp_path):
    """A visitor of documents that are indexed, and the documents."""
    home = written(tmp_path)
    documents = documents_of(home, FakeEmbedder())

    async def get():
        return documents

    page = Page(DocumentsPage(get))
    async with documents.running(), page.running():
        write(tmp_path, MORE)
        await settled(documents)
        yield await Visitor(page).enter(), documents


async def asked(visitor, name, **values):
    got = await visitor.see(f"api/{name}?{urlencode(values, quote_via=quote)}")
    assert got.status == 200, got.body
    return got.values


async def test_documents_are_found_with_their_best_lines_marked(tmp_path):
    async with visiting(tmp_path) as (visitor, _):
        found = await asked(visitor, "search", query="trains hourly", mode="search")
        best = found["results"][0]
        assert (best["key"], best["title"]) == ("notes/guide.md", "The Guide")
        assert (best["tags"], best["date"]) == (["travel", "rail"], "2026-03-01")
        marked = [piece for line in best["lines"] for piece, mark in line if mark]
        assert {"Trains", "hourly"} <= set(marked)
        text = "\n".join("".join(piece for piece, _ in line) for line in best["lines"])
        assert "Trains leave hourly." in text
        assert MORE["notes/guide.md"].split("\n")[best["line"] - 1] == "Trains leave hourly."


@pytest.mark.parametrize(
    ("query", "is_miss"), [("zebra crossing", True), ("budget", False), ("odd", False)]
)
async def test_it_is_told_if_no_result_has_a_word_of_the_query(tmp_path, query, is_miss):
    async with visiting(tmp_path) as (visitor, documents):
        await eventually(lambda: not documents.index.progress.waits_for_vectors)
        found = await asked(visitor, "search", query=query, mode="vsearch")
    assert found["results"]
    assert found["note"].count("has a word of the query") == is_miss  # once, if at all


async def test_a_collection_narrows_a_search_down(tmp_path):
    async with visiting(tmp_path) as (visitor, _):
        found = await asked(visitor, "search", query="budget", mode="search", collection="notes")
        assert {hit["key"].partition("/")[0] for hit in found["results"]} == {"notes"}
        got = await visitor.see("api/search?query=budget&collection=nowhere")
        assert (got.status, "nowhere" in got.values["error"]) == (400, True)


async def test_what_cannot_be_searched_is_told(tmp_path):
    async with visiting(tmp_path) as (visitor, _):
        for values in ({"query": "x", "mode": "magic"}, {"query": "x" * 100_000}):
            got = await visitor.see(f"api/search?{urlencode(values)}"[:50_000])
            assert (got.status, bool(got.values["error"])) == (400, True)


async def test_a_document_comes_as_elements_with_its_links_both_ways(tmp_path):
    async with visiting(tmp_path) as (visitor, _):
        guide = await asked(visitor, "document", key="notes/guide.md")
        assert guide["title"] == "The Guide"
        heading, linked, script, trains, _ = guide["nodes"]
        assert (heading["tag"], heading["line"], trains["name"]) == ("h1", 6, "trains")
        links = [node for node in linked["children"] if isinstance(node, dict)]
        assert [(n["tag"], n.get("key"), n.get("fragment")) for n in links] == [
            ("a", "notes/plan.md", "next"),
            ("a", "notes/budget.md", None),
            ("span", None, None),
        ]
        assert script == {"tag": "p", "line": 10, "children": ["<script>hacked = 1</script>"]}
        assert guide["out"] == [
            {"key": "notes/plan.md", "title": "Plan"},
            {"key": "notes/budget.md", "title": "Budget"},
        ]
        plan = await asked(visitor, "document", key="notes/plan.md")
        assert plan["back"] == [{"key": "notes/guide.md", "title": "The Guide"}]


async def test_a_document_is_shown_as_its_file_is_now(tmp_path):
    async with visiting(tmp_path) as (visitor, _):
        write(tmp_path, {"notes/plan.md": "# Plan\n\nChanged.\n"})
        plan = await asked(visitor, "document", key="notes/plan.md")
        assert plan["nodes"][1]["children"] == ["Changed."]


async def test_names_that_addresses_would_misread_are_shown(tmp_path):
    async with visiting(tmp_path) as (visitor, _):
        assert (await asked(visitor, "document", key="notes/50% #1.md"))["title"] == "Odd name"


@pytest.mark.parametrize("key", ["notes/gone.md", "../notes/plan.md", "plan.md", "/etc/passwd", ""])
async def test_what_is_no_document_is_not_shown(tmp_path, key):
    async with visiting(tmp_path) as (visitor, _):
        got = await visitor.see(f"api/document?{urlencode({'key': key})}")
        assert (got.status, "There is no document" in got.values["error"]) == (400, True)


async def test_a_long_or_plain_document_is_shown_to_its_end(tmp_path):
    async with visiting(tmp_path) as (visitor, documents):
        write(tmp_path, {"notes/long.md": "# Long\n\n" + "*word* " * 30_000 + "\n\nlast *line*\n"})
        await settled(documents)
        shown = await asked(visitor, "document", key="notes/long.md")
        assert shown["nodes"][-1]["spans"][0][1].endswith("last *line*\n")
        assert shown["left_out"] == 0


async def test_a_collection_is_listed_newest_first(tmp_path):
    async with visiting(tmp_path) as (visitor, _):
        listed = await asked(visitor, "list", collection="notes")
        assert listed["total"] == len(listed["documents"])
        dates = [each["date"] for each in listed["documents"]]
        assert dates == sorted(dates, reverse=True)
        got = await visitor.see("api/list?collection=nowhere")
        assert (got.status, "nowhere" in got.values["error"]) == (400, True)


async def test_what_is_saved_and_what_is_listed_is_news(tmp_path):
    async with visiting(tmp_path) as (visitor, documents), visitor.news() as events:
        first = await events.next("status")
        assert {each["name"] for each in first["collections"]} >= {"docs"}
        write(tmp_path, {"notes/new.md": "# New\n"})
        await events.status_when(lambda now: now["documents"] == first["documents"] + 1)
        await documents.remove("docs")
        await events.status_when(
            lambda now: "docs" not in {each["name"] for each in now["collections"]}
        )


async def test_the_page_is_that_of_documents(tmp_path):
    async with visiting(tmp_path) as (visitor, _):
        shown = await visitor.see("")
        assert b'src="documents.js"' in shown.body
        assert shown.headers["content-security-policy"].startswith("default-src 'none'")
        got = await visitor.get(visitor.room + "api/map")
        assert got.status == 404
        used = await Visitor(visitor.page, visitor.port).get("/?token=wrong")
        assert b"`vector-index-mcp documents ui`" in used.body
