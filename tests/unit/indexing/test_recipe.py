"""A document that comes under another key is what it would be if it were cut under that key."""

from dataclasses import replace

import pytest
from drawn import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from ranking import stored

from vector_index_mcp.engine import prose
from vector_index_mcp.engine.types import Document
from vector_index_mcp.files.read import Text
from vector_index_mcp.indexing.preparing.recipe import Recipe

PROSE, CODE = Recipe(200, is_prose=True), Recipe(200)
_LINES = st.sampled_from(
    ["# Title", "## Part", "Some text. " * 5, "", "- item", "```", "x" * 300, "def f(): pass", "é"]
)
texts = st.lists(_LINES, min_size=1, max_size=20).map("\n".join).filter(str.strip)
_FRONT = st.sampled_from(
    ["", "---\ntitle: A\ntags: [b]\naliases: [c]\n---\n", "---\ndate: x\n---\n"]
)


def read(text):
    return Text(text, "hash", (1, 2 * 10**9, 3))


def stored_chunks(document: Document):
    """The rows of a document as the store gives them back."""
    return [
        replace(
            stored(document.key, index, language=document.language),
            content_hash=document.content_hash,
            modified=document.modified,
            text=entry.chunk.text,
            start_line=entry.chunk.start_line,
            end_line=entry.chunk.end_line,
            scope=entry.chunk.scope,
            symbols=entry.chunk.symbols,
        )
        for index, entry in enumerate(document.entries)
    ]


@pytest.mark.slow
@settings(max_examples=examples(200))
@given(
    _FRONT,
    texts,
    st.sampled_from(["old/2024-01-02.md", "old/a/b.md", "old/a/b.txt", "old/c.rst"]),
)
def test_a_renamed_collection_is_as_if_it_were_cut_anew(front, text, key):
    new = key.replace("old/", "new/")
    before, expected = (PROSE.cut(each, read(front + text)) for each in (key, new))
    rows = stored_chunks(before.document)
    assert PROSE.recut(new, rows, before.details) == expected.document
    assert before.details == expected.details
    hashes = [[e.chunk_hash for e in cut.document.entries] for cut in (before, expected)]
    assert hashes[0] == hashes[1]  # nothing is embedded again


@settings(max_examples=examples(50))
@given(texts)
def test_so_is_code_in_a_file_of_the_same_language(text):
    before, expected = (CODE.cut(key, read(text)) for key in ("a/b.py", "c/d.py"))
    rows = stored_chunks(before.document)
    assert CODE.recut("c/d.py", rows, before.details) == expected.document


def test_details_that_somebody_else_has_written_cost_only_themselves():
    cut = PROSE.cut("a/b.md", read("# Title\n\ntext"))
    rows = stored_chunks(cut.document)
    (entry,) = PROSE.recut("a/b.md", rows, "[" * 100_000).entries
    assert entry.chunk == cut.document.entries[0].chunk


@pytest.mark.parametrize("text", ["", "---\ntitle: Named\n---\n"])
def test_an_empty_document_has_a_row_and_an_empty_program_has_none(text):
    assert len(PROSE.cut("a/b.md", read(text)).document.entries) == 1
    assert CODE.cut("a/b.py", read("")).document.entries == ()


def test_what_is_known_of_prose_is_stored_and_nothing_of_code():
    cut = PROSE.cut("a/b.md", read("# Title\n[a](c.md)"))
    assert prose.Properties.loaded(cut.details, "x") == prose.Properties("Title", links=("c.md",))
    assert CODE.cut("a/b.md", read("# Title")).details == ""


def test_the_version_tells_what_makes_other_chunks(monkeypatch):
    versions = [recipe.version for recipe in (PROSE, CODE, replace(PROSE, chunk_max_chars=300))]
    assert len(set(versions)) == 3
    monkeypatch.setattr(prose, "VERSION", "other")
    assert PROSE.version != versions[0] and CODE.version == versions[1]


def test_a_script_without_an_ending_is_cut_along_its_syntax():
    script = "#!/bin/sh\nset -e\n" + "".join(
        f"{name}() {{\n" + "    echo one two three\n" * 4 + "}\n\n" for name in ("start", "stop")
    )
    cut = CODE.cut("bin/service", read(script))
    assert cut.problem == ""
    assert cut.document.language == "bash"
    symbols = [symbol for entry in cut.document.entries for symbol in entry.chunk.symbols]
    assert symbols == ["start", "stop"]
