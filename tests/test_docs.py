"""What the documents promise is what the program has."""

import json
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from vector_index_mcp import errors
from vector_index_mcp.cli import COMMANDS
from vector_index_mcp.clients.catalog import CLIENTS
from vector_index_mcp.codebase.arguments import SearchArguments
from vector_index_mcp.codebase.hits import SearchHit, SearchResult
from vector_index_mcp.codebase.tools import TOOLS
from vector_index_mcp.console.arguments import parse
from vector_index_mcp.settings import PREFIX, Settings, load

ROOT = Path(__file__).parent.parent
PAGES = [
    *("README.md", "CHANGELOG.md", "benchmarks/README.md", "tests/README.md"),
    "vector_index_mcp/ARCHITECTURE.md",
    *sorted(f"docs/{page.name}" for page in (ROOT / "docs").glob("*.md")),
]
TEXTS = {page: (ROOT / page).read_text(encoding="utf-8") for page in PAGES}
README, BENCHMARKS = TEXTS["README.md"], TEXTS["benchmarks/README.md"]
PROMISES, ARCHITECTURE = TEXTS["tests/README.md"], TEXTS["vector_index_mcp/ARCHITECTURE.md"]
TOOLS_PAGE, SETTINGS_PAGE = TEXTS["docs/tools.md"], TEXTS["docs/settings.md"]
FOR_USERS = [text for page, text in TEXTS.items() if page == "README.md" or page.startswith("docs")]
LINK = re.compile(r"\]\(([^)\s]+)\)")
SETTINGS = {PREFIX + name.upper(): field for name, field in Settings.model_fields.items()}


def shown(default: object) -> str:
    return str(default).lower() if isinstance(default, bool) else str(default or "")


def code_blocks(language: str) -> list[str]:
    block = re.compile(rf"^```{language}\n(.*?)^```", re.MULTILINE | re.DOTALL)
    return [found for text in FOR_USERS for found in block.findall(text)]


def test_the_settings_page_has_every_setting_with_its_default_and_no_other():
    rows = re.findall(rf"^\| `({PREFIX}\w+)` \| (.+?) \| (.+?) \|$", SETTINGS_PAGE, re.MULTILINE)
    expected = [
        (name, f"`{shown(field.default)}`" if shown(field.default) else "empty", field.description)
        for name, field in SETTINGS.items()
    ]
    assert rows == expected


def test_the_env_example_has_every_setting_with_its_default_and_no_other():
    lines = (ROOT / ".env.example").read_text(encoding="utf-8").splitlines()
    assignments = [line.split("=", 1) for line in lines if line and not line.startswith("#")]
    assert assignments == [[name, shown(field.default)] for name, field in SETTINGS.items()]


def test_the_env_example_can_be_used_as_it_is(monkeypatch):
    for name in SETTINGS:
        monkeypatch.delenv(name, raising=False)
    assert load(str(ROOT / ".env.example")) == Settings()


def test_the_tree_of_errors_is_drawn_as_it_is():
    drawn, above = {}, []
    for before, name in re.findall(r"^( {4}[ |`-]*)(\w+Error)\b", errors.__doc__, re.MULTILINE):
        depth = len(before)
        above = [(column, other) for column, other in above if column < depth]
        drawn[name] = above[-1][1] if above else "Exception"
        above.append((depth, name))
    ours = [each for each in vars(errors).values() if is_ours(each)]
    assert drawn == {error.__name__: error.__base__.__name__ for error in ours}


def is_ours(found: object) -> bool:
    return isinstance(found, type) and issubclass(found, errors.VectorIndexError)


@pytest.mark.parametrize("block", code_blocks("json"))
def test_json_in_the_documents_parses(block):
    json.loads(block)


def commands() -> list[str]:
    return [
        line
        for block in code_blocks("sh")
        for line in block.splitlines()
        if line.startswith("vector-index-mcp ")
    ]


@pytest.mark.parametrize("line", commands())
def test_commands_in_the_documents_are_understood(line):
    arguments = shlex.split(line, comments=True)[1:]
    assert parse(arguments, COMMANDS).run is COMMANDS[arguments[0]]


def mentioned() -> list[str]:
    """The commands in the middle of a sentence, where a word may stand for any path."""
    found = [
        span for text in FOR_USERS for span in re.findall(r"`(vector-index-mcp\s[^`]+)`", text)
    ]
    return [" ".join(span.split()) for span in found]


@pytest.mark.parametrize("words", mentioned())
def test_commands_in_sentences_exist(words):
    assert words.split()[1] in COMMANDS


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_to_what_there_is(page):
    targets = [target.partition("#")[0] for target in LINK.findall(TEXTS[page])]
    places = [(ROOT / page).parent / target for target in targets if "://" not in target]
    assert [place for place in places if not place.exists()] == []


def test_the_readme_leads_to_every_other_page():
    assert {*PAGES} - {"README.md"} <= {*LINK.findall(README)}


@pytest.mark.skipif(shutil.which("make") is None, reason="asks make")
@pytest.mark.parametrize(
    ("given", "asks_of_this_one"),
    [([], True), (["PROJECT={root}/docs/.."], True), (["PROJECT={folder}"], False)],
)
def test_the_demo_asks_questions_that_the_project_answers(tmp_path, given, asks_of_this_one):
    words = [word.format(root=ROOT, folder=tmp_path) for word in given]

    def asked(*more: str) -> str:
        command = ["make", "--dry-run", "demo", *words, *more]
        shown = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
        return shown.stdout

    assert ("SearchHit" in asked()) == asks_of_this_one
    assert 'for query in "my own"; do' in asked('QUESTIONS="my own"')


def test_make_targets_in_the_documents_exist():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    there = set(re.findall(r"^([\w-]+):.*##", makefile, re.MULTILINE))
    wanted = {
        page: set(re.findall(r"(?:^|`)make ([a-z-]+)", text, re.MULTILINE))
        for page, text in TEXTS.items()
    }
    assert wanted["README.md"] == {"demo", "test", "help"}
    assert wanted["benchmarks/README.md"] > {"bench"}
    assert set.union(*wanted.values()) <= there


def rows_of(page: str, head: str) -> list[str]:
    """The names in the first column of the table that begins with `head`."""
    table = page.partition(f"\n| {head} |")[2].partition("\n\n")[0]
    names = [line.split("|")[1] for line in table.splitlines()[2:]]
    return [name for cell in names for name in re.findall(r"`(\w+)`", cell)]


@pytest.mark.parametrize("page", [README, TOOLS_PAGE], ids=["README", "tools"])
def test_every_tool_is_told_of(page):
    assert len(TOOLS) == 3
    assert rows_of(page, "tool") == [*TOOLS]


def test_the_tools_page_has_every_argument_of_a_search_and_its_default():
    fields = SearchArguments.model_fields
    assert sorted(rows_of(TOOLS_PAGE, "argument")) == sorted(fields)
    for name, field in fields.items():
        [said] = re.findall(rf"^\| `{name}` \| `?(\w+)`? \|", TOOLS_PAGE, re.MULTILINE)
        default = "none" if field.default is None else shown(field.default)
        assert said == ("required" if field.is_required() else default or str(field.default))


def test_the_tools_page_has_every_field_of_a_compact_answer():
    filled = {
        name: {int: 1, float: 0.5, bool: True, list[str]: ["f"]}.get(field.annotation, "text")
        for name, field in SearchHit.model_fields.items()
    } | {"metadata": {"original_path": "text"}, "why": None}
    hit = SearchHit.model_validate(filled)
    assert rows_of(TOOLS_PAGE, "field of a result") == [*hit.compact()]
    answer = SearchResult(results=[hit], mode="hybrid", absent=["name"])
    beside = re.findall(r"^- `(\w+)`:", TOOLS_PAGE, re.MULTILINE)
    assert {*beside, "results"} == {*answer.compact()}


def test_the_example_on_the_tools_page_is_an_answer():
    [example] = [json.loads(block) for block in code_blocks("json") if "results" in block]
    assert {*example} <= {*SearchResult.model_fields}
    assert all({*hit} <= {*SearchHit.model_fields} for hit in example["results"])


def test_the_readme_counts_the_clients():
    said = re.search(r"clients \((.+) and twelve others;", " ".join(README.split()))
    named, titles = said[1].split(", "), [client.title for client in CLIENTS]
    assert {*named} <= {*titles}
    assert len(named) + 12 == len(titles)


def test_documents_keep_to_their_length():
    assert len(README.split()) <= 1000
    assert len(ARCHITECTURE.splitlines()) <= 400


def test_the_architecture_names_every_module():
    package = ROOT / "vector_index_mcp"
    for module in package.rglob("*.py"):
        name = module.parent.name if module.stem == "__init__" else module.stem
        if name not in {"__main__", "vector_index_mcp"}:
            assert re.search(rf"`[\w./]*\b{name}\b", ARCHITECTURE), name


def newest_result(name: str) -> tuple[str, dict]:
    newest = max((ROOT / "benchmarks" / "results").glob(f"{name}-*.json"))
    return newest.name, json.loads(newest.read_text(encoding="utf-8"))


def test_the_quality_that_is_published_is_that_of_a_kept_result():
    _, result = newest_result("quality")
    for system in ("hybrid", "full text with ranking", "semble 0.7.0", "grep"):
        values = result["systems"][system]
        columns = ("all", "sentence", "architecture", "symbol", "recall@5")
        figures = " | ".join(f"{values[column]:.3f}" for column in columns)
        assert f"| {system} | {figures} |" in BENCHMARKS
    first = result["first"]["hybrid"]
    for kind in ("symbol", "file name", "quotation"):
        assert first[kind] in BENCHMARKS


def test_the_latencies_that_are_published_are_those_of_a_kept_result():
    _, result = newest_result("latency")
    for mode in ("hybrid", "lexical"):
        assert f"{result[mode]['median_ms']} ms, {result[mode]['p95_ms']} ms" in BENCHMARKS


def test_the_costs_that_are_published_are_those_of_a_kept_result():
    _, result = newest_result("background")
    for what, figure in result["table"]:
        assert f"| {what} | {figure} |" in BENCHMARKS


@pytest.mark.parametrize("what", ["speed", "scale"])
def test_the_speeds_that_are_published_are_those_of_a_kept_result(what):
    file, result = newest_result(what)
    assert file in BENCHMARKS
    for what, figure in result["table"]:
        assert f"| {what} | {figure} |" in BENCHMARKS


def test_what_half_an_hour_did_is_that_of_a_kept_result():
    _, result = newest_result("load")
    assert (result["minutes"], result["errors"]) == (30, 0)
    what, figure = result["table"][0]
    assert f"| {what} | {figure} |" in BENCHMARKS
    assert figure in PROMISES


def test_the_figures_in_the_readme_are_those_of_kept_results():
    table = dict(newest_result("speed")[1]["table"])
    seconds = float(table["from a save to its text; its vector, p95, 1,402 chunks"].split()[0])
    assert f"(p95 {seconds:.2f} s, 1,402 chunks)" in README
    seconds = float(table["first right answers in 1,000 new files"].split()[0])
    assert f"1,000 files gives right answers after {seconds:.0f} s" in README
    systems = newest_result("quality")[1]["systems"]
    ours, semble, grep = (f"{systems[n]['all']:.3f}" for n in ("hybrid", "semble 0.7.0", "grep"))
    told = f"(NDCG@10, 1 is best): {ours}; semble {semble}, grep {grep}."
    assert told in " ".join(README.split())


def test_the_lengths_of_answers_are_those_of_a_kept_result():
    _, result = newest_result("answers")
    for count, values in result["answers"].items():
        tokens = " | ".join(str(values[form]) for form in ("text", "structured", "verbose"))
        places = f"{values['place in 5']} | {values['place in 5 with also']}"
        assert f"| {count} | {tokens} | {places} |" in BENCHMARKS


def test_how_true_the_scores_are_is_that_of_a_kept_result():
    _, result = newest_result("likelihood")
    for row in result["by meaning"]["told and true"]:
        assert f"| {' | '.join(map(str, row))} |" in BENCHMARKS
    for way in ("by meaning", "by words"):
        assert str(result[way]["AUC of first hits"]) in BENCHMARKS


def test_where_the_time_goes_is_that_of_a_kept_result():
    _, result = newest_result("limits")
    for what, figure in result["table"]:
        assert f"| {what} | {figure} |" in BENCHMARKS


def test_every_promise_names_tests_there_are():
    tables = re.findall(r"^\|---.*\n((?:\| .*\n)+)", PROMISES, re.MULTILINE)
    rows = [line.split(" | ") for table in tables for line in table.splitlines()]
    assert len(rows) > 180
    for row in rows:
        named = re.findall(r"`([\w/]+\.py)`", row[2])
        assert named, row
        assert all((ROOT / "tests" / name).is_file() for name in named), row
