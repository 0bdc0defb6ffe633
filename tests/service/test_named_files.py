"""A query that is nothing but the path of a file finds that place first."""

import os

import pytest
from fakes import FakeEmbedder
from serving import call, codebase_of, served, serving, settled
from writing import write

from vector_index_mcp.engine.store import Store

pytestmark = pytest.mark.anyio


def functions(count, name):
    body = "".join(f"    step_{n} = compute({n})\n" for n in range(25))
    return "".join(f"def {name}_{n}():\n{body}\n\n" for n in range(count)) + "x = 1\n"


FILES = {
    "lib/dsl.py": functions(5, "dsl"),
    "lib/other.py": "# See lib/dsl.py.\nimport dsl\n",
    "a/same.py": "def one():\n    return 1\n",
    "b/same.py": "def two():\n    return 2\n",
    "with space/my file.py": "x = 1\n",
    "Makefile": "all:\n\tcc a.c\n",
    "src/empty.py": "",
    "min.js": "var a=1;" * 20_000,
    "README.md": "# Title\n\nAll about dsl.py and more.\n",
    "docs/README.md": "# Docs\n\nAll about the docs.\n",
}


@pytest.fixture(scope="module")
async def client(tmp_path_factory):
    root = tmp_path_factory.mktemp("named") / "project"
    root.mkdir()
    write(root, FILES)
    async with serving(codebase_of(root, FakeEmbedder())) as client:
        await settled(client)
        yield client


@pytest.mark.parametrize(
    ("query", "file", "line"),
    [
        ("lib/dsl.py", "lib/dsl.py", 1),
        ("dsl.py", "lib/dsl.py", 1),
        ("`lib/dsl.py`", "lib/dsl.py", 1),
        ("./lib/dsl.py:100", "lib/dsl.py", 100),
        ("lib/dsl.py:100:7", "lib/dsl.py", 100),
        ("dsl.py#L60-L70", "lib/dsl.py", 60),
        ("C:\\project\\lib\\dsl.py:100", "lib/dsl.py", 100),
        ("file:///home/me/project/lib/dsl.py#L30", "lib/dsl.py", 30),
        ("file:///home/me/project/with%20space/my%20file.py", "with space/my file.py", 1),
        ("with space/my file.py:1", "with space/my file.py", 1),
        ("Makefile:2", "Makefile", 2),
        ("Makefile", "Makefile", 1),
        ("README", "README.md", 1),
        ("/home/me/project/lib/dsl.py:30", "lib/dsl.py", 30),
        ("a/same.py", "a/same.py", 1),
        ("README.md", "README.md", 1),
        ("docs/README.md", "docs/README.md", 1),
    ],
)
async def test_the_place_is_first(client, query, file, line):
    answer = await call(client, "search_index", query=query)
    first, *others = answer["results"]
    assert first["file_path"] == file
    assert first["start_line"] <= line <= first["end_line"]
    assert first["score"] >= 0.95
    assert all(hit["score"] <= 0.05 for hit in others)
    places = [(hit["file_path"], hit["start_line"]) for hit in answer["results"]]
    assert len(set(places)) == len(places)


@pytest.mark.parametrize(
    ("query", "file", "line"),
    [
        ("lib/dls.py", "lib/dsl.py", 1),
        ("libs/dsl.py:100", "lib/dsl.py", 100),
        ("oter.py", "lib/other.py", 1),
        ("src/lib/otherr.py", "lib/other.py", 1),
        ("README.dm.md", "README.md", 1),
    ],
)
async def test_a_mistyped_path_finds_what_is_spelled_like_it_and_says_so(client, query, file, line):
    answer = await call(client, "search_index", query=query)
    first = answer["results"][0]
    assert first["file_path"] == file
    assert first["start_line"] <= line <= first["end_line"]
    typed = query.partition(":")[0]
    assert answer["note"] == f"No file is called '{typed}'; the first result is '{file}'."


@pytest.mark.parametrize(
    "query",
    [
        "explain lib/dsl.py",
        "show me dsl.py:100",
        "what is in `lib/dsl.py`?",
        "what does lib/dsl.py do",
    ],
)
async def test_a_file_that_is_asked_for_in_a_few_words_is_first(client, query):
    answer = await call(client, "search_index", query=query)
    assert answer["results"][0]["file_path"] == "lib/dsl.py"
    assert answer["results"][0]["score"] >= 0.95
    assert answer["note"] is None


async def test_a_path_that_a_text_has_as_it_is_typed_is_no_slip_of_the_hand(tmp_path):
    files = {
        "assets/data.json": "{}\n",
        "routes.py": '@app.get("/api/v1/data.json")\ndef data():\n    return {}\n',
        "src/code.js": "let x = 1;\n",
        "README.md": "# About\n\nIt runs with node.js.\n",
    }
    async with served(tmp_path / "project", files) as client:
        for query, file in (("/api/v1/data.json", "routes.py"), ("node.js", "README.md")):
            answer = await call(client, "search_index", query=query)
            assert answer["results"][0]["file_path"] == file, query
            assert "the first result is" not in (answer["note"] or "")


async def test_a_file_outside_of_the_folder_that_is_searched_is_not_said_to_be_none(client):
    answer = await call(client, "search_index", query="lib/dsl.py", path="docs")
    assert answer["note"] == "'lib/dsl.py' lies outside of 'docs', which was searched."


async def test_of_many_files_with_one_name_few_are_read(tmp_path, monkeypatch):
    read = []
    rows = Store.rows

    async def counted(self, keys):
        read.extend(keys)
        return await rows(self, keys)

    files = {f"part_{n}/index.ts": f"export const part = {n};\n" for n in range(60)}
    files |= {f"part_{n}/__init__.py": "" for n in range(60)}
    async with served(tmp_path / "project", files) as client:
        monkeypatch.setattr(Store, "rows", counted)
        answer = await call(client, "search_index", query="index.ts", top_k=3)
        assert sum(hit["score"] for hit in answer["results"][:3]) >= 0.95
        assert 3 <= len(set(read)) < 30
        read.clear()
        await call(client, "search_index", query="__init__.py")
        assert read == []


@pytest.mark.parametrize("query", ["os.path.join", "console.log", "zebra.py", "what is other.py"])
async def test_what_is_spelled_like_no_path_is_searched_as_ever(client, query):
    answer = await call(client, "search_index", query=query)
    assert "No file is called" not in (answer["note"] or "")


@pytest.mark.parametrize("query", ["lib/zebra.py", "lib/deep/nonexistent.go:44", "./no/such.md"])
async def test_a_path_that_no_file_has_is_said_to_be_none(client, query):
    answer = await call(client, "search_index", query=query)
    path = query.removeprefix("./").partition(":")[0]
    assert answer["note"] == f"No file is called '{path}'."
    assert max(hit["score"] for hit in answer["results"]) <= 0.05


@pytest.mark.parametrize("query", ["https://example.com/a.html", "GET /users/list.json", "a/b"])
async def test_what_may_be_no_path_of_a_file_is_not_called_one(client, query):
    answer = await call(client, "search_index", query=query)
    assert "is called" not in (answer["note"] or "")


@pytest.mark.parametrize("query", ["project/docs", "a/b/lib/", "docs/more"])
async def test_only_a_folder_of_the_project_is_one(client, query):
    answer = await call(client, "search_index", query=query)
    assert all(hit["score"] < 0.9 for hit in answer["results"])


async def test_of_lines_that_a_trace_cites_only_a_file_that_has_none_is_said_to_end_before(client):
    trace = "boom\n  at f (lib/dsl.py:9999)\n  at g (lib/dsl.py:10)"
    answer = await call(client, "search_index", query=trace)
    first = answer["results"][0]
    assert (first["file_path"], first["start_line"]) == ("lib/dsl.py", 1)
    assert "ends at line" not in (answer["note"] or "")


async def test_a_line_behind_the_end_of_a_file_shows_its_end_and_says_so(client):
    answer = await call(client, "search_index", query="lib/dsl.py:99999999999")
    assert answer["results"][0]["end_line"] == 141
    assert answer["note"] == "The text of 'lib/dsl.py' ends at line 141."


@pytest.mark.parametrize(
    ("query", "place", "detail"),
    [
        ('  File "/srv/project/lib/dsl.py", line 100, in dsl_3', ("lib/dsl.py", 100), "full"),
        ("lib/dsl.py:100:7: error: no such name", ("lib/dsl.py", 100), "full"),
        ("at a.same.one(same.py:2)", ("a/same.py", 2), "snippets"),
        ("zebra in /srv/project/lib/dsl.py on line 40", ("lib/dsl.py", 40), "snippets"),
    ],
)
async def test_the_place_that_a_message_cites_is_first(client, query, place, detail):
    answer = await call(client, "search_index", query=query, detail=detail)
    first = answer["results"][0]
    file, line = place
    assert first["file_path"] == file
    assert first["start_line"] <= line <= first["end_line"]
    assert answer["note"] is None


async def test_each_place_of_a_trace_is_shown_and_the_innermost_call_is_first(client):
    trace = (
        "Traceback (most recent call last):\n"
        '  File "/srv/project/a/same.py", line 2, in one\n'
        '  File "/usr/lib/python3.11/zebra.py", line 2, in f\n'
        '  File "/srv/project/lib/dsl.py", line 100, in dsl_3\n'
        "ZebraError: no"
    )
    first, second, *_ = (await call(client, "search_index", query=trace))["results"]
    assert (first["file_path"], second["file_path"]) == ("lib/dsl.py", "a/same.py")
    assert first["start_line"] <= 100 <= first["end_line"]


async def test_a_test_is_found_by_its_name(client):
    query = "lib/dsl.py::Dsl::dsl_3"
    first = (await call(client, "search_index", query=query))["results"][0]
    assert first["file_path"] == "lib/dsl.py"
    assert "def dsl_3()" in str(first)


async def test_a_file_that_asked_for_a_missing_module_is_shown_and_one_elsewhere_is_not(client):
    query = "Cannot find module './zebra'\nRequire stack:\n- /x/y/other.js\n- /x/project/lib/dsl.py"
    first, *others = (await call(client, "search_index", query=query))["results"]
    assert first["file_path"] == "lib/dsl.py"
    assert all(hit["score"] < 0.4 for hit in others if hit["file_path"] != "lib/dsl.py")
    answer = await call(client, "search_index", query=query.replace("/dsl.py", "/none.py"))
    assert all(hit["score"] < 0.4 for hit in answer["results"])


async def test_an_absolute_path_of_the_project_is_one_of_it(tmp_path):
    root = tmp_path / "project"
    async with served(root, FILES | {"top.py": "x = 1\ny = 2\n"}) as client:
        for query, file in ((f"{root}/top.py:2", "top.py"), (f"{root}/docs/", "docs/README.md")):
            answer = await call(client, "search_index", query=query)
            assert answer["results"][0]["file_path"] == file
            assert answer["note"] is None


async def test_a_file_that_exists_and_is_ignored_is_not_called_missing(tmp_path):
    root = tmp_path / "project"
    inside = {"node_modules/left/index.js": "x = 1;\n", "lib/index.js": "y = 1;\n"}
    async with served(root, inside) as client:
        (root / "empty").mkdir()
        os.mkfifo(root / "lib/pipe.js")
        ignored = "'node_modules/left/index.js' is not indexed: it is ignored, by an ignore file"
        for query, note in (
            ("node_modules/left/index.js", ignored),
            (f"{root}/node_modules/left/index.js:1", ignored),
            ("node_modules/left", "No file in 'node_modules/left' is indexed: it is ignored"),
            ("empty/", "No file in 'empty' is indexed: it has no file to index, or is new."),
            ("lib/pipe.js", "'lib/pipe.js' is not indexed: it is no regular file."),
        ):
            answer = await call(client, "search_index", query=query)
            assert answer["note"].startswith(note)
            assert "No searched" not in answer["note"]


async def test_the_path_of_a_folder_finds_its_files(tmp_path):
    inside = {f"src/json/{name}.py": f"x_{name} = 1\n" for name in ("__init__", "tag", "more")}
    files = inside | {"src/app.py": "import src.json\n# src json src/json\n"}
    async with served(tmp_path / "project", files) as client:
        for query in ("src/json", "./src/json/", "json/"):
            answer = await call(client, "search_index", query=query)
            found = [hit["file_path"] for hit in answer["results"]]
            assert found[:3] == [f"src/json/{name}.py" for name in ("__init__", "more", "tag")]


async def test_a_snippet_is_around_the_line(client):
    for line in (40, 100):
        answer = await call(client, "search_index", query=f"dsl.py:{line}", detail="snippets")
        first = answer["results"][0]
        assert first["start_line"] <= line <= first["end_line"] < first["start_line"] + 10


async def test_what_comes_next_in_the_file_is_named(client):
    [first] = (await call(client, "search_index", query="lib/dsl.py", top_k=1))["results"]
    starts = [int(lines.split("-")[0]) for lines in first["also"]]
    assert starts[0] == first["end_line"] + 1
    assert starts == sorted(starts)


async def test_a_name_that_the_query_has_a_word_of_is_named_first(tmp_path):
    """Only two of a chunk's names are shown, and that of the answer may be its last."""
    small = "".join(f"def {name}(x):\n    return x\n\n\n" for name in ("aa", "bb", "retry_delay"))
    large = "".join(f"    x = retry(x, {n}, failed=request, wait={n})  # {n}\n" for n in range(60))
    files = {"a.py": f"{small}def run_again(x, request):\n{large}    return x\n"}
    async with served(tmp_path / "project", files) as client:
        query = "how long do we wait before retrying a failed request"
        [hit, *_] = (await call(client, "search_index", query=query, top_k=1))["results"]
        [others] = [lines for lines in hit["also"] if lines.startswith("1-")]
        assert "retry_delay" in others


async def test_of_hits_in_one_file_the_first_names_the_others(client):
    answer = await call(client, "search_index", query="lib/dsl.py", path="lib", top_k=3)
    files = [hit["file_path"] for hit in answer["results"]]
    seen = [bool(hit.get("also")) for hit in answer["results"] if hit["file_path"] == files[0]]
    assert len(seen) > 1
    assert seen == [True, *[False] * (len(seen) - 1)]


async def test_of_several_files_of_a_name_each_is_shown(client):
    answer = await call(client, "search_index", query="same.py")
    first, second, *_ = answer["results"]
    assert [first["file_path"], second["file_path"]] == ["a/same.py", "b/same.py"]
    assert 0.4 < second["score"] <= first["score"] < 0.6
    assert answer["note"] is None
    answer = await call(client, "search_index", query="README.md:3")
    assert answer["results"][0]["file_path"] == "README.md"


@pytest.mark.parametrize(
    ("query", "told"),
    [
        ("src/empty.py", "'src/empty.py' exists and is empty."),
        ("min.js", "not indexed (minified)."),
    ],
)
async def test_a_file_without_text_is_told(client, query, told):
    answer = await call(client, "search_index", query=query)
    assert told in answer["note"]


@pytest.mark.parametrize("query", ["nowhere.py", "dsl"])
async def test_what_is_no_path_of_a_file_is_searched(client, query):
    answer = await call(client, "search_index", query=query, verbose=True)
    assert all("path" not in (hit.get("why") or {}) for hit in answer["results"])
    assert answer["results"][0]["score"] < 0.95


async def test_a_constant_that_is_called_like_a_file_is_found_where_it_is_defined(tmp_path):
    files = {"LICENSE": "Do as you like.\n", "terms.py": 'LICENSE = "MIT"\nRATE = 1\n'}
    async with served(tmp_path / "project", files) as client:
        answer = await call(client, "search_index", query="LICENSE", verbose=True)
        assert "path" not in (answer["results"][0].get("why") or {})
        assert answer["results"][0]["file_path"] == "terms.py"
        answer = await call(client, "search_index", query="RATE")
        assert answer["results"][0]["file_path"] == "terms.py"


async def test_a_path_counts_from_the_folder_that_is_searched(client):
    answer = await call(client, "search_index", query="same.py:2", path="b")
    assert [hit["file_path"] for hit in answer["results"]] == ["b/same.py"]


async def test_a_filter_is_kept_to(client):
    answer = await call(client, "search_index", query="lib/dsl.py", path="docs")
    assert {hit["file_path"] for hit in answer["results"]} == {"docs/README.md"}
