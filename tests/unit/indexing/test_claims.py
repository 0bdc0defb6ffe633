"""Rows that an honest machine has made of a file are taken for true, in every language."""

import pytest
from snippets import SNIPPETS
from writing import write

from vector_index_mcp.engine.types import Claim
from vector_index_mcp.files import read
from vector_index_mcp.files.folder import Folder
from vector_index_mcp.indexing.preparing.claims import are_true
from vector_index_mcp.indexing.preparing.recipe import Recipe

SUFFIXES = {"python": ".py", "go": ".go", "cpp": ".cpp", "rust": ".rs", "javascript": ".js"}
MAX_CHARS = 200  # so that some chunks lie inside of a definition, and have a scope
LONG_METHOD = "package a\n\nfunc (m *Mux[T]) Handle() {\n" + "\tcall(1, 2, 3)\n" * 40 + "}\n"


def cut(tmp_path, name, text):
    """A text as a file has it, and the rows that a machine makes of it."""
    folder = Folder(write(tmp_path / "project", {name: text}))
    found = read.read(folder, name)
    document = Recipe(MAX_CHARS).cut(name, found).document
    claims = [
        Claim(
            number,
            f"{name}::{number}",
            document.content_hash,
            len(document.entries),
            entry.chunk.text,
            document.original_path,
            entry.chunk_hash,
            entry.chunk.start_line,
            entry.chunk.end_line,
            document.language,
            entry.chunk.scope,
            list(entry.chunk.symbols),
            entry.search_text,
        )
        for number, entry in enumerate(document.entries)
    ]
    return found, claims


@pytest.mark.parametrize("language", SUFFIXES)
def test_rows_of_an_honest_machine_are_true(tmp_path, language):
    name = f"a{SUFFIXES[language]}"
    text, claims = cut(tmp_path, name, SNIPPETS[language][0])
    assert any(claim.symbols for claim in claims)
    assert are_true(name, text, claims, MAX_CHARS)


def test_a_scope_may_have_a_name_that_its_parts_alone_make(tmp_path):
    text, claims = cut(tmp_path, "a.go", LONG_METHOD)
    assert claims[-1].scope == "method Mux.Handle"
    assert are_true("a.go", text, claims, MAX_CHARS)


@pytest.mark.parametrize("name", ["Mux.Close", "Tree.Handle", "Other", "...", "::"])
def test_a_name_that_the_text_does_not_have_is_not_true(tmp_path, name):
    text, claims = cut(tmp_path, "a.go", LONG_METHOD)
    changed = [claims[0]._replace(symbols=[name]), *claims[1:]]
    assert not are_true("a.go", text, changed, MAX_CHARS)
