"""The chunks of a document are its text behind the front matter, along headings and blocks."""

import time

import pytest
from drawn import examples
from hypothesis import example, given, settings
from hypothesis import strategies as st

from vector_index_mcp.engine.chunk import chunk_text
from vector_index_mcp.engine.prose import chunks_of, entries, properties_of
from vector_index_mcp.engine.types import Chunk

_MANY = 250_000
FENCE = "```python\n# no heading\n\nx = 1\n\n\ndef f():\n    pass\n```\n"
TABLE = "| a | b |\n|---|---|\n" + "| one | two |\n" * 6
LIST = "- one\n  more of one\n- two\n\n  a paragraph\n\n- three\n    - four\n"
FILLER = "Some words of a text that says nothing.\n\n" * 8


def cut(text, max_chars=200, language="markdown", key="c/name.md"):
    properties, first = properties_of(key, text, language)
    return chunks_of(text, language, properties.title, first, max_chars)


def check(text, max_chars, language="markdown"):
    """What holds for the chunks of every text."""
    properties, first = properties_of("c/name.md", text, language)
    chunks = chunks_of(text, language, properties.title, first, max_chars)
    lines = text.split("\n")
    body = "\n".join(lines[first:])
    if not body.strip():
        assert chunks == [Chunk("", 1, 1, properties.title)]
        return chunks
    assert "".join(chunk.text for chunk in chunks) == body
    position = 0
    for chunk in chunks:
        assert 1 <= len(chunk.text) <= max_chars
        assert chunk.start_line == first + 1 + body.count("\n", 0, position)
        position += len(chunk.text)
        assert chunk.end_line == first + 1 + body.count("\n", 0, position - 1)
        assert (chunk.scope + " ›").startswith(f"{properties.title} ›")
        assert chunk.symbols == ()
    return chunks


_LINES = st.one_of(
    st.text(st.characters(), max_size=30),
    st.sampled_from(
        [
            *("", "---", "+++", "title: a", "# A", "## B", "### C", "Text", "===", "```", "~~~~"),
            *("    ```", "```js", "- x", "1. y", "  more", "\tmore", "| a | b |", "> q", "\ufeff"),
            *("A sentence. " * 9, "word " * 30, "x" * 150, "\x00", "```a``` b", "- # A", "  # A"),
        ]
    ),
)
_ENDS = st.sampled_from(["\n"] * 6 + ["\r\n", "\r", "\n\n", "\x0c", "\u2028"])
texts = st.lists(st.tuples(_LINES, _ENDS), max_size=40).map(
    lambda pairs: "".join(line + end for line, end in pairs)
)


@pytest.mark.slow
@settings(max_examples=examples(600))
@given(
    texts,
    st.integers(1, 300),
    st.sampled_from(["markdown", "rst", "asciidoc", "other"]),
    st.booleans(),
)
@example("---\ntitle: a\n---", 100, "markdown", True)
@example("---\r\ntitle: a\r\n---\r\n# A\r\ntext\r\n", 10, "markdown", True)
@example("---\n---", 100, "markdown", False)
def test_the_chunks_joined_are_the_text_and_name_its_lines(text, max_chars, language, ends):
    check(text if ends else text.rstrip("\n"), max_chars, language)


HOSTILE = {
    "brackets": "[" * _MANY,
    "wiki": "[[a" * (_MANY // 3),
    "inline": "](a(" * (_MANY // 4),
    "pipe": "|" * _MANY,
    "rows": "|\n" * (_MANY // 2),
    "ticks": "`" * _MANY,
    "fences": "```\n" * (_MANY // 4),
    "opened": "    ```a\n" * (_MANY // 9),
    "longer and longer": "".join(f"{'`' * (1_400 - n)}a\n" for n in range(1_390)) + "\n" * 9_999,
    "rules": "---\n" * (_MANY // 4),
    "sections": "# a\n- x\n- y\n" * (_MANY // 12),
    "nested": "".join(" " * (n % 200) + "- a\n" for n in range(_MANY // 100)),
    "items": "- a\n\n" * (_MANY // 5),
    "underlined": "a\n===\n" * (_MANY // 6),
    "hashes": "# a" + " #" * (_MANY // 2),
    "line": "x" * _MANY,
    "words": "word " * (_MANY // 5),
    "stops": "A. " * (_MANY // 3),
    "spaces": "a." + " " * _MANY + "b",
    "crlf": "# a\r\nb\r\n" * (_MANY // 8),
    "nul": "\0" * _MANY,
    "surrogates": "\ud800" * _MANY,
    "marks": "\ufeff" * _MANY,
    "settings": "---\n" + "a: [" * (_MANY // 4) + "\n---\n",
    "quotes": "---\na: " + '"' * _MANY + "\n---\n",
    "value": "---\na:" + " " * _MANY + "x\n---\n",
    "toml": "+++\na = " + "[" * _MANY + "\n+++\n",
}


@pytest.mark.slow
@pytest.mark.parametrize("name", HOSTILE)
def test_a_text_made_to_be_slow_takes_a_second(name):
    text = HOSTILE[name]
    began = time.process_time()
    properties, first = properties_of("c/a.md", text, "markdown")
    chunks = chunks_of(text, "markdown", properties.title, first, 1_200)
    entries("c/a.md", chunks, properties)
    # 0.8 s at most here; what is not linear takes minutes.
    assert time.process_time() - began < 4
    body = "\n".join(text.split("\n")[first:])
    assert "".join(chunk.text for chunk in chunks) == (body if body.strip() else "")


@pytest.mark.parametrize(
    "text", ["", "\n\n", " \r\n", "---\ntitle: Hello\n---\n", "---\ntitle: Hello\n---"]
)
def test_an_empty_document_is_found_by_its_title(text):
    properties, first = properties_of("c/hello.md", text, "markdown")
    chunks = chunks_of(text, "markdown", properties.title, first, 200)
    (entry,) = entries("c/hello.md", chunks, properties)
    assert entry.chunk == Chunk("", 1, 1, properties.title)
    assert "hello" in entry.search_text.split()


def test_what_the_front_matter_says_is_in_no_chunk():
    text = "---\ntitle: Hidden\nsecret: [a\n---\n" + FILLER
    assert all("secret" not in chunk.text for chunk in cut(text))
    assert cut(text)[0].start_line == 5


def test_a_scope_is_the_title_and_the_headings_above():
    text = f"# Title\n\n{FILLER}\n## One\n\n{FILLER}\n### Deep\n\n{FILLER}\n## Two\n\n{FILLER}"
    scopes = dict.fromkeys(chunk.scope for chunk in cut(text))
    assert list(scopes) == ["Title", "Title › One", "Title › One › Deep", "Title › Two"]


@pytest.mark.parametrize("title", ["A › B", "x" * 200, "A  title with\tspaces", "A"])
def test_the_title_stands_in_a_scope_once(title):
    shown = " ".join(title.split())
    chunks = cut(f"# {title}\n\n{FILLER}\n## Part\n\n{FILLER}")
    assert {chunk.scope for chunk in chunks} == {shown, f"{shown} › Part"}


def test_another_title_stands_before_the_first_heading():
    chunks = cut(f"---\ntitle: Other\n---\n# A\n\n{FILLER}\n## Part\n\n{FILLER}")
    assert chunks[-1].scope == "Other › A › Part"


def test_a_heading_that_only_begins_like_the_title_is_another():
    chunks = cut(f"---\ntitle: Part\n---\n# Parts\n\n{FILLER}")
    assert chunks[0].scope == "Part › Parts"


@pytest.mark.parametrize(
    "code", [FENCE, FENCE.replace("```", "~~~~"), FENCE.replace("```", "    ```")]
)
def test_a_hash_in_code_is_no_heading(code):
    chunks = cut(f"# Title\n\n{FILLER}\n{code}\n{FILLER}")
    assert {chunk.scope for chunk in chunks} == {"Title"}


def test_code_in_a_line_is_no_fence():
    chunks = cut(f"# Title\n\n```code``` in a line\n\n{FILLER}\n## Part\n\n{FILLER}")
    assert chunks[-1].scope == "Title › Part"


def test_headings_between_two_rules_count():
    chunks = cut(f"---\nText.\n\n# Title\n\n{FILLER}\n## Part\n\n{FILLER}\n---\n")
    assert chunks[-1].scope == "Title › Part"


@pytest.mark.parametrize("block", [FENCE, TABLE, LIST], ids=["code", "table", "list"])
@pytest.mark.parametrize("size", range(0, 400, 40))
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_block_stays_whole_in_a_section_that_is_too_large(block, size, end):
    before = "".join(f"Line {n} of a text.\n" for n in range(size // 20))
    text = f"# Title\n\n{before}\n{block}\nText below it.\n\n{FILLER}".replace("\n", end)
    whole = block.replace("\n", end)
    assert any(whole in chunk.text for chunk in cut(text, 230))


@pytest.mark.parametrize("block", [FENCE, TABLE, LIST], ids=["code", "table", "list"])
def test_blocks_stay_in_their_sections(block):
    sections = [f"## Part {n}\n\n{FILLER}\n{block}\n{FILLER}" for n in range(5)]
    for chunk in cut("# Title\n\n" + "\n".join(sections), 230):
        numbers = {line[-1] for line in chunk.text.split("\n") if line.startswith("## Part")}
        assert not numbers or chunk.scope[-1] in numbers or len(numbers) > 1


def test_a_heading_ends_a_list():
    chunks = cut(f"# Title\n\n- one\n- two\n  ## Part\n\n{FILLER}\n### Deep\n\n{FILLER}")
    assert chunks[-1].scope.endswith("Part › Deep")


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_paragraph_of_one_line_is_cut_between_sentences(end):
    sentence = "This sentence is one of very many. "
    text = f"# Title{end}{end}{sentence * 60}{end}{end}## Part{end}{end}{sentence * 60}"
    chunks = check(text, 300)
    assert all(chunk.text.rstrip().endswith("many.") for chunk in chunks)
    assert chunks[-1].scope == "Title › Part" and chunks[-1].start_line == 7


def test_a_long_line_is_cut_between_words():
    text = "A sentence. " * 50
    chunks = [chunk.text for chunk in chunk_text(text, "python", 100)]
    assert "".join(chunks) == text
    assert {len(chunk) for chunk in chunks[:-1]} <= set(range(80, 101))
    assert {word for chunk in chunks for word in chunk.split()} == {"A", "sentence."}


def test_an_entry_is_matched_by_title_aliases_tags_name_folders_headings_and_text():
    text = "---\ntitle: Titles\naliases: [Nickname]\ntags: [tagged]\n---\n# Headings\n\nBodies\n"
    properties, first = properties_of("c/outer/folders/files.md", text, "markdown")
    chunks = chunks_of(text, "markdown", properties.title, first, 200)
    (entry,) = entries("c/outer/folders/files.md", chunks, properties)
    words = set(entry.search_text.split())
    assert words >= {"titl", "nicknam", "tag", "file", "outer", "folder", "head", "bodi"}
    assert "c" not in words
