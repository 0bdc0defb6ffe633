"""A path that a person types may begin with `~`; that of nobody is refused with a sentence."""

import pytest

from vector_index_mcp.cli import run

NOBODYS = "~nosuchuser/x"


@pytest.mark.parametrize(
    "command",
    [
        ["stop", NOBODYS],
        ["logs", NOBODYS],
        ["publish", ".", NOBODYS],
        ["datasets", "list", NOBODYS],
        ["datasets", "add", NOBODYS],
        ["notes", "--home", NOBODYS, "list"],
    ],
    ids=" ".join,
)
def test_a_home_of_nobody_is_refused_with_a_sentence(tmp_path, monkeypatch, capsys, command):
    monkeypatch.chdir(tmp_path)
    assert run(command) == 2
    error = capsys.readouterr().err
    assert "nosuchuser" in error
    assert error.count("\n") <= 2
    assert not (tmp_path / "~nosuchuser").exists()
