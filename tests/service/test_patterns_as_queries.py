"""A query that is a regular expression finds what it matches, as grep would."""

from functools import partial

import pytest
from fakes import FakeEmbedder
from serving import call, codebase_of, serving, settled
from writing import write

pytestmark = pytest.mark.anyio

FILES = {
    "app/server.py": "class Server:\n    def handle_get(self):\n        self._client.get()\n",
    "app/other.py": "# handle, def, client, class: words of patterns, and none matches\nx = 1\n",
    "app/errors.py": "class ParseError(Exception):\n    pass\n\n\nclass LimitError(Exception):\n"
    "    pass\n",
    "app/users.py": "def get_user():\n    # TODO: a cache\n    pass\n\n\n"
    "def set_user():\n    pass\n",
    "docs/todo.md": "# The todo list\n\nA todo is a thing to be done. A fixme is another one.\n",
    "data/phones.txt": "Call 555-1234 or 555-9876.\n",
    "app/account.rb": "class Account\n  def save!\n  end\n\n\n\n\n\n  def valid?\n  end\nend\n",
    "app/get.kt": "fun forget() {\n}\n\n\n\n\n\nfun get() {\n}\n",
    "app/words.kt": "fun `keeps the word`() {\n  hold()\n}\n",
    "data/headers.txt": "Retry-After: 5\n",
    "data/more.txt": "x\n",
    "app/stream.ts": "const items$ = of(items);\nconst others = items\n",
    "docs/proof.tex": "\\begin{proof}\nTrivial.\n\\end{proof}\n",
    "app/windows.cs": "class Pane : Panel\r\n{\r\n    int depth;\r\n}\r\n",
}


@pytest.fixture(scope="module")
async def client(tmp_path_factory):
    root = write(tmp_path_factory.mktemp("patterns") / "project", FILES)
    async with serving(codebase_of(root, FakeEmbedder())) as client:
        await settled(client)
        yield client


def counted(count, more=""):
    chunks = "1 chunk matches" if count == 1 else f"{count} chunks match"
    return f"{chunks} the query as a regular expression{more}."


@pytest.mark.parametrize(
    ("query", "files", "more"),
    [
        (r"def\s+handle_\w+\(", {"app/server.py"}, ""),
        (r"self\._client", {"app/server.py"}, ""),
        (r"^class \w+Error", {"app/errors.py"}, ""),
        (r"(get|set)_user", {"app/users.py"}, ""),
        ("TODO|FIXME", {"app/users.py"}, ""),
        ("set-cookie|Retry-After", {"data/headers.txt"}, ""),
        (r"\bclass\s+server", {"app/server.py"}, ", if case is ignored"),
        (r"\d{3}-\d{4}", {"data/phones.txt"}, ""),  # which has no words
        (r"^class \w+ : \w+$", {"app/windows.cs"}, ""),
        (r"\bdepth;.*$\s+}", {"app/windows.cs"}, ""),
    ],
)
async def test_it_finds_all_that_matches_and_nothing_else(client, query, files, more):
    answer = await call(client, "search_index", query=query)
    results = answer["results"]
    assert {hit["file_path"] for hit in results} == files
    assert answer["note"].endswith(counted(len(results), more))
    assert answer["mode"] == "lexical"
    assert "absent" not in answer


async def test_the_snippet_is_around_the_line_that_matches_and_names_what_it_shows(client):
    answer = await call(client, "search_index", query=r"class L\w+\(", detail="snippets")
    [hit] = answer["results"]
    assert "class LimitError" in hit["extracted_text_chunk"]
    assert "ParseError" not in hit["extracted_text_chunk"]
    assert hit["symbols"] == ["LimitError"]


@pytest.mark.parametrize(
    ("query", "shown"),
    [
        (r"fun for\w+", ["forget"]),
        (r"hold\(\)", ["keepstheword"]),
        (r"def sav\w+", ["Account", "save!"]),
    ],
)
async def test_a_snippet_names_whole_names_as_people_write_them(client, query, shown):
    answer = await call(client, "search_index", query=query, detail="snippets")
    assert answer["results"][0]["symbols"] == shown


async def test_filters_hold_for_patterns_as_well(client):
    answer = await call(client, "search_index", query=r"class\s+\w+", path="app/server.py")
    assert {hit["file_path"] for hit in answer["results"]} == {"app/server.py"}


async def test_pages_of_what_matches_do_not_overlap(client):
    every = await call(client, "search_index", query=r"\w+\s+\w+", top_k=100)
    places = [(hit["file_path"], hit["start_line"]) for hit in every["results"]]
    assert len(places) > 4
    paged = []
    for offset in range(0, len(places), 2):
        page = await call(client, "search_index", query=r"\w+\s+\w+", top_k=2, offset=offset)
        paged += [(hit["file_path"], hit["start_line"]) for hit in page["results"]]
    assert paged == places


@pytest.mark.parametrize(
    ("query", "files"),
    [
        ("pass$", {"app/errors.py", "app/users.py"}),
        (r"save!?$", {"app/account.rb"}),
        (r"\bget_us", {"app/users.py"}),
        ("Retry-?After", {"data/headers.txt"}),
        ("done. .* one[.]", {"docs/todo.md"}),
    ],
)
async def test_what_may_be_one_is_one_if_no_file_has_it_as_text(client, query, files):
    answer = await call(client, "search_index", query=query)
    assert {hit["file_path"] for hit in answer["results"]} == files
    assert answer["note"].endswith(counted(len(answer["results"])))


# The first one also matches.
@pytest.mark.parametrize("query", ["items$", "forgot?en", r"\begin", r"\begin{proof}"])
async def test_what_may_be_one_is_text_otherwise(client, query):
    answer = await call(client, "search_index", query=query)
    assert answer["results"]
    assert "regular expression" not in (answer["note"] or "")


async def test_what_is_said_to_be_one_is_one_and_nothing_else(client):
    asked = partial(call, client, "search_index", regex=True)
    answer = await asked(query="555.1234")
    assert [hit["file_path"] for hit in answer["results"]] == ["data/phones.txt"]
    assert answer["note"] == counted(1)
    for query in ("SELF._client", "handle_got", "pass "):  # case and blanks count, words do not
        answer = await asked(query=query)
        assert answer["results"] == []
        assert answer["note"] == "No chunk matches the query as a regular expression."
    assert "*.zig" in (await asked(query="def", path="*.zig"))["note"]


@pytest.mark.parametrize(
    ("query", "said"),
    [
        (r"(?<=def )handle_\w+", "the query is not a regular expression of Rust's syntax"),
        (r"\w{300}", "or it is too large"),
        ("(", "the query is not a regular expression of Rust's syntax"),
        ("a" * 1_001, "query has 1,001 characters; 1,000 is the most"),
    ],
)
async def test_what_is_said_to_be_one_and_is_none_is_refused(client, query, said):
    refused = await client.call_tool("search_index", {"query": query, "regex": True})
    assert refused.is_error
    assert said in refused.content[0].text


async def test_one_that_matches_nothing_is_searched_by_its_words(client):
    answer = await call(client, "search_index", query=r"def\s+handle_\w+_later\(")
    assert answer["results"][0]["file_path"] == "app/server.py"
    assert "No chunk matches the query as a regular expression" in answer["note"]


@pytest.mark.parametrize("query", [r"(?<=def )handle_\w+\(", r"(\w{100}){100}\(handle"])
async def test_one_that_cannot_be_matched_is_searched_by_its_words(client, query):
    answer = await call(client, "search_index", query=query)
    assert answer["results"]
    assert "not a regular expression of Rust's syntax" in answer["note"]
