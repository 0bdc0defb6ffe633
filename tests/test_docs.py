"""What the documents promise is what the program has."""

import json
import re
import shlex
from pathlib import Path

import pytest

from vector_index_mcp.cli import COMMANDS
from vector_index_mcp.codebase.tools import TOOLS
from vector_index_mcp.console.arguments import parse
from vector_index_mcp.settings import PREFIX, Settings

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
BENCHMARKS = (ROOT / "benchmarks" / "README.md").read_text(encoding="utf-8")
PROMISES = (ROOT / "tests" / "README.md").read_text(encoding="utf-8")
ARCHITECTURE = (ROOT / "vector_index_mcp" / "ARCHITECTURE.md").read_text(encoding="utf-8")
SETTINGS = {PREFIX + name.upper(): field for name, field in Settings.model_fields.items()}


def shown(default: object) -> str:
    return str(default).lower() if isinstance(default, bool) else str(default or "")


def code_blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", README, re.MULTILINE | re.DOTALL)


def test_the_readme_has_every_setting_with_its_default_and_no_other():
    rows = re.findall(rf"^\| `({PREFIX}\w+)` \| (.+?) \| (.+?) \|$", README, re.MULTILINE)
    expected = [
        (name, f"`{shown(field.default)}`" if shown(field.default) else "empty", field.description)
        for name, field in SETTINGS.items()
    ]
    assert rows == expected


def test_the_env_example_has_every_setting_with_its_default_and_no_other():
    lines = (ROOT / ".env.example").read_text(encoding="utf-8").splitlines()
    assignments = [line.split("=", 1) for line in lines if line and not line.startswith("#")]
    assert assignments == [[name, shown(field.default)] for name, field in SETTINGS.items()]


def test_the_env_example_can_be_used_as_it_is():
    assert Settings(_env_file=ROOT / ".env.example") == Settings()


@pytest.mark.parametrize("block", code_blocks("json"))
def test_json_in_the_readme_parses(block):
    json.loads(block)


def readme_commands() -> list[str]:
    return [
        line
        for block in code_blocks("sh")
        for line in block.splitlines()
        if line.startswith("vector-index-mcp ")
    ]


@pytest.mark.parametrize("line", readme_commands())
def test_commands_in_the_readme_are_understood(line):
    arguments = shlex.split(line)[1:]
    assert parse(arguments, COMMANDS).run is COMMANDS[arguments[0]]


def test_make_targets_in_the_readme_exist():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    wanted = set(re.findall(r"\bmake ([a-z]+)", README))
    assert wanted >= {"demo", "test", "help", "bench"}
    assert wanted <= set(re.findall(r"^(\w+):.*##", makefile, re.MULTILINE))


def test_every_tool_is_in_the_readme():
    assert len(TOOLS) == 3
    for name in TOOLS:
        assert f"| `{name}` |" in README


def test_documents_keep_to_their_length():
    assert len(README.splitlines()) <= 320
    assert len(ARCHITECTURE.splitlines()) <= 220


def test_the_architecture_names_every_module():
    package = ROOT / "vector_index_mcp"
    for module in package.rglob("*.py"):
        name = module.parent.name if module.stem == "__init__" else module.stem
        if name not in {"__main__", "vector_index_mcp"}:
            assert re.search(rf"`[\w./]*\b{name}\b", ARCHITECTURE), name


def newest_result(name: str) -> tuple[str, dict]:
    newest = max((ROOT / "benchmarks" / "results").glob(f"{name}-*.json"))
    return newest.name, json.loads(newest.read_text(encoding="utf-8"))


def test_the_quality_in_the_readme_is_that_of_a_kept_result():
    _, result = newest_result("quality")
    for system in ("hybrid", "full text with ranking", "semble 0.7.0", "grep"):
        values = result["systems"][system]
        columns = ("all", "sentence", "architecture", "symbol", "recall@5")
        figures = " | ".join(f"{values[column]:.3f}" for column in columns)
        assert f"| {system} | {figures} |" in README
    first = result["first"]["hybrid"]
    for kind in ("symbol", "file name", "quotation"):
        assert first[kind] in README


def test_the_latencies_in_the_readme_are_those_of_a_kept_result():
    _, result = newest_result("latency")
    for mode in ("hybrid", "lexical"):
        assert f"{result[mode]['median_ms']} ms, {result[mode]['p95_ms']} ms" in README


def test_the_costs_in_the_readme_are_those_of_a_kept_result():
    _, result = newest_result("background")
    for what, figure in result["table"]:
        assert f"| {what} | {figure} |" in README


@pytest.mark.parametrize("what", ["speed", "scale"])
def test_the_speeds_in_the_readme_are_those_of_a_kept_result(what):
    file, result = newest_result(what)
    assert file in README
    for what, figure in result["table"]:
        assert f"| {what} | {figure} |" in README


def test_what_half_an_hour_did_is_that_of_a_kept_result():
    _, result = newest_result("load")
    assert (result["minutes"], result["errors"]) == (30, 0)
    what, figure = result["table"][0]
    assert f"| {what} | {figure} |" in README
    assert figure in PROMISES


def test_where_the_time_goes_is_that_of_a_kept_result():
    _, result = newest_result("limits")
    for what, figure in result["table"]:
        assert f"| {what} | {figure} |" in BENCHMARKS


def test_every_promise_names_tests_there_are():
    tables = re.findall(r"^\|---.*\n((?:\| .*\n)+)", PROMISES, re.MULTILINE)
    assert len(tables) == 2
    for table in tables:
        rows = [line.split(" | ") for line in table.splitlines()]
        assert len(rows) > 15
        for row in rows:
            named = re.findall(r"`([\w/]+\.py)`", row[2])
            assert named, row
            assert all((ROOT / "tests" / name).is_file() for name in named), row
