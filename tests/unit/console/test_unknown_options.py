"""An option or a command that there is not is refused with the one that may be meant."""

import pytest

from vector_index_mcp import __version__, cli
from vector_index_mcp.console import arguments
from vector_index_mcp.console.datasets import arguments as datasets
from vector_index_mcp.console.notes import arguments as notes


def of_project(words):
    return arguments.parse(words, cli.COMMANDS)


@pytest.mark.parametrize(
    ("parse", "line", "meant"),
    [
        (of_project, "search cookie -n 3", "--top-k"),
        (of_project, "search cookie --topk 3", "--top-k"),
        (of_project, "search cookie -t go", "--language"),
        (of_project, "status --jsn", "--json"),
        (of_project, "clear --dryrun", "--dry-run"),
        (of_project, "-v", "--version"),
        (of_project, "--verson", "--version"),
        (datasets.parse, "list --jsno", "--json"),
        (notes.parse, "show shop --att x", "--at"),
    ],
)
def test_the_option_that_may_be_meant_is_named(parse, line, meant, capsys):
    with pytest.raises(SystemExit) as ended:
        parse(line.split())
    said = capsys.readouterr().err
    assert ended.value.code == 2
    assert "unrecognized arguments: " in said
    assert said.endswith(f"; did you mean {meant}?\n")


@pytest.mark.parametrize(
    ("parse", "line", "said"),
    [
        (notes.parse, "ls", "there is no command 'ls'; did you mean list?"),
        (notes.parse, "progress", "there is no command 'progress'; did you mean status?"),
        (notes.parse, "lst", "there is no command 'lst'; did you mean list?"),
        (notes.parse, "--home here Export", "there is no command 'Export'; did you mean export?"),
        (notes.parse, "zzz", "there is no command 'zzz'; --help lists them all"),
        (notes.parse, "--home here", "the following arguments are required: COMMAND"),
        (datasets.parse, "serch x", "there is no command 'serch'; did you mean search?"),
        (datasets.parse, "dataset lst", "there is no command 'lst'; did you mean list?"),
    ],
)
def test_the_command_of_a_set_that_may_be_meant_is_named(parse, line, said, capsys):
    with pytest.raises(SystemExit) as ended:
        parse(line.split())
    assert ended.value.code == 2
    assert capsys.readouterr().err.endswith(f": error: {said}\n")


@pytest.mark.parametrize("home", ["--home here", "--home=here"])
def test_the_folder_of_notes_may_stand_before_the_command(home):
    line = notes.parse([*home.split(), "show", "shop", "--at", "noon", "--", "--home"])
    assert (line.command, line.home, line.words) == ("show", "here", ["shop", "--home"])
    assert line == notes.parse(["show", "shop", "--at", "noon", *home.split(), "--", "--home"])
    assert notes.is_relay([*home.split(), "serve"])
    assert not notes.is_relay([*home.split(), "serve", "--help"])


@pytest.mark.parametrize("line", ["search cookie --zzz", "status x y", "index -q"])
def test_nothing_is_guessed_from_what_is_like_no_option(line, capsys):
    with pytest.raises(SystemExit):
        of_project(line.split())
    assert "did you mean" not in capsys.readouterr().err


def test_each_option_that_is_meant_exists(capsys):
    with pytest.raises(SystemExit):
        of_project(["search", "--help"])
    shown = capsys.readouterr().out
    assert all(f" {option} " in shown for option in arguments.searching.MEANT.values())


def test_the_notes_have_a_version(capsys):
    with pytest.raises(SystemExit) as ended:
        notes.parse(["--version"])
    assert ended.value.code == 0
    assert capsys.readouterr().out == f"Knowledge MCP Server (vector-index-mcp {__version__})\n"
