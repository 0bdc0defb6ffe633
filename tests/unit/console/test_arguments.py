"""What the command line understands, without a process."""

import difflib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vector_index_mcp import cli
from vector_index_mcp.console import arguments as grammar

COMMANDS = ["serve", "index", "status", "verify"]
paths = st.text(min_size=1).filter(lambda text: not text.startswith("-") and text != "host")
words = st.text() | st.sampled_from([
    *COMMANDS, "search", "ps", "stop", "logs", "host", "--env-file", "--env-file=x", "--env", "--",
    "-", "-h", "--version", "--json", "--all", "--top-k", "--top-k=0", "5", "--force",
    "--foreground", "x\0y", "\udcff", "@file", "", " ",
])  # fmt: skip


def parse(arguments):
    return grammar.parse(arguments, cli.COMMANDS)


@pytest.mark.slow
@given(st.lists(words, max_size=6))
def test_any_arguments_make_a_command_or_are_refused(arguments):
    try:
        parsed = parse(arguments)
    except SystemExit as exit_:
        assert exit_.code in {0, 2}
    else:
        assert parsed.run is cli.COMMANDS[parsed.command]
        assert parsed.speaks_mcp == (parsed.command == "serve")


@pytest.mark.slow
@given(paths | st.sampled_from(COMMANDS), st.sampled_from(COMMANDS), paths)
def test_an_env_file_may_have_any_name(env_file, command, path):
    parsed = parse(["--env-file", env_file, command, path])
    assert (parsed.env_file, parsed.command, parsed.path) == (env_file, command, path)


def is_nearly_a_command(path):
    return bool(difflib.get_close_matches(path.lower(), cli.COMMANDS, 1, 0.75))


@pytest.mark.slow
@given(paths, paths.filter(lambda path: not is_nearly_a_command(path)))
def test_a_path_alone_is_served_with_any_env_file(env_file, path):
    parsed = parse(["--env-file", env_file, path])
    assert (parsed.env_file, parsed.command, parsed.path) == (env_file, "serve", path)


WITH_A_GRAMMAR_OF_THEIR_OWN = {"documents", "notes", "datasets"}


@pytest.mark.parametrize("command", sorted({*cli.COMMANDS} - WITH_A_GRAMMAR_OF_THEIR_OWN))
def test_every_command_that_can_be_run_has_a_grammar(command, capsys):
    with pytest.raises(SystemExit) as exit_:
        parse([command, "--help"])
    assert exit_.value.code == 0
    assert f"vector-index-mcp {command} " in capsys.readouterr().out.replace("\n", " ")


def test_the_help_lists_each_command_once(capsys):
    with pytest.raises(SystemExit):
        parse(["--help"])
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    listed = [words[1] for words in lines if len(words) > 1 and words[0] == "vector-index-mcp"]
    # PATH alone is `serve`, and people run no `host`.
    assert sorted(listed) == sorted({*cli.COMMANDS, "PATH", "help"} - {"serve", "host"})
    assert not [words for words in lines if words[:1] and words[0] in cli.COMMANDS]


@pytest.mark.parametrize("path", ["search", "--", "-x"])
def test_what_is_no_path_is_not_served(path):
    with pytest.raises(SystemExit):
        parse([path])


@pytest.mark.parametrize(
    ("arguments", "option"),
    [
        (["x" * 50_001], "QUERY"),
        (["--explain", "x" * 50_001], "QUERY"),
        (["x", "--glob", "x" * 4_097], "--glob"),
        (["x", "--language", "x" * 101], "--language"),
    ],
)
def test_what_is_too_long_to_ask_is_refused_in_a_sentence(arguments, option, capsys):
    with pytest.raises(SystemExit):
        parse(["search", ".", *arguments])
    told = capsys.readouterr().err.splitlines()[-1]
    assert option in told
    assert "is the most" in told
    assert len(told) < 200


def test_what_is_no_text_is_asked_as_far_as_it_is_one():
    parsed = parse(["search", ".", "caf\udce9 au lait"])
    assert parsed.query == "caf\N{REPLACEMENT CHARACTER} au lait"


@pytest.mark.parametrize(
    ("arguments", "path", "query"),
    [
        (["retry"], None, "retry"),
        (["src", "retry"], "src", "retry"),
        (["-C", "src", "retry"], "src", "retry"),
        (["retry", "--project", "src", "--top-k", "3"], "src", "retry"),
        (["--top-k", "3", "src", "retry"], "src", "retry"),
        (["src", "--explain", "retry"], "src", "retry"),
        (["src", "-E", "--", "--retry"], "src", "--retry"),
        (["src", "--top-k", "3", "retry", "--explain"], "src", "retry"),
    ],
)
def test_a_project_may_stand_before_the_query_or_is_the_one_you_are_in(
    arguments, path, query, tmp_path, monkeypatch
):
    (tmp_path / "src").mkdir()
    monkeypatch.chdir(tmp_path)
    parsed = parse(["search", *arguments])
    assert (parsed.path, parsed.query) == (path, query)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--top-k", "2", "search", "x"], "stand behind it: `vector-index-mcp search ... --top-k`"),
        (["serch", ".", "retry"], "there is no command 'serch'; did you mean search?"),
        (["Index"], "did you mean index?"),
        (["help", "frob"], "there is no command 'frob'; `help` lists them all"),
        (["help", "."], "there is no command '.'"),
        ([], "what is to be done? `help` lists the commands"),
        (["help", "docments"], "there is no command 'docments'; did you mean documents?"),
        (["statsu", "."], "did you mean status?"),
        (["watch"], "there is no command 'watch'; did you mean status --watch?"),
        (["grep", "retry"], "did you mean search?"),
        (["reset", "."], "did you mean clear?"),
        (["search", ""], "the query is empty; say what to look for"),
        (["search", ".", " \t"], "the query is empty; say what to look for"),
        (["search", "how", "is", "it"], "put the query into quotes: search 'how is it'"),
        (
            ["search", "retry", "policy", "--top-k", "1"],
            "quotes: search 'retry policy' ('retry' is",
        ),
        (["search", "-C", ".", "/", "retry"], "the project is named twice"),
        (["search", "a b", "--explain", "."], "stands before the query: search '.' 'a b'"),
        (["search", "-C", ".", "machine", "id"], "the query into quotes: search 'machine id'"),
        (["search", "--filter-tags"], "dash stands behind --: search -- '--filter-tags'"),
        (["search", "--top-kk", "3", "x"], "did you mean --top-k?"),
        (["stop", "--al"], "did you mean --all?"),
        (["clear", "--dry"], "--dry"),
        (["search", ".", "/", "thread pool"], "one project at a time: search '.' 'thread pool'"),
        (["status", "-C", "src", "src"], "the project is named twice"),
    ],
)
def test_what_is_probably_a_slip_is_told(arguments, words, capsys):
    with pytest.raises(SystemExit) as exit_:
        parse(arguments)
    assert exit_.value.code == 2
    assert words in capsys.readouterr().err


def test_files_are_chosen_by_the_name_of_the_tools_argument_too():
    assert parse(["search", "--path", "src", "retry"]).glob == "src"
    assert parse(["search", "--glob", "src", "retry"]).glob == "src"


def test_bytes_of_a_shell_are_no_wildcards():
    line = parse(["search", "--glob", "m\udcff*.py", "retry"])
    assert line.glob == "m\N{REPLACEMENT CHARACTER}*.py"


@pytest.mark.parametrize(
    ("arguments", "command"),
    [
        (["uninstall", "--dry"], "uninstall"),
        (["status", "--fast"], "status"),
        ([".", "--top-k", "3"], "serve"),
        (["search"], "search"),
        (["search", "a", "b", "-C", "c"], "search"),
        (["status", "a", "-C", "b"], "status"),
    ],
)
def test_what_a_command_does_not_take_is_told_with_what_it_takes(arguments, command, capsys):
    with pytest.raises(SystemExit) as caught:
        parse(arguments)
    assert caught.value.code == 2
    assert capsys.readouterr().err.startswith(f"usage: vector-index-mcp {command} ")


def test_a_folder_that_is_called_nearly_as_a_command_is_served(tmp_path, monkeypatch):
    (tmp_path / "serch").mkdir()
    monkeypatch.chdir(tmp_path)
    assert parse(["serch"]).command == "serve"


@pytest.mark.parametrize("command", ["index", "status", "verify", "doctor", "ui"])
def test_without_a_path_a_command_is_about_where_you_are(command):
    assert parse([command]).path is None


@pytest.mark.parametrize("command", ["index", "status", "verify", "doctor", "ui", "clear"])
def test_a_project_is_an_argument_or_an_option(command):
    assert parse([command, "src"]).path == parse([command, "-C", "src"]).path == "src"


@pytest.mark.parametrize("command", ["stop", "logs"])
def test_so_is_the_project_of_a_service(command):
    assert parse([command, "src"]).path == parse([command, "--project", "src"]).path == "src"


@pytest.mark.parametrize("path", ["", "~", "~/missing", "./missing", "../missing", "/missing"])
def test_what_is_written_like_a_path_is_taken_for_a_project(path):
    assert parse(["search", path, "retry"]).path == path


def test_what_stands_before_a_quoted_query_is_taken_for_a_project():
    assert parse(["search", "missing", "retry policy"]).path == "missing"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["help"], "[COMMAND]"),
        (["help", "help"], "[COMMAND]"),
        (["help", "search"], "[PATH] QUERY"),
    ],
)
def test_help_is_a_command(arguments, words, capsys):
    with pytest.raises(SystemExit) as exit_:
        parse(arguments)
    assert exit_.value.code == 0
    assert words in capsys.readouterr().out
