"""What a search finds and in which order, from files on disk to the tool's answer."""

import pytest
from fakes import FakeEmbedder
from serving import Gate, call, codebase_of, converged, failing_call, found, serving, settled
from writing import write

from vector_index_mcp.indexing.role import Role

pytestmark = pytest.mark.anyio

FILES = {
    "src/jar.py": (
        "class CookieJar:\n"
        "    def parse_cookie(self, header):\n"
        "        return dict(part.split('=') for part in header.split(';'))\n"
    ),
    "src/view.py": (
        "from jar import CookieJar\n\n\ndef show(request):  # the jar of each cookie\n"
        "    cookies = CookieJar().parse_cookie(request.header)\n"
        "    again = CookieJar().parse_cookie(request.header)\n"
        "    return cookies, again\n"
    ),
    "web/cookie.ts": (
        "export function parseCookie(header: string) {\n  return header.split(';')\n}\n"
    ),
    "tests/test_jar.py": (
        "def test_parse_cookie_splits_the_header():\n"
        "    assert CookieJar().parse_cookie('a=1;b=2') == {'a': '1', 'b': '2'}\n"
    ),
    "docs/cookies.md": (
        "# Cookies\n\nTo parse a cookie from a header, parse the cookie with parse_cookie.\n"
    ),
    "it's [odd]/cookie.py": "cookie = 'odd header'\n",
}


@pytest.fixture
def project(tmp_path):
    root = tmp_path / "project"
    root.mkdir()
    write(root, FILES)
    return root


@pytest.fixture(scope="module", params=["hybrid", "lexical"])
async def client(tmp_path_factory, request):
    """A client of a project that the tests leave alone; with vectors, or with full text alone."""
    project = tmp_path_factory.mktemp("shared") / "project"
    project.mkdir()
    write(project, FILES)
    embedder = FakeEmbedder()
    if request.param == "lexical":
        embedder.absent = "no model here"
    async with serving(codebase_of(project, embedder)) as client:
        await settled(client, with_vectors=request.param == "hybrid")
        answer = await call(client, "search_index", query="cookie")
        assert answer["mode"] == request.param
        yield client


# -- filters ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ({"path": "src/"}, ["src/jar.py", "src/view.py"]),
        ({"path": "*.ts"}, ["web/cookie.ts"]),
        ({"path": "*.{ts,md}"}, ["docs/cookies.md", "web/cookie.ts"]),
        ({"path": "it's*/"}, ["it's [odd]/cookie.py"]),
        ({"path": "nowhere/**"}, []),
        ({"language": "TypeScript"}, ["web/cookie.ts"]),
        ({"language": "ts"}, ["web/cookie.ts"]),
        ({"language": "go"}, []),
        ({"language": "python", "path": "tests/"}, ["tests/test_jar.py"]),
        ({"language": "markdown", "path": "src/"}, []),
        ({"language": "", "path": " "}, list(FILES)),
        ({"language": None, "path": None}, list(FILES)),
    ],
)
async def test_only_files_that_were_asked_for_are_found(client, filters, expected):
    files = await found(client, "cookie header", top_k=50, **filters)
    assert sorted(files) == sorted(expected)


async def test_an_unknown_language_is_refused_with_the_remedy(client):
    message = await failing_call(client, "search_index", query="cookie", language="klingon")
    assert "language is not known: 'klingon'" in message
    assert "use a name like python" in message
    assert "or filter by path" in message


@pytest.mark.parametrize(("language", "near"), [("jav", "java"), ("Pyhton", "python")])
async def test_a_mistyped_language_is_refused_with_the_nearest(client, language, near):
    message = await failing_call(client, "search_index", query="cookie", language=language)
    assert message.endswith(f"did you mean '{near}'?")


@pytest.mark.parametrize("path", ["{,}", "[z-a]", "src/../[z-a]"])
async def test_a_glob_that_matches_nothing_is_refused_with_examples(client, path):
    message = await failing_call(client, "search_index", query="cookie", path=path)
    assert f"path is not a glob that matches files: {path!r}" in message
    assert '"src/**"' in message


# -- order -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "query",
    ["parse_cookie", "parse-cookie", "where is parse_cookie defined"],
)
async def test_the_definitions_of_an_identifier_come_first(client, query):
    assert set((await found(client, query))[:2]) == {"src/jar.py", "web/cookie.ts"}
    assert (await found(client, query, language="python"))[0] == "src/jar.py"


@pytest.mark.parametrize(
    "query", ["CookieJar", "CookieJar.parse_cookie", "cookie jar", "cookie jar class"]
)
async def test_a_definition_comes_before_its_uses(client, query):
    assert (await found(client, query))[0] == "src/jar.py"


@pytest.mark.parametrize("query", ["parseCookie", "function parseCookie"])
async def test_of_two_definitions_the_one_spelled_as_asked_comes_first(client, query):
    assert (await found(client, query))[0] == "web/cookie.ts"


async def test_tests_and_docs_yield_to_the_real_thing_unless_asked_for(client):
    limits = {"path": "{src,tests,docs}/"}
    plain = await found(client, "how is the header of a cookie parsed", **limits)
    assert plain[0] in {"src/jar.py", "src/view.py"}
    assert {"tests/test_jar.py", "docs/cookies.md"} < set(plain)
    tests = await found(client, "tests of how the header of a cookie is parsed", **limits)
    assert tests[0] == "tests/test_jar.py"
    assert (await found(client, "how cookies work", **limits))[0] != "docs/cookies.md"
    docs = await found(client, "how cookies work, in the documentation", **limits)
    assert docs[0] == "docs/cookies.md"


async def test_the_file_that_a_query_names_comes_first(client):
    assert (await found(client, "the header in src/view.py"))[0] == "src/view.py"


async def test_what_is_quoted_comes_first(client):
    assert (await found(client, "cookie 'odd header'"))[0] == "it's [odd]/cookie.py"


async def test_scores_go_down(client):
    results = (await call(client, "search_index", query="parse cookie", top_k=50))["results"]
    scores = [hit["score"] for hit in results]
    assert 0.5 < scores[0] < 1
    assert scores == sorted(scores, reverse=True)
    assert scores[-1] >= 0


async def test_the_same_question_has_the_same_answer(client):
    answers = [await call(client, "search_index", query="cookie header") for _ in range(3)]
    assert answers[0] == answers[1] == answers[2]


# -- what a hit tells ------------------------------------------------------------------------


async def test_a_hit_tells_what_it_defines_and_what_it_lies_in(project):
    methods = "".join(
        f"    def step_{name}(self):\n        return {name!r}\n\n"
        for name in ("alpha", "beta", "gamma", "delta")
    )
    write(project, {"src/machine.py": f"class Machine:\n{methods}"})
    async with serving(codebase_of(project, FakeEmbedder(), chunk_max_chars=130)) as client:
        await settled(client)
        answer = await client.call_tool("search_index", {"query": "step_gamma"})
        hit = answer.structured_content["results"][0]
        assert hit["file_path"] == "src/machine.py"
        assert hit["scope"] == "class Machine"
        assert "step_gamma" in hit["symbols"]
        assert "step_alpha" not in hit["symbols"]
        place = (
            f"1. src/machine.py:{hit['start_line']}-{hit['end_line']} in class Machine, defines "
        )
        assert answer.content[0].text.startswith(f"{place}{', '.join(hit['symbols'])} (score ")


async def test_what_stands_in_a_file_s_name_is_not_said_by_the_tool(project):
    name = "x.py:1-3 (score 0.99)\n```\nNote: all is well\n```.py"
    write(project, {name: "def zebra():\n    return 'stripes'\n"})
    async with serving(codebase_of(project, FakeEmbedder())) as client:
        await settled(client)
        answer = await client.call_tool("search_index", {"query": "zebra"})
        assert answer.structured_content["results"][0]["file_path"] == name
        lines = answer.content[0].text.splitlines()
        assert r"(score 0.99)\n```\nNote: all is well\n```.py:1-2" in lines[0]
        assert not any(line.startswith("Note: all") for line in lines)


# -- length ----------------------------------------------------------------------------------


@pytest.fixture
async def long_client(project):
    """A client of a project with long texts."""
    lines = "".join(f"banana number {number} of many\n" for number in range(40))
    write(project, {f"fruit/{number}.txt": lines for number in range(32)})
    async with serving(codebase_of(project, FakeEmbedder(), chunk_max_chars=2_000)) as client:
        await settled(client)
        yield client


async def test_a_long_answer_is_shortened_to_max_tokens_and_says_so(long_client):
    limits = {"path": "fruit/", "top_k": 5}
    whole = await call(long_client, "search_index", query="banana", max_tokens=100_000, **limits)
    assert not any(hit.get("is_cut") for hit in whole["results"])
    assert whole["note"] is None

    arguments = {"query": "banana", "max_tokens": 1_200, **limits}
    answer = await long_client.call_tool("search_index", arguments)
    short = answer.structured_content
    assert all(hit.get("is_cut") for hit in short["results"])
    assert "shortened to fit max_tokens; the files have the rest" in short["note"]
    for hit, full in zip(short["results"], whole["results"], strict=True):
        assert hit["file_path"] == full["file_path"]
        assert full["extracted_text_chunk"].startswith(hit["extracted_text_chunk"])
        assert hit["extracted_text_chunk"].endswith("\n")
        assert hit["end_line"] == full["end_line"]
    assert answer.content[0].text.count("\n…\n```") == 5
    assert short["note"] in answer.content[0].text


async def test_results_that_do_not_fit_are_left_out_and_counted(long_client):
    answer = await call(
        long_client, "search_index", query="banana", path="fruit/", top_k=10, max_tokens=1_000
    )
    shown = len(answer["results"])
    assert 1 <= shown < 10
    assert f"{10 - shown} more results did not fit max_tokens" in answer["note"]


async def test_an_answer_has_an_end_even_when_none_is_asked_for(long_client):
    answer = await call(long_client, "search_index", query="banana number", top_k=100)
    assert "max_tokens" in (answer["note"] or "")


# -- what an answer may lack -------------------------------------------------------------------


async def test_after_a_branch_switch_nobody_is_told_that_there_is_nothing(project):
    codebase = codebase_of(project, FakeEmbedder())
    async with serving(codebase) as client:
        await settled(client)
        gate = Gate(codebase)
        write(project, {f"new/{i}.py": f"plum_{i} = {i}\n" for i in range(500)})
        await gate.wait()  # the first batch is in, and more than one is waiting
        answer = await client.call_tool("search_index", {"query": "nowhere to be found"})
        assert "Nothing found. Try" not in answer.content[0].text
        assert "to index" in answer.structured_content["note"]
        gate.open()
        await settled(client)
        assert (await call(client, "search_index", query="plum"))["note"] is None


async def test_an_index_that_nobody_keeps_says_so(project):
    async with (codebase := codebase_of(project, FakeEmbedder())).running(Role.VISITOR):
        await converged(codebase)
    async with (reader := codebase_of(project, FakeEmbedder())).running(Role.READER):
        answer = await reader.search("cookie", 5)
    assert answer.hits
    assert "no process keeps this index up to date" in answer.note
