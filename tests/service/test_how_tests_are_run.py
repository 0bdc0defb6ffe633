"""The question how a project's tests are run is answered with where the project says it."""

import pytest
from serving import call, served

from vector_index_mcp.codebase.running_tests import asks_for_tests
from vector_index_mcp.engine.ranking.query import Query

pytestmark = pytest.mark.anyio

QUESTION = "how do I run the tests"
SECTION = "# Guide\n\nThanks.\n\n## Testing\n\nRun `{}` before each pull request.\n"
FILES = {
    "src/runner.py": "def run_the_tests(tests):\n    for test in tests:\n        test.run()\n",
    "tests/test_runner.py": "def test_how_the_tests_run():\n    run_the_tests([test])\n",
    "docs/testing.md": "# Testing your application\n\nRun the tests of your own with `pytest`.\n",
    "README.md": "# Pears\n\nWorks well with `pytest`, and sorts fruit.\n",
}
MAKEFILE = "build:\n\tcc -o pears pears.c\n\ntest: build\n\t./pears --selftest\n"
MANIFEST = '{\n  "name": "pears",\n  "scripts": {\n    "test": "borp"\n  }\n}\n'


@pytest.mark.parametrize(
    ("files", "first"),
    [
        ({"CONTRIBUTING.md": SECTION.format("tox -e py"), "Makefile": MAKEFILE}, "CONTRIBUTING.md"),
        ({"docs/hacking.rst": "Tests\n=====\n\nUse ``pytest -x``.\n"}, "docs/hacking.rst"),
        ({"README.md": SECTION.format("npm test"), "package.json": MANIFEST}, "README.md"),
        ({"AGENTS.md": "Build with `make`. Check with `cargo test`.\n"}, "AGENTS.md"),
        (
            {
                "README.md": "# Test Data Factory\n\nFor `pytest`: `pip install test-data`.\n",
                "CONTRIBUTING.md": "Execute `./scripts/check.sh` to run all tests.\n",
            },
            "CONTRIBUTING.md",
        ),
        ({"README.rst": "Test Data\n=========\n\n``pytest``\n", "Makefile": MAKEFILE}, "Makefile"),
        ({"Makefile": MAKEFILE}, "Makefile"),
        ({"package.json": MANIFEST}, "package.json"),
        ({"tox.ini": "[testenv]\ncommands = python -m selftest\n"}, "tox.ini"),
        ({"sub/Makefile": MAKEFILE, "package.json": MANIFEST}, "package.json"),
    ],
)  # fmt: skip
async def test_what_says_it_comes_first(tmp_path, files, first):
    async with served(tmp_path / "project", FILES | files) as client:
        answer = await call(client, "search_index", query=QUESTION)
        results = answer["results"]
        assert results[0]["file_path"] == first
        assert results[0]["score"] == 0.8
        assert "src/runner.py" in {hit["file_path"] for hit in results[1:]}
        places = [(hit["file_path"], hit["start_line"]) for hit in results]
        assert len({*places}) == len(places)


async def test_where_nothing_says_it_the_search_answers(tmp_path):
    files = FILES | {"Makefile": "build:\n\tcc -o pears pears.c\n", "package.json": "{}\n"}
    async with served(tmp_path / "project", files) as client:
        results = (await call(client, "search_index", query=QUESTION))["results"]
        assert results[0]["file_path"] not in {"Makefile", "package.json", "README.md"}


async def test_a_limit_of_the_search_holds(tmp_path):
    async with served(tmp_path / "project", FILES | {"Makefile": MAKEFILE}) as client:
        answer = await call(client, "search_index", query=QUESTION, path="src")
        assert {hit["file_path"] for hit in answer["results"]} == {"src/runner.py"}


@pytest.mark.parametrize(
    ("query", "asks"),
    [
        ("how do I run the tests", True),
        ("run tests", True),
        ("How are the unit tests of this project run?", True),
        ("command to run the whole test suite", True),
        ("how to run a single test", True),
        ("how are tests run in parallel", False),
        ("tests for retries", False),
        ("run_tests", False),
        ("how do I run the server", False),
        ("where are the tests", False),
        ("is there a test for how commands run", False),
    ],
)
def test_only_a_question_about_nothing_else_asks_it(query, asks):
    assert asks_for_tests(Query(query)) == asks
