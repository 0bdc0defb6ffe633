"""The datasets' command line takes the place of the original program's."""

import os

import pytest

from vector_index_mcp.console.datasets.arguments import is_relay, parse, pass_on_log_level

VARIABLES = ("LOG_LEVEL", "MCPOWER_DATASETS", "MCPOWER_WEB_PORT", "MCPOWER_WEB_HOST")


@pytest.fixture(autouse=True)
def environment(monkeypatch):
    for name in (*VARIABLES, "VECTOR_INDEX_LOG_LEVEL"):
        monkeypatch.setenv(name, "restored afterwards")
        monkeypatch.delenv(name)
    return monkeypatch


class Input:
    """A standard input."""

    def __init__(self, is_terminal):
        self.isatty = lambda: is_terminal


@pytest.fixture
def no_terminal(monkeypatch):
    monkeypatch.setattr("sys.stdin", Input(False))


@pytest.mark.parametrize(
    ("arguments", "folder"),
    [
        ([], "datasets"),
        (["--stdio"], "datasets"),
        (["--stdio", "--datasets", "there"], "there"),
        (["--datasets=there", "--log-level", "warn"], "there"),
        (["serve", "there"], "there"),
    ],
)
def test_an_mcp_client_starts_it_as_it_started_the_original(no_terminal, arguments, folder):
    line = parse(arguments)
    assert (line.command, line.folder) == ("serve", folder)
    assert is_relay(arguments)


@pytest.mark.parametrize("arguments", [["--help"], ["--stdio", "--help"], ["--version"]])
def test_what_is_only_asked_for_is_told_and_not_served(arguments, capsys):
    assert not is_relay(arguments)
    with pytest.raises(SystemExit) as ended:
        parse(arguments)
    assert ended.value.code == 0
    told = capsys.readouterr().out
    assert told.startswith("mcpower (vector-index-mcp " if "--version" in arguments else "usage:")


@pytest.mark.parametrize(
    "arguments", [["--stdio", "extra"], ["--log-level", "loud"], ["--datasetz"]]
)
def test_what_the_original_did_not_know_is_refused(arguments):
    with pytest.raises(SystemExit) as ended:
        parse(arguments)
    assert ended.value.code == 2


@pytest.mark.parametrize(
    "arguments", [["list", "--no-open"], ["pack", "a", "b", "c"], ["info", "a", "--yes"]]
)
def test_who_mistypes_an_option_gets_the_usage_of_the_command(arguments, capsys):
    with pytest.raises(SystemExit) as ended:
        parse(arguments)
    assert ended.value.code == 2
    assert capsys.readouterr().err.startswith(f"usage: vector-index-mcp datasets {arguments[0]} ")


def test_a_person_who_gives_no_command_gets_the_usage(monkeypatch, capsys):
    monkeypatch.setattr("sys.stdin", Input(True))
    assert not is_relay([])
    with pytest.raises(SystemExit) as ended:
        parse([])
    assert ended.value.code == 2
    assert "usage:" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("given", "variables", "level"),
    [
        (["--log-level", "debug"], {"VECTOR_INDEX_LOG_LEVEL": "ERROR"}, "DEBUG"),
        (["--log-level", "warn"], {"LOG_LEVEL": "debug"}, "WARNING"),
        (["--stdio"], {"LOG_LEVEL": "Debug"}, "DEBUG"),
        (["serve"], {"LOG_LEVEL": "info"}, "INFO"),
        (["--stdio"], {"LOG_LEVEL": "debug", "VECTOR_INDEX_LOG_LEVEL": "ERROR"}, "ERROR"),
        (["--stdio"], {"LOG_LEVEL": "of another program"}, None),
    ],
)
def test_the_service_logs_as_much_as_the_original_would(environment, given, variables, level):
    for name, value in variables.items():
        environment.setenv(name, value)
    pass_on_log_level(parse(given))
    assert os.environ.get("VECTOR_INDEX_LOG_LEVEL") == level


def test_the_variables_of_the_originals_console_are_its_defaults(environment):
    for name, value in zip(VARIABLES[1:], ("there", "4711", "::1"), strict=True):
        environment.setenv(name, value)
    line = parse(["console"])
    assert (line.folder, line.port, line.host) == ("there", 4711, "::1")
    line = parse(["console", "here", "--port", "0", "--host", "localhost"])
    assert (line.folder, line.port, line.host) == ("here", 0, "localhost")
    assert parse(["ui"]).folder == "there"
    assert parse(["serve"]).folder == "datasets"


def test_a_port_in_the_environment_that_is_none_is_refused(environment, capsys):
    environment.setenv("MCPOWER_WEB_PORT", "many")
    with pytest.raises(SystemExit):
        parse(["console"])
    told = capsys.readouterr().err
    assert "MCPOWER_WEB_PORT: 'many' is not a number" in told
    assert "--port:" not in told
    assert parse(["console", "--port", "7"]).port == 7
    assert parse(["list"]).command == "list"


@pytest.mark.parametrize(
    "arguments",
    [
        ["index", "texts", "--dataset", "made", "--verbose"],
        ["index", "--source", "texts", "--dataset-id", "made"],
        ["dataset", "index", "texts", "--dataset-id", "made"],
    ],
)
def test_a_dataset_is_made_by_the_originals_command_lines(arguments):
    line = parse(arguments)
    assert (line.command, line.source, line.dataset_id) == ("index", "texts", "made")


@pytest.mark.parametrize("sources", [[], ["one", "--source", "two"]])
def test_a_dataset_is_made_of_one_folder(sources, capsys):
    with pytest.raises(SystemExit):
        parse(["index", *sources, "--dataset-id", "made"])
    assert "name the folder of the texts once" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments",
    [["list"], ["info", "made"], ["delete", "made"], ["validate", "made", "--json"]],
)
def test_the_noun_before_a_command_may_be_given(arguments):
    assert parse(["dataset", *arguments]) == parse(arguments)


@pytest.mark.parametrize(
    ("arguments", "k", "words"),
    [
        (["docs", "my", "question"], 5, ["my", "question"]),
        (["docs", "--k", "3", "my", "question"], 3, ["my", "question"]),
        (["--k", "3", "docs", "my"], 3, ["my"]),
        (["docs", "my", "--k", "3", "question"], 3, ["my", "question"]),
    ],
)
def test_a_dataset_is_searched_by_its_id(arguments, k, words):
    line = parse(["search", *arguments])
    assert (line.dataset_id, line.k, line.words) == ("docs", k, words)


@pytest.mark.parametrize(
    "arguments",
    [["docs"], ["docs", "q", "--index", "i"], ["--query", "q"], ["docs", "q", "--nothing"]],
)
def test_a_search_that_names_too_much_or_too_little_is_refused(arguments):
    with pytest.raises(SystemExit) as ended:
        parse(["search", *arguments])
    assert ended.value.code == 2
