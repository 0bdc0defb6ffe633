"""The question that `datasets delete` asks."""

import argparse
import io
import sys

import pytest

from vector_index_mcp.console.datasets import keeping


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize(
    "typed", ["", "\n", "n\n", "what?\n"], ids=["Ctrl+D", "Enter", "no", "what"]
)
def test_nothing_is_deleted_without_a_yes(monkeypatch, capsys, tmp_path, typed):
    manifest = tmp_path / "ships" / "manifest.json"
    monkeypatch.setattr(keeping, "manifest_of", lambda line: manifest)
    monkeypatch.setattr(sys, "stdin", Terminal(typed))
    line = argparse.Namespace(output=str(tmp_path), yes=False, dataset_id="ships")
    assert keeping.COMMANDS[keeping.DELETE](line) == 1
    assert "Nothing was deleted." in capsys.readouterr().out
