"""What a search prints beside its results."""

from vector_index_mcp.console.colours import PLAIN
from vector_index_mcp.console.documents import commands

HIT = {"results": [], "lack": ""}


class Desk:
    colours = PLAIN

    def __init__(self, answer):
        self._answer = answer

    def ask(self, call, /, **given):
        return self._answer


def test_what_may_be_missing_stands_beside_the_results_not_among_them(capsys):
    assert commands.run(["search", "x"], lambda index: Desk(HIT | {"note": "missing\x1b[2J"})) == 0
    out, err = capsys.readouterr()
    assert out == "No results found.\n"
    assert err.startswith("missing")
    assert "\x1b" not in err


def test_a_service_of_another_version_has_no_note(capsys):
    assert commands.run(["search", "x"], lambda index: Desk(HIT)) == 0
    assert capsys.readouterr() == ("No results found.\n", "")
