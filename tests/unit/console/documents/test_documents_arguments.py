"""The grammar of the documents' command line."""

import pytest

from vector_index_mcp.cli import COMMANDS
from vector_index_mcp.console import arguments as program
from vector_index_mcp.console.documents.arguments import Line, UsageError, is_relay, parse


def test_options_may_stand_anywhere():
    line = parse(["--index", "work", "search", "-n5", "red", "--json", "tape", "-c=notes"])
    assert (line.command, line.words, line.index) == ("search", ("red", "tape"), "work")
    assert (line.whole("n"), line.text("collection"), line.format) == (5, "notes", "json")


def test_what_follows_two_hyphens_is_no_option():
    assert parse(["search", "--", "--json", "-x"]).words == ("--json", "-x")


def test_of_several_formats_the_first_in_the_table_counts():
    assert parse(["search", "x", "--json", "--csv"]).format == "csv"
    assert parse(["search", "x"]).format == "cli"


@pytest.mark.parametrize("arguments", [[], ["--json"]])
def test_a_line_may_have_no_command(arguments):
    assert parse(arguments).command == ""


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["search", "--josn"], "Unknown option: --josn\nRun 'qmd --help' for usage.\n"),
        (["search", "--json=yes"], "Unknown option: --json\nRun 'qmd --help' for usage.\n"),
        (["search", "-n"], "-n lacks its value\nRun 'qmd --help' for usage.\n"),
    ],
)
def test_a_wrong_option_is_refused(arguments, said):
    with pytest.raises(UsageError) as refused:
        parse(arguments)
    assert str(refused.value) == said


@pytest.mark.parametrize("written", ["five", "-1", "1.5", ""])
def test_a_number_is_a_whole_one_of_at_least_zero(written):
    with pytest.raises(UsageError, match="-l takes a number"):
        parse(["get", "x", f"-l={written}" if written else "-l", ""]).whole("l")


@pytest.mark.parametrize("written", ["nan", "inf", "-0.5", "x"])
def test_a_score_is_a_number(written):
    with pytest.raises(UsageError, match="--min-score takes a number"):
        parse(["search", "x", "--min-score", written]).number("min-score")


def test_the_arguments_of_the_server_are_its_own():
    line = parse(["server", "--transport", "http", "--index", "work", "--port", "1"])
    assert line == Line(
        "server", values={"index": "work"}, rest=("--transport", "http", "--port", "1")
    )


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["mcp"], True),
        (["--index", "x", "serve"], True),
        (["search", "mcp"], False),
        (["-x"], False),
    ],
)
def test_a_relay_is_known_before_it_runs(arguments, expected):
    assert is_relay(arguments) is expected


@pytest.mark.parametrize("before", [[], ["--env-file", "x"], ["--env-file=x"]])
def test_the_program_leaves_our_arguments_alone(before):
    ours = ["search", "--help", "--env-file", "y", "--json"]
    parsed = program.parse([*before, "documents", *ours], COMMANDS)
    assert (parsed.run, parsed.rest) == (COMMANDS["documents"], ours)
    assert parsed.env_file == ("x" if before else None)
    assert not parsed.speaks_mcp
    assert program.parse(["documents", "mcp"], COMMANDS).speaks_mcp


def test_a_folder_called_documents_is_served_by_its_path():
    assert program.parse(["serve", "documents"], COMMANDS).rest == []
