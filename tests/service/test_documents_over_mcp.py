"""The six tools, the resource and the prompt, as recorded with the program of the contract.

Where ours answers otherwise on purpose, the test says so, and why:

- Scores are b / (1 + b) of the BM25 score b: the recorded ones fall when a match gets better.
- Snippets have the numbers of the file's lines and no header: the recorded numbers begin at the
  best line and count the header.
- Words are stemmed and combined by OR; a document that has more of them comes first.
- `project's` and `"quoted" AND (x)` are words like others; recorded is a syntax that fails.
- A docid without its document suggests nothing; names that are there to the letter, in a glob
  `docs/meetings/*.md` as well, are found.
- `file.md:3` counts more than `fromLine`, and a large file is skipped in the specification's words.
- `multi_get` that finds nothing is an error, and lists documents by their keys.
- A URI means the document at the end of whose key it stands; recorded is any document at all.
"""

import hashlib
import itertools
import json
import threading
from functools import partial
from pathlib import Path

import anyio
import pytest
from fakes import FakeEmbedder
from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS
from qmd import FILES, LOREM, documents_of, serving, settled, written
from waiting import eventually, held_at
from writing import write

from vector_index_mcp.documents import retrieval, service
from vector_index_mcp.documents.configuration import Collection, read
from vector_index_mcp.documents.home import Home
from vector_index_mcp.documents.uris import docid_of
from vector_index_mcp.errors import BusyError, SettingsError, StorageError
from vector_index_mcp.indexing.looking.outlook import Outlook
from vector_index_mcp.indexing.role import Role

pytestmark = pytest.mark.anyio

ALL = "Global ctx"
MEETINGS = "Global ctx\n\nMeeting notes and transcripts"
README = FILES["docs/readme.md"]
JANUARY, FEBRUARY = (FILES[f"docs/meetings/meeting-2024-0{n}.md"] for n in (1, 2))


@pytest.fixture(scope="module")
async def client(tmp_path_factory):
    """A client of the recorded collections, which have no vectors."""
    embedder = FakeEmbedder()
    embedder.absent = "there is no model in this test"
    documents = documents_of(written(tmp_path_factory.mktemp("qmd")), embedder)
    async with serving(documents) as client:
        await client.call_tool("status", {})
        await settled(documents)
        yield client


async def called(client, tool, **arguments):
    result = await client.call_tool(tool, arguments)
    return result.model_dump(mode="json", by_alias=True, exclude_none=True)


async def text_of(client, tool, **arguments):
    """The text of an answer that has one, and nothing else."""
    result = await called(client, tool, **arguments)
    [part] = result["content"]
    return part["text"]


async def results_of(client, tool="search", **arguments):
    result = await called(client, tool, **arguments)
    assert not result["isError"], result
    return result["structuredContent"]["results"]


async def document(client, **arguments):
    """The text of the document that `get` answers."""
    result = await called(client, "get", **arguments)
    assert not result["isError"], result
    [part] = result["content"]
    return part["resource"]["text"]


def numbered(text, start=1):
    return "\n".join(f"{n}: {line}" for n, line in enumerate(text.split("\n"), start))


# -- what is offered -------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_a_client_meets_the_server_of_the_contract(tmp_path, mode):
    async with serving(documents_of(written(tmp_path), FakeEmbedder()), mode) as client:
        info = client.server_info
        assert (info.name, info.version) == ("qmd", "1.0.0")
        capabilities = client.server_capabilities
        assert None not in (capabilities.tools, capabilities.resources, capabilities.prompts)
        result = await client.call_tool("status", {})
        assert not result.is_error
        read = await client.read_resource("qmd://docs/readme.md")
        assert read.contents[0].text.startswith("<!-- Context: Global ctx -->\n\n1: # Project")


QUERY = {"query": {"type": "string"}, "collection": {"type": "string"}}
SEARCHES = QUERY | {
    "limit": {"type": "number", "default": 10},
    "minScore": {"type": "number", "default": 0},
}
OFFERED = {
    "search": ("Search (BM25)", SEARCHES, ["query"]),
    "vsearch": (
        "Vector Search (Semantic)",
        SEARCHES | {"minScore": {"type": "number", "default": 0.3}},
        ["query"],
    ),
    "query": ("Hybrid Query (Best Quality)", SEARCHES, ["query"]),
    "get": (
        "Get Document",
        {
            "file": {"type": "string"},
            "fromLine": {"type": "number"},
            "maxLines": {"type": "number"},
            "lineNumbers": {"type": "boolean", "default": False},
        },
        ["file"],
    ),
    "multi_get": (
        "Multi-Get Documents",
        {
            "pattern": {"type": "string"},
            "maxLines": {"type": "number"},
            "maxBytes": {"type": "number", "default": 10_240},
            "lineNumbers": {"type": "boolean", "default": False},
        },
        ["pattern"],
    ),
    "status": ("Index Status", {}, None),
}


async def test_the_tools_are_those_of_the_contract(client):
    tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    assert list(tools) == list(OFFERED)
    for name, (title, properties, required) in OFFERED.items():
        schema = tools[name].input_schema
        assert schema.keys() <= {"$schema", "type", "properties", "required"}
        assert schema["$schema"] == "http://json-schema.org/draft-07/schema#"
        assert tools[name].title == title
        assert schema.get("required") == required
        found = {
            key: {k: v for k, v in value.items() if k != "description"}
            for key, value in schema["properties"].items()
        }
        assert found == properties
        assert all(value.get("description") for value in schema["properties"].values())


async def test_the_resource_and_the_prompt_are_those_of_the_contract(client):
    assert (await client.list_resources()).resources == []
    [template] = (await client.list_resource_templates()).resource_templates
    assert (template.name, template.uri_template) == ("document", "qmd://{+path}")
    assert (template.title, template.mime_type) == ("QMD Document", "text/markdown")
    assert template.description == (
        "A markdown document from your QMD knowledge base. Use search tools to discover documents."
    )
    [prompt] = (await client.list_prompts()).prompts
    assert prompt.arguments is None
    assert (prompt.name, prompt.title) == ("query", "QMD Query Guide")
    assert prompt.description == "How to effectively search your knowledge base with QMD"
    [message] = (await client.get_prompt("query")).messages
    assert message.role == "user"
    assert message.content.text.startswith("# QMD - Quick Markdown Search\n\nQMD is your on-device")
    assert message.content.text.endswith("match on display_path (e.g., `journals/2025-*.md`)")


async def test_the_prompt_is_got_whatever_arguments_are_sent_with_it(client):
    plain = await client.get_prompt("query")
    assert await client.get_prompt("query", {"more": "words"}) == plain
    assert plain.description is None


async def test_a_prompt_that_is_not_there_is_a_wrong_parameter(client):
    with pytest.raises(MCPError, match="nope") as refused:
        await client.get_prompt("nope")
    assert refused.value.error.code == INVALID_PARAMS


# -- searching -------------------------------------------------------------------------------


async def test_a_search_answers_with_a_line_for_each_result(client):
    result = await called(client, "search", query="meeting")
    lines = result["content"][0]["text"].split("\n")
    assert lines[:2] == ['Found 2 results for "meeting":', ""]
    found = result["structuredContent"]["results"]
    assert lines[2:] == [
        f"{item['docid']} {round(item['score'] * 100)}% {item['file']} - {item['title']}"
        for item in found
    ]
    assert {item["docid"] for item in found} == {"#151916", "#49f282"}
    assert {item["title"] for item in found} == {"February Meeting Notes", "January Meeting Notes"}
    assert {item["context"] for item in found} == {MEETINGS}
    assert all(0 < item["score"] < 1 and item["score"] == round(item["score"], 2) for item in found)
    snippets = {item["file"]: item["snippet"] for item in found}
    assert snippets["docs/meetings/meeting-2024-02.md"] == (
        "1: # February Meeting Notes\n2: \n3: Followed up on Q1 progress."
    )


async def test_one_result_is_one_result(client):
    assert (await text_of(client, "search", query="readme")).startswith(
        'Found 1 result for "readme":\n\n#e9f7c1 '
    )
    [item] = await results_of(client, query="readme")
    assert (item["file"], item["title"]) == ("docs/readme.md", "Project README")
    assert (item["context"], item["docid"]) == (ALL, "#e9f7c1")
    assert item["snippet"] == (
        "1: # Project README\n2: \n3: This is the main readme file for the project."
    )


async def test_words_are_combined_by_or_and_more_of_them_come_first(client):
    found = await results_of(client, query="budget roadmap")
    assert [item["file"] for item in found] == [
        "notes/plan.md",
        "docs/meetings/meeting-2024-01.md",
        "docs/meetings/meeting-2024-02.md",
    ]
    assert found[0]["snippet"] == (
        "4: \n5: No heading match. The budget roadmap is here.\n6: line four\n7: line five"
    )


async def test_a_collection_is_searched_alone(client):
    [item] = await results_of(client, query="budget", collection="notes")
    assert (item["docid"], item["file"], item["title"]) == ("#153bbb", "notes/plan.md", "Plan")


@pytest.mark.parametrize(
    "arguments",
    [
        {"query": "xyznone"},
        {"query": ""},
        {"query": "budget", "minScore": 0.99},
        {"query": "budget", "limit": 0},
        {"query": "!!! ???"},
    ],
    ids=str,
)
@pytest.mark.parametrize("tool", ["search", "query"])
async def test_nothing_found_is_said(client, tool, arguments):
    result = await called(client, tool, **arguments)
    assert result["structuredContent"]["results"] == []
    assert result["content"][0]["text"] == f'No results found for "{arguments["query"]}"'
    assert not result["isError"]


async def test_what_was_not_compared_by_meaning_is_told(client):
    found = await called(client, "query", query="budget")
    lack = "Searched by words only, not by meaning: there is no model in this test"
    assert found["structuredContent"]["results"]
    assert found["structuredContent"]["note"] == lack
    assert found["content"][1]["text"] == f"{lack}."
    by_words = await called(client, "search", query="budget")
    assert by_words["structuredContent"].keys() == {"results"}


@pytest.mark.parametrize("tool", ["search", "query"])
async def test_of_an_unknown_collection_it_is_said_which_there_are(client, tool):
    result = await called(client, tool, query="budget", collection="note")
    none, hint = (part["text"] for part in result["content"])
    assert (result["isError"], none) == (False, 'No results found for "budget"')
    assert hint == "There is no collection 'note'; there are 'notes', 'docs'."
    assert result["structuredContent"] == {"results": [], "note": hint.removesuffix(".")}


async def test_the_limit_is_kept(client):
    assert len(await results_of(client, query="budget")) == 3
    assert len(await results_of(client, query="budget", limit=1)) == 1
    assert len(await results_of(client, query="budget", limit=2.9)) == 2


async def test_a_long_line_is_cut_around_what_was_asked(client):
    [item] = await results_of(client, query="Lorem")
    assert (item["docid"], item["file"]) == ("#306298", "docs/large-file.md")
    assert len(item["snippet"]) < 400
    assert "Lorem ipsum Lorem ipsum" in item["snippet"]


@pytest.mark.parametrize(
    ("query", "file"),
    [("project's", "docs/readme.md"), ('"tokens" AND (x)', "docs/api.md")],
)
async def test_a_query_is_words_whatever_stands_between_them(client, query, file):
    assert file in [item["file"] for item in await results_of(client, query=query)]


@pytest.mark.parametrize(
    ("query", "file"),
    [("describing", "docs/api.md"), ("hires", "docs/meetings/meeting-2024-01.md")],
)
async def test_words_meet_by_their_stems(client, query, file):
    assert [item["file"] for item in await results_of(client, query=query)] == [file]


async def test_a_search_by_meaning_without_vectors_is_an_error(client):
    result = await called(client, "vsearch", query="anything")
    assert result["isError"]
    assert result["content"][0]["text"] == (
        "Vector index not found. Run 'qmd embed' first to create embeddings."
    )
    assert "structuredContent" not in result


@pytest.mark.parametrize("arguments", [{"query": ""}, {"query": "x", "collection": "none"}])
async def test_without_vectors_that_is_said_first(client, arguments):
    result = await called(client, "vsearch", **arguments)
    assert result["isError"]
    assert result["content"][0]["text"].startswith("Vector index not found.")


async def test_without_collections_nothing_is_found_and_how_to_add_one_is_said(tmp_path):
    home = written(tmp_path)
    home.configuration.write_text("", encoding="utf-8")
    async with serving(documents_of(home, FakeEmbedder())) as client:
        for tool in ("search", "query"):
            result = await called(client, tool, query="budget")
            assert not result["isError"]
            assert result["structuredContent"]["results"] == []
            none, hint = (part["text"] for part in result["content"])
            assert none == 'No results found for "budget"'
            assert hint.startswith("There are no collections yet; add one with `")
        assert (await called(client, "vsearch", query="budget"))["isError"]


@pytest.mark.parametrize("tool", ["search", "vsearch", "query"])
async def test_a_document_of_a_thousand_sections_hides_no_other(tmp_path, tool):
    home = written(tmp_path)
    days = "".join(f"## Day {n}\n\n{'The budget of that day. ' * 40}\n\n" for n in range(600))
    teams = {f"notes/team{n}.md": f"# Team {n}\n\nThe budget is open.\n" for n in range(12)}
    write(tmp_path, {"notes/journal.md": f"# Journal\n\n{days}", **teams})
    documents = documents_of(home, FakeEmbedder())
    async with serving(documents) as client:
        await settled(documents)
        await documents.embed()
        found = await results_of(client, tool, query="budget", limit=30, minScore=0)
        assert {"notes/journal.md", *teams} - {item["file"] for item in found} == set()


async def test_a_query_without_vectors_is_answered_by_words(client):
    assert [i["file"] for i in await results_of(client, "query", query="roadmap budget")] == [
        i["file"] for i in await results_of(client, "search", query="roadmap budget")
    ]


# -- wrong arguments -------------------------------------------------------------------------


def invalid(tool, field, expected, received):
    issue = {
        "expected": expected,
        "code": "invalid_type",
        "path": [field],
        "message": f"Invalid input: expected {expected}, received {received}",
    }
    return (
        f"MCP error -32602: Input validation error: Invalid arguments for tool {tool}: "
        + json.dumps([issue], indent=2)
    )


TOO_FEW = {
    "origin": "number",
    "code": "too_small",
    "minimum": 0,
    "inclusive": True,
    "path": ["limit"],
    "message": "Too small: expected number to be >=0",
}


@pytest.mark.parametrize("tool", ["search", "vsearch", "query"])
async def test_fewer_than_no_results_are_refused_and_not_said_to_be_none(client, tool):
    result = await called(client, tool, query="budget", limit=-1)
    head, _, issues = result["content"][0]["text"].partition(": [")
    assert head.endswith(f"Invalid arguments for tool {tool}")
    assert (result["isError"], json.loads(f"[{issues}")) == (True, [TOO_FEW])


@pytest.mark.parametrize(
    ("tool", "arguments", "words"),
    [
        ("search", {"query": 5}, invalid("search", "query", "string", "number")),
        ("search", {}, invalid("search", "query", "string", "undefined")),
        ("get", {}, invalid("get", "file", "string", "undefined")),
        ("query", {"query": ["a"]}, invalid("query", "query", "string", "array")),
        ("search", {"query": "a", "limit": "5"}, invalid("search", "limit", "number", "string")),
        (
            "get",
            {"file": "a", "lineNumbers": 1},
            invalid("get", "lineNumbers", "boolean", "number"),
        ),
        ("get", {"file": "a", "fromLine": "2"}, invalid("get", "fromLine", "number", "string")),
        ("get", {"file": "a", "fromLine": None}, invalid("get", "fromLine", "number", "null")),
        (
            "multi_get",
            {"pattern": "a", "maxLines": []},
            invalid("multi_get", "maxLines", "number", "array"),
        ),
        (
            "search",
            {"query": "a", "collection": 5},
            invalid("search", "collection", "string", "number"),
        ),
        (
            "search",
            {"query": "a", "collection": None},
            invalid("search", "collection", "string", "null"),
        ),
        ("nope", {}, "MCP error -32602: Tool nope not found"),
    ],
    ids=str,
)
async def test_wrong_arguments_are_refused_in_the_words_of_the_contract(
    client, tool, arguments, words
):
    result = await called(client, tool, **arguments)
    assert (result["isError"], result["content"][0]["text"]) == (True, words)


FRONT_MATTER = {
    "both.md": ("---\ntitle: Given\n---\nQuagga.\n\n# Heading\n", "Heading"),
    "section.md": ("---\ntitle: Given\n---\nQuagga.\n\n## See also\n", "Given"),
    "given.md": ("---\ntitle: Given\n---\nQuagga.\n", "Given"),
    "neither.md": ("---\ntags: a\n---\nQuagga.\n", "neither"),
}


async def test_a_title_is_the_first_heading_unless_that_is_a_section_s(tmp_path):
    home = written(tmp_path)
    write(tmp_path / "notes", {name: text for name, (text, _) in FRONT_MATTER.items()})
    documents = documents_of(home, FakeEmbedder())
    async with serving(documents) as client:
        await client.call_tool("status", {})
        await settled(documents)
        found = {item["file"]: item["title"] for item in await results_of(client, query="quagga")}
        assert found == {f"notes/{name}": title for name, (_, title) in FRONT_MATTER.items()}
        assert {item["file"] for item in await results_of(client, query="given")} >= {
            "notes/both.md", "notes/given.md",
        }  # fmt: skip


# -- reading ---------------------------------------------------------------------------------


def with_context(text, context=ALL):
    return f"<!-- Context: {context} -->\n\n{text}"


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"file": "readme.md"}, README),
        ({"file": "docs/readme.md"}, README),
        ({"file": "qmd://docs/readme.md"}, README),
        ({"file": "#e9f7c1"}, README),
        ({"file": "e9f7c1"}, README),
        ({"file": "#e9f7c1:3"}, "\n".join(README.split("\n")[2:])),
        ({"file": "'#e9f7c1:2'", "maxLines": 1, "lineNumbers": True}, "2: "),
        ({"file": "docs/readme.md:3"}, "\n".join(README.split("\n")[2:])),
        (
            {"file": "docs/readme.md:3", "maxLines": 1, "lineNumbers": True},
            "3: This is the main readme file for the project.",
        ),
        # The suffix counts more than fromLine, as the specification says.
        (
            {"file": "docs/readme.md:3", "fromLine": 5, "lineNumbers": True, "maxLines": 1},
            "3: This is the main readme file for the project.",
        ),
        (
            {"file": "docs/readme.md", "fromLine": 2, "maxLines": 2, "lineNumbers": True},
            "2: \n3: This is the main readme file for the project.",
        ),
    ],
    ids=str,
)
async def test_a_document_is_read(client, arguments, text):
    assert await document(client, **arguments) == with_context(text)


async def test_a_document_is_a_resource_with_what_is_said_of_it(client):
    result = await called(client, "get", file="meetings/meeting-2024-01.md")
    assert result["content"][0]["resource"] == {
        "uri": "qmd://docs/meetings/meeting-2024-01.md",
        "mimeType": "text/markdown",
        "text": with_context(JANUARY, MEETINGS),
    }


@pytest.mark.parametrize("where", [{"file": "plan.md:90"}, {"file": "plan.md", "fromLine": 90}])
async def test_a_line_behind_the_end_is_told(client, where):
    resource, note = (await called(client, "get", **where))["content"]
    assert resource["resource"]["text"].endswith("-->\n\n")
    count = len(FILES["notes/plan.md"].splitlines())
    assert note["text"] == f"The document has {count} lines; line 90 is behind its end."


@pytest.mark.parametrize(
    ("file", "likely"),
    [
        ("readm.md", ["readme.md", "api.md", "plan.md"]),
        ("docs/readm.md", []),
        ("nothing-like-this-at-all.md", []),
        ("#000000", []),
        ("../conf/index.yml", []),
        ("docs/../../conf/index.yml", []),
        ("/etc/passwd", []),
        ("", []),
        ("x" * 20_000, []),
        ("docs/readme.md\0", []),
    ],
    ids=lambda value: str(value)[:20],
)
async def test_what_is_no_document_is_said_to_be_none(client, file, likely):
    result = await called(client, "get", file=file)
    assert result["isError"]
    words = f"Document not found: {file}"
    if likely:
        words += "\n\nDid you mean one of these?" + "".join(f"\n  - {path}" for path in likely)
    assert result["content"][0]["text"] == words


async def uris(client, **arguments):
    """What `multi_get` answers: the URIs of documents, and texts."""
    result = await called(client, "multi_get", **arguments)
    assert not result["isError"], result
    return [part.get("text") or part["resource"]["uri"] for part in result["content"]]


@pytest.mark.parametrize("prefix", ["", "docs/", "qmd://docs/"])
async def test_a_glob_means_documents_by_path_and_by_key(client, prefix):
    assert await uris(client, pattern=f"{prefix}meetings/*.md") == [
        "qmd://docs/meetings/meeting-2024-01.md",
        "qmd://docs/meetings/meeting-2024-02.md",
    ]


async def test_a_list_means_documents_in_its_order(client):
    assert await uris(client, pattern="readme.md, api.md, nope.md") == [
        "Errors:\nFile not found: nope.md (did you mean: api.md, plan.md, readme.md?)",
        "qmd://docs/readme.md",
        "qmd://docs/api.md",
    ]


async def test_many_documents_are_cut_and_numbered(client):
    result = await called(client, "multi_get", pattern="**/*.md", maxLines=2, lineNumbers=True)
    texts = [part.get("text") or part["resource"]["text"] for part in result["content"]]
    assert with_context("1: # Project README\n2: \n3: \n4: [... truncated 3 more lines]") in texts
    assert len(texts) == len(FILES)
    assert (
        "[SKIPPED: docs/large-file.md - File too large (23KB). "
        "Use 'qmd_get' with file=\"docs/large-file.md\" to retrieve.]"
    ) in texts


async def test_of_very_many_large_documents_the_first_are_named_and_the_others_counted(
    client, monkeypatch
):
    monkeypatch.setattr(retrieval, "_MOST_SKIPPED", 2)
    result = await called(client, "multi_get", pattern="**/*.md", maxBytes=100)
    error, *texts = [part.get("text") or part["resource"]["uri"] for part in result["content"]]
    large = [key for key, text in FILES.items() if len(text.encode()) > 100]
    assert [text.split()[1] for text in texts if "[SKIPPED" in text] == sorted(large)[:2]
    assert len(texts) - 2 == len(FILES) - len(large)
    assert error == (
        f"Errors:\nToo large as well: {len(large) - 2} more files; ask for fewer files at once, or "
        "for one with get"
    )


async def test_a_large_document_comes_if_it_is_asked_for(client):
    result = await called(client, "multi_get", pattern="large-file.md", maxBytes=50_000, maxLines=1)
    assert result["content"][0]["resource"]["text"] == with_context(
        "# Large Document\n\n[... truncated 2 more lines]"
    )
    assert LOREM in await document(client, file="large-file.md")


@pytest.mark.parametrize("pattern", ["none/*.md", ",", " , "])
async def test_a_pattern_that_means_nothing_is_an_error(client, pattern):
    result = await called(client, "multi_get", pattern=pattern)
    assert result["isError"]
    assert result["content"][0]["text"] == f"Errors:\nNo files matched pattern: {pattern}"


@pytest.mark.parametrize(
    ("uri", "text"),
    [
        ("qmd://docs/readme.md", with_context(numbered(README))),
        (
            "qmd://docs%2Fmeetings%2Fmeeting-2024-01.md",
            with_context(numbered(JANUARY), MEETINGS),
        ),
        ("qmd://docs/meetings/meeting-2024-01.md", with_context(numbered(JANUARY), MEETINGS)),
        ("qmd://meeting-2024-02.md", with_context(numbered(FEBRUARY), MEETINGS)),
        ("qmd://other/meeting-2024-02.md", with_context(numbered(FEBRUARY), MEETINGS)),
        ("qmd://docs/nope.md", "Document not found: docs/nope.md"),
    ],
)
async def test_a_resource_is_read_with_numbered_lines(client, uri, text):
    [content] = (await client.read_resource(uri)).contents
    assert (str(content.uri), content.text) == (uri, text)


async def test_the_status_is_that_of_the_contract(client):
    result = await called(client, "status")
    status = result["structuredContent"]
    docs, notes = status.pop("collections")
    assert status == {"totalDocuments": 7, "needsEmbedding": 7, "hasVectorIndex": False}
    assert result["content"][0]["text"] == (
        "QMD Index Status:\n  Total documents: 7\n  Needs embedding: 7\n  Vector index: no\n"
        f"  Collections: 2\n    - {docs['path']} (6 docs)\n    - {notes['path']} (1 docs)"
    )
    assert (docs["name"], docs["pattern"], docs["documents"]) == ("docs", "**/*.md", 6)
    assert docs["lastUpdated"].endswith("Z")


# -- with vectors, and as files change -------------------------------------------------------


@pytest.fixture
async def live(tmp_path):
    """Documents with vectors, their client and their folder."""
    documents = documents_of(written(tmp_path), FakeEmbedder(dimension=64))
    async with serving(documents) as client:
        await client.call_tool("status", {})
        await settled(documents)
        await documents.embed()
        yield documents, client, tmp_path


async def test_documents_are_found_by_meaning_once_they_have_vectors(live):
    _, client, folder = live
    found = await results_of(client, "vsearch", query="meeting notes", minScore=0.1)
    assert {item["file"] for item in found[:2]} == {
        "docs/meetings/meeting-2024-01.md",
        "docs/meetings/meeting-2024-02.md",
    }
    both = await results_of(client, "query", query="budget roadmap")
    assert {item["file"] for item in both[:2]} == {
        "notes/plan.md",
        "docs/meetings/meeting-2024-01.md",
    }
    scores = [item["score"] for item in both]
    assert scores == sorted(scores, reverse=True)
    assert all(0 <= score <= 1 for score in scores)
    assert (await called(client, "status"))["structuredContent"]["hasVectorIndex"]


async def test_what_is_read_is_the_file_as_it_is_now_and_the_index_follows(live):
    documents, client, folder = live
    (folder / "docs/readme.md").write_text("# Changed\n\nAbout zebras.\n", "utf-8")
    assert await document(client, file="docs/readme.md") == with_context(
        "# Changed\n\nAbout zebras.\n"
    )
    (folder / "docs/new.md").write_text("# New\n\nAbout giraffes.\n", "utf-8")
    assert "giraffes" in await document(client, file="docs/new.md")
    await settled(documents)
    [item] = await results_of(client, query="zebras")
    assert (item["file"], item["title"]) == ("docs/readme.md", "Changed")


async def test_a_document_that_is_gone_is_not_found(live):
    documents, client, folder = live
    (folder / "docs/readme.md").unlink()
    result = await called(client, "get", file="docs/readme.md")
    assert result["isError"]
    await settled(documents)
    assert await results_of(client, query="readme") == []


async def test_a_collection_is_added_renamed_and_removed_by_hand(live):
    documents, client, folder = live
    texts = len(documents.embedder.texts)
    configuration = folder / "conf/index.yml"
    original = configuration.read_text("utf-8")
    configuration.write_text(original.replace("  docs:", "  papers: # by hand"), "utf-8")
    await settled(documents)
    found = await results_of(client, query="readme")
    assert [item["file"] for item in found] == ["papers/readme.md"]
    assert found[0]["context"] == ALL
    await documents.embed()
    assert len(documents.embedder.texts) == texts  # nothing was embedded again

    configuration.write_text(original.partition("  docs:")[0] + "  {}\n", "utf-8")
    await settled(documents)
    assert (await called(client, "status"))["structuredContent"]["totalDocuments"] == 0


async def test_what_cannot_be_found_by_meaning_yet_is_told(tmp_path):
    documents = documents_of(written(tmp_path), FakeEmbedder(dimension=64))
    async with serving(documents) as client:
        await client.call_tool("status", {})
        await settled(documents)
        new = await called(client, "query", query="budget")
        assert new["structuredContent"]["note"] == (
            "Searched by words only, not by meaning: nothing is embedded yet; "
            "`vector-index-mcp documents embed` does that"
        )
        await documents.embed()
        assert "note" not in (await called(client, "query", query="budget"))["structuredContent"]
        documents.embedder.hold(queries=False)
        write(tmp_path, {"notes/new.md": "# Zebra\n\nStripes.\n"})
        await eventually(lambda: results_of(client, query="zebra"))
        for tool in ("query", "vsearch"):
            lacking = (await called(client, tool, query="zebra"))["structuredContent"]
            said = "1 document cannot be found by meaning yet"
            if tool == "query":
                assert lacking["note"] == said
            assert lacking["note"].startswith(said)
        documents.embedder.release()
        await documents.embed()
        assert "note" not in (await called(client, "query", query="zebra"))["structuredContent"]


async def test_searches_find_the_documents_of_a_collection_that_is_being_renamed(live):
    documents, client, folder = live
    write(folder, DATED)
    await settled(documents)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(documents.rename, "notes", "plans")
        for _ in range(20):
            found = await results_of(client, "search", query="zebras", limit=20)
            assert len(found) == len(DATED)
    assert {item["file"].partition("/")[0] for item in found} == {"plans"}


async def test_a_collection_whose_path_is_a_link_follows_it(tmp_path):
    write(tmp_path, {"one/a.md": "# Zebra\n", "two/b.md": "# Lion\n"})
    current = tmp_path / "current"
    current.symlink_to("one")
    write(tmp_path, {"conf/index.yml": f"collections:\n  all:\n    path: {current}\n"})
    home = Home("index", tmp_path / "conf/index.yml", str(tmp_path / "index.lancedb"))
    documents = documents_of(home, FakeEmbedder())
    async with serving(documents) as client:
        await client.call_tool("status", {})
        await settled(documents)
        assert [item["file"] for item in await results_of(client, "search", query="zebra")]
        (tmp_path / "next").symlink_to("two")
        (tmp_path / "next").rename(current)

        async def files():
            return [item["file"] for item in await results_of(client, "search", query="lion")]

        assert await eventually(files) == ["all/b.md"]
        assert await results_of(client, "search", query="zebra") == []
        current.unlink()
        await documents.follow()
        assert await files() == ["all/b.md"]
        current.symlink_to("one")
        assert await eventually(lambda: results_of(client, "search", query="zebra"))


DATED = {
    "notes/a.md": "---\ntitle: Alpha\ntags: [work/budget, zoo]\ndate: 2024-05-02\n---\nzebras\n",
    "notes/b.md": "---\ntags: zoo\ndate: 2024-06-01\n---\n# Beta\n\nzebras and zebras\n",
    "notes/c.md": "---\ntags: other\ncreated: 2023-01-01\n---\n# Gamma\n\nzebras\n",
    "notes/2022-03-04 visit.md": "# Visit\n\nzebras\n",
    "notes/undated.md": "# Delta\n\nzebras\n",
}
NO_DATES = (
    "after:lunch", "after:2024-99-99", "after:2024-13", "before:2024-02-31", "before:2023-00",
    "after:0000", "after:٢٠٢٤",
)  # fmt: skip
OF_2022 = "notes/2022-03-04 visit.md"


@pytest.fixture(scope="module")
async def dated(tmp_path_factory):
    """A client of documents with vectors, some of which say when they were written."""
    folder = tmp_path_factory.mktemp("dated")
    documents = documents_of(written(folder), FakeEmbedder(dimension=64))
    write(folder, DATED)
    async with serving(documents) as client:
        await client.call_tool("status", {})
        await settled(documents)
        await documents.embed()
        yield client


@pytest.mark.parametrize(
    ("query", "files"),
    [
        ("zebras tag:zoo", {"notes/a.md", "notes/b.md"}),
        ("zebras tag:#ZOO tag:work", {"notes/a.md"}),
        ('tag:"work/budget" zebras', {"notes/a.md"}),
        ("zebras after:2024", {"notes/a.md", "notes/b.md"}),
        ("zebras after:2024-06", {"notes/b.md"}),
        ("zebras before:2024-06-01", {"notes/a.md", "notes/c.md", OF_2022}),
        ("zebras after:2024 before:2024-06", {"notes/a.md"}),
        ("zebras after:2022-03-04 before:2023", {OF_2022}),
        ("zebras tag:zoo before:1999", set()),
        # No condition, since no document has the tag, and no date is meant.
        ("zebras tag:nobody", {*DATED}),
        *((f"zebras {no_date}", {*DATED}) for no_date in NO_DATES),
    ],
)
@pytest.mark.parametrize("tool", ["search", "query"])
async def test_documents_are_filtered_by_what_they_say_of_themselves(dated, tool, query, files):
    found = await results_of(dated, tool, query=query, limit=20)
    assert {item["file"] for item in found if item["file"] in DATED} == files
    titles = {item["file"]: item["title"] for item in found}
    assert titles.get("notes/a.md", "Alpha") == "Alpha"
    assert not any("title:" in item["snippet"] for item in found)


@pytest.mark.parametrize(
    ("query", "said"),
    [
        (
            "zebras tag:zo",
            "No document has the tag 'zo' (did you mean 'zoo'?): 'tag:zo' counts as words",
        ),
        (
            "zebras after:2024-13",
            "'2024-13' is no date such as 2024, 2024-05 or 2024-05-31: 'after:2024-13' counts as "
            "words",
        ),
        (
            "zebras tag:zoo before:1999",
            "No document meets all conditions of the query (tag:, before:, after:)",
        ),
    ],
)
async def test_conditions_that_choose_nothing_are_named(live, query, said):
    documents, client, folder = live
    write(folder, DATED)
    await settled(documents)
    answer = await called(client, "search", query=query)
    assert answer["structuredContent"]["note"] == said
    nowhere = await called(client, "search", query="tag:zoo before:1999", collection="note")
    assert "There is no collection 'note'" in nowhere["structuredContent"]["note"]
    assert "note" not in (await called(client, "search", query="a tag:zoo"))["structuredContent"]


@pytest.mark.parametrize("tool", ["search", "vsearch", "query"])
async def test_conditions_alone_list_the_newest(live, tool):
    documents, client, folder = live
    write(folder, DATED)
    await settled(documents)
    found = await results_of(client, tool, query="tag:zoo")
    assert [item["file"] for item in found] == ["notes/b.md", "notes/a.md"]
    assert await results_of(client, tool, query="tag:zoo", collection="docs") == []
    assert len(await results_of(client, tool, query="tag:zoo", limit=1)) == 1


LINKED = {
    "notes/from.md": "# From\n\nSee [[plan]], [the readme](../docs/readme.md) and [web](http://x).\n",
    "notes/deep/other.md": "# Other\n\n[plan](../plan.md), [again](/plan.md) and [[Nobody]].\n",
}


async def test_a_document_says_what_it_links_to_and_what_links_to_it(live):
    documents, client, folder = live
    write(folder, LINKED)
    await settled(documents)
    assert (await document(client, file="plan.md")).startswith(
        "<!-- Context: Global ctx -->\n\n"
        "<!-- Linked from: notes/deep/other.md, notes/from.md -->\n\n# Plan\n"
    )
    text = await document(client, file="from.md", lineNumbers=True)
    assert "<!-- Links to: notes/plan.md, docs/readme.md -->\n\n1: # From\n" in text
    (folder / "notes/from.md").unlink()
    await settled(documents)
    assert "<!-- Linked from: notes/deep/other.md -->" in await document(client, file="plan.md")


PAGE = "<html><head><title>Zebra page</title></head><body><p>Stripes.</p></body></html>"


async def test_other_formats_are_read_as_markdown(live):
    documents, client, folder = live
    (folder / "notes/zebra.html").write_text(PAGE, "utf-8")
    notebook = {"cells": [{"cell_type": "markdown", "source": "# Giraffe book"}]}
    (folder / "notes/giraffe.ipynb").write_text(json.dumps(notebook), "utf-8")
    configuration = folder / "conf/index.yml"
    changed = configuration.read_text("utf-8").replace("**/*.md", "**/*.{md,html,ipynb}")
    configuration.write_text(changed, "utf-8")
    await settled(documents)
    for query, file, title in [
        ("stripes", "notes/zebra.html", "Zebra page"),
        ("giraffe", "notes/giraffe.ipynb", "Giraffe book"),
    ]:
        [item] = await results_of(client, query=query)
        assert (item["file"], item["title"]) == (file, title)
        assert f"# {title}" in await document(client, file=file)
    run = (await documents.index.status()).last_run.number
    large = PAGE.replace("Stripes", f"Hooves<script>{'x' * 3_000_000}</script>")
    (folder / "notes/zebra.html").write_text(large, "utf-8")
    assert "Hooves" in await document(client, file="zebra.html")
    assert "Hooves" in str(await called(client, "multi_get", pattern="notes/zebra.html"))
    assert (await documents.index.status()).last_run.number == run  # nothing else was looked at


async def test_a_configuration_that_is_broken_by_hand_loses_nothing(live):
    documents, client, folder = live
    configuration = folder / "conf/index.yml"
    configuration.write_text("collections: [", "utf-8")
    await documents.follow()
    assert "index.yml" in documents.problem
    assert len(await results_of(client, query="budget")) == 3
    assert configuration.read_text("utf-8") == "collections: ["


@pytest.mark.parametrize("state", ["missing", "empty", "half", "half a path"])
async def test_a_configuration_that_is_being_replaced_loses_nothing(live, state, monkeypatch):
    """Whoever saves a file may delete or empty it first, and write the rest a moment later."""
    documents, client, folder = live
    configuration = folder / "conf/index.yml"
    text, stamp = configuration.read_text("utf-8"), documents._stamp
    monkeypatch.setattr(service, "_LOOK_SECONDS", 3_600.0)
    configuration.write_text(text, "utf-8")
    await eventually(lambda: documents._stamp != stamp)  # from now on nobody else looks
    read, was_read = documents._read, threading.Event()

    def reading():
        found = read()
        was_read.set()
        return found

    monkeypatch.setattr(documents, "_read", reading)
    halves = {
        "half": text.partition("  notes:")[0],
        "half a path": text[: text.index("/notes") + len("/not")],
    }
    some = halves.get(state, "")
    assert some != text
    for _ in range(2):
        was_read.clear()
        configuration.write_text(some, "utf-8")
        if state == "missing":
            configuration.unlink()
        async with anyio.create_task_group() as tasks:
            for _ in range(2):  # two clients may ask for the status at once
                tasks.start_soon(documents.follow)
            assert await anyio.to_thread.run_sync(was_read.wait, 10.0)
            configuration.write_text(text, "utf-8")
        assert len(await results_of(client, query="budget")) == 3
    configuration.write_text("", "utf-8")
    await documents.follow()
    assert await results_of(client, query="budget") == []


@pytest.mark.parametrize("path", ["/", "~", ".."])
async def test_a_whole_drive_or_home_is_no_collection_unless_it_is_meant(live, path, monkeypatch):
    documents, _, folder = live
    monkeypatch.setenv("HOME", str(folder / "notes"))
    broad = {"~": folder / "notes", "..": folder}.get(path, Path("/"))
    with pytest.raises(SettingsError, match="whole drive, a home folder"):
        await documents.add(Collection("broad", broad))
    assert [c.name for c in read(documents.home.configuration).collections] == ["docs", "notes"]


async def test_a_broad_folder_in_the_configuration_is_a_problem_and_not_indexed(live):
    documents, client, folder = live
    configuration = folder / "conf/index.yml"
    text = configuration.read_text("utf-8")
    configuration.write_text(f"{text}  all:\n    path: /\n  made:\n    path: /proc/self\n", "utf-8")
    await settled(documents)
    problems = {each.collection.name: each.problem for each in (await documents.look()).collections}
    assert (problems["docs"], problems["notes"]) == ("", "")
    assert all("whole drive" in problems[name] for name in ("all", "made"))
    assert [each.name for each in documents.index.folders] == ["docs", "notes"]
    await documents.remove("all")
    assert len(await results_of(client, query="budget")) == 3


@pytest.mark.parametrize("name", ["id_rsa", "server.key", "looks.md"])
async def test_what_holds_keys_is_not_read_either(live, name):
    documents, client, folder = live
    key = "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEAAAAA\n"
    (folder / "notes" / name).write_text(key, "utf-8")
    for _ in range(2):  # before it is looked at, and after
        result = await called(client, "get", file=f"notes/{name}")
        assert result["isError"], result
        assert "b3Blbn" not in str(result)
        many = await called(client, "multi_get", pattern=f"notes/{name}")
        assert "b3Blbn" not in str(many)
        [content] = (await client.read_resource(f"qmd://notes/{name}")).contents
        assert "b3Blbn" not in content.text
        await settled(documents)


async def test_a_name_of_several_documents_names_them(live):
    documents, client, folder = live
    write(folder, {"notes/readme.md": "# Another\n", "docs/readme.md": "# One\n"})
    await settled(documents)
    result = await called(client, "get", file="readme.md")
    assert "# One" in str(result["content"][0])
    assert result["content"][1]["text"] == "The same name means notes/readme.md as well."
    result = await called(client, "get", file="docs/readme.md")
    assert len(result["content"]) == 1


def alike():
    """Two texts whose docid is the same, and that docid."""
    known = {}
    for number in itertools.count():
        text = f"# Number {number}\n"
        docid = docid_of(hashlib.sha256(text.encode()).hexdigest())
        if docid in known:
            return known[docid], text, docid
        known[docid] = text


async def test_a_docid_of_several_documents_names_those_with_other_texts(live):
    documents, client, folder = live
    one, other, docid = alike()
    write(folder, {"docs/one.md": one, "docs/same.md": one, "notes/other.md": other})
    await settled(documents)
    result = await called(client, "get", file=docid)
    assert one.strip() in str(result["content"][0])
    assert result["content"][1]["text"] == "The same name means notes/other.md as well."
    result = await called(client, "multi_get", pattern=f"plan.md, {docid}, {docid}")
    assert not result["isError"]
    [notes, _, found] = result["content"]
    assert notes["text"] == f"Errors:\n{docid} means notes/other.md as well"
    assert one.strip() in str(found)


def listed(documents):
    return [c.name for c in read(documents.home.configuration).collections]


async def test_what_the_index_cannot_follow_now_is_said_to_be_done_all_the_same(live):
    documents, _, folder = live
    other = documents_of(documents.home, FakeEmbedder())
    async with other.running(Role.VISITOR):
        with pytest.raises(BusyError, match="'more' is listed, and will be indexed as soon"):
            await other.add(Collection("more", folder / "notes", "*.txt"))
        assert listed(documents) == ["docs", "notes", "more"]
        with pytest.raises(BusyError, match="listed as 'plans', and the index will follow as soon"):
            await other.rename("notes", "plans")
        with pytest.raises(BusyError, match="'more' is no longer listed, and will leave the index"):
            await other.remove("more")
    assert listed(documents) == ["docs", "plans"]


async def test_a_cleanup_that_fails_says_so(live, monkeypatch):
    documents, _, _ = live

    async def full():
        raise StorageError("the disk is full")

    monkeypatch.setattr(documents.index.indexer.live.index.store, "maintain", full)
    for _ in range(2):
        with pytest.raises(StorageError, match="the disk is full"):
            await documents.tidy()


async def test_questions_go_on_while_an_operation_is_under_way(live):
    documents, client, folder = live
    async with documents.operations.doing("update"), anyio.create_task_group() as tasks:
        tasks.start_soon(partial(documents.update, pull=False))  # waits for its turn
        assert len(await results_of(client, query="budget")) == 3
        tasks.cancel_scope.cancel()


async def test_who_asks_before_the_disk_has_been_looked_at_is_told(tmp_path, monkeypatch):
    home = written(tmp_path)
    async with serving(documents_of(home, FakeEmbedder(dimension=64))) as client:
        await client.call_tool("status", {})
        await eventually(lambda: results_of(client, query="budget"))
    write(tmp_path, {"notes/new.md": "# Zebra\n\nStripes.\n"})
    opened = anyio.Event()
    monkeypatch.setattr(Outlook, "walk", held_at(Outlook.walk, opened))
    async with serving(documents_of(home, FakeEmbedder(dimension=64))) as client:
        early = await called(client, "search", query="zebra")
        assert early["structuredContent"]["results"] == []
        said = [part["text"] for part in early["content"]]
        assert said[0] == 'No results found for "zebra"'
        assert said[1].startswith("Documents may be missing")
        assert said[1] == f"{early['structuredContent']['note']}."
        opened.set()
        [found] = await eventually(lambda: results_of(client, query="zebra"))
        assert found["file"] == "notes/new.md"
        assert len((await called(client, "search", query="zebra"))["content"]) == 1


async def test_what_stands_in_a_document_s_name_makes_no_second_result(tmp_path):
    home = written(tmp_path)
    write(tmp_path, {"docs/x\n#bbbbbb 99% docs/y.md - Y.md": "The quokka.\n"})
    documents = documents_of(home, FakeEmbedder(dimension=64))
    async with serving(documents) as client:
        await client.call_tool("status", {})
        await settled(documents)
        text = await text_of(client, "search", query="quokka", collection="docs")
        assert [line[:7] for line in text.splitlines()[2:]] != []
        assert not any(line.startswith("#bbbbbb") for line in text.splitlines())


async def test_who_asks_while_a_document_changes_is_told(tmp_path, monkeypatch):
    home = written(tmp_path)
    documents = documents_of(home, FakeEmbedder(dimension=64))
    async with serving(documents) as client:
        await client.call_tool("status", {})
        await settled(documents)
        found = await results_of(client, query="budget", collection="docs")
        opened = anyio.Event()
        monkeypatch.setattr(Outlook, "look", held_at(Outlook.look, opened))
        for each in found:
            key = f"docs/{each['file'].partition('/')[2]}"
            (tmp_path / key).write_text("# Zebra\n\nStripes.\n")
        answer = await called(client, "search", query="budget", collection="docs")
        said = f"{len(found)} documents were found by their text of before the last save"
        assert answer["structuredContent"]["note"] == said
        opened.set()
        await eventually(lambda: none_is_found(client, query="budget", collection="docs"))


@pytest.mark.parametrize(
    ("tool", "given"),
    [
        ("search", {"query": "budget", "collections": ["notes"], "min_score": 0.9}),
        ("get", {"file": "notes/plan.md", "lines": 3}),
        ("multi_get", {"pattern": "notes/*.md", "lines": 3}),
        ("status", {"verbose": True}),
    ],
)
async def test_what_is_asked_and_ignored_is_told(live, tool, given):
    """Else an agent takes what it reads for what a filter has left."""
    _, client, _ = live
    answer = await called(client, tool, **given)
    names = [*given][0 if tool == "status" else 1 :]
    told = f"Unknown arguments were ignored: {', '.join(map(repr, names))}"
    assert answer["content"][-1]["text"] == f"{told}."
    if "structuredContent" in answer:
        assert answer["structuredContent"]["note"] == told


async def test_an_answer_says_which_score_none_has(live):
    _, client, _ = live
    answer = await called(client, "vsearch", query="budget", minScore=0.99)
    assert answer["structuredContent"]["results"] == []
    [best] = await results_of(client, "vsearch", query="budget", minScore=0, limit=1)
    said = f"The best score is {best['score']:.2f}, and 0.99 is the least wanted; lower the"
    assert answer["structuredContent"]["note"] == (
        f"{said} minimum score (`--min-score`, `minScore`) to see more"
    )


_WRITTEN = {
    "ERR_CODE_81": "ERR\\_CODE\\_81",
    "A_B_77": "A&#95;B&#95;77",
    "REQ-2024-7": "**REQ**-2024-7",
    "HTM-2024-7": "<b>HTM</b>-2024-7",
    "INC-2024-99": "INC\u20112024\u201199",
}
"""Names, and how a document may write them."""


@pytest.fixture(scope="module")
async def with_names(tmp_path_factory):
    """A client of documents with vectors, one of which has names with numbers."""
    folder = tmp_path_factory.mktemp("names")
    documents = documents_of(written(folder), FakeEmbedder(dimension=64))
    text = "# Errors\n\nPAY-CERT-17: the certificate is too old. " + " ".join(_WRITTEN.values())
    write(folder, {"notes/errors.md": text})
    async with serving(documents) as client:
        await client.call_tool("status", {})
        await settled(documents)
        await documents.embed()
        yield client


@pytest.mark.parametrize("tool", ["search", "vsearch", "query"])
@pytest.mark.parametrize(
    ("query", "absent"),
    [
        ("PAY-CERT-18", "'PAY-CERT-18'"),
        ("what does pay-cert-17 mean", ""),
        ("is PAY_CARD or pay-cert-17 a budget", "'PAY_CARD'"),
        ("is it PAY-CERT-1", "'PAY-CERT-1'"),
        ("meeting-2024-01 budget", ""),  # a file's name
        ("budget of 2024-01-02", ""),
        *((f"{name} budget", "") for name in _WRITTEN),
    ],
)
async def test_a_name_that_no_text_has_is_not_taken_for_a_similar_one(
    with_names, tool, query, absent
):
    answer = (await called(with_names, tool, query=query, minScore=0))["structuredContent"]
    assert answer["results"]
    has = f"No text outside of front matter contains {absent}; the results have other words of"
    assert (has in answer.get("note", "")) == bool(absent)
    assert ("No text outside" in answer.get("note", "")) == bool(absent)


async def test_a_name_may_begin_like_a_docid(live):
    _, client, folder = live
    write(folder, {"notes/#abc123.md": "# Number\n\nOf a ticket.\n"})

    async def is_found():
        return await results_of(client, "search", query="ticket")

    await eventually(is_found)
    got = await called(client, "get", file="#abc123.md")
    assert "Of a ticket." in str(got["content"])


@pytest.mark.parametrize(
    ("query", "is_told"),
    [("quantum chromodynamics", True), ("zebras", True), ("zebras and budgets", False)],
)
async def test_what_is_found_by_meaning_alone_is_no_match_of_words(live, query, is_told):
    _, client, _ = live
    answer = (await called(client, "query", query=query, minScore=0))["structuredContent"]
    assert answer["results"]
    assert ("No document has a word of the query" in answer.get("note", "")) == is_told


async def none_is_found(client, **arguments):
    return not await results_of(client, **arguments)


NAMED = {
    "docs/s3.md": "# Storage\n\nS3-compatible object storage.\n",
    "docs/x86.md": "# Machines\n\nRuns on x86_64 processors.\n",
    "docs/k8s.md": "# Cluster\n\nThe k8s-cluster is small.\n",
    "docs/jet.md": "# Jets\n\nA F-16-squadron flies.\n",
    "docs/date.md": "# Termin\n\n2024年5月10日 and 第5章の要約\n",
    "docs/error.md": "# Errors\n\nE 1 x 4711 and see 1 or 3, 5, 16 and 86 for s, k, and f.\n",
    "docs/wide.md": "# Papier\n\nＡ４サイズ und Ö3Wecker.\n",
    "docs/code.md": "# Codes\n\nIt says ERR_4712 then.\n",
    "docs/titled.md": "---\ntitle: About E7\n---\n\n# Other\n\nText of 7.\n",
}


@pytest.fixture(scope="module")
async def named(tmp_path_factory):
    folder = tmp_path_factory.mktemp("named")
    home = written(folder)
    write(folder, NAMED)
    documents = documents_of(home, FakeEmbedder(dimension=64))
    async with serving(documents) as client:
        await client.call_tool("status", {})
        await settled(documents)
        yield client


@pytest.mark.parametrize(
    ("query", "file"),
    [
        ("S3", "s3.md"),
        ("x86", "x86.md"),
        ("k8s", "k8s.md"),
        ("F-16", "jet.md"),
        ("5月", "date.md"),
        ("第5章", "date.md"),
        ("E7", "titled.md"),
        ("E 1", "error.md"),
        ("ERR 4712", "code.md"),
        ("Ａ４", "wide.md"),
        ("A4", "wide.md"),
        ("Ö3", "wide.md"),
    ],
)
async def test_a_name_with_digits_is_found_within_a_longer_one(named, query, file):
    found = await results_of(named, query=query, collection="docs")
    assert found[0]["file"] == f"docs/{file}"


@pytest.mark.parametrize("query", ["E9", "x9", "S5", "F-3"])
async def test_a_name_that_stands_nowhere_is_not_found_by_its_characters(named, query):
    assert await results_of(named, query=query, collection="docs") == []
    near = await results_of(named, "query", query=query, collection="docs")
    assert all(hit["score"] < 0.5 for hit in near)  # by what the fake model takes for meaning
