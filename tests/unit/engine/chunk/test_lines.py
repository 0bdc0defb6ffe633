"""Chunks, joined, are the text; and they are cut where a reader would cut."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from vector_index_mcp.engine.chunk import chunk_text

_LINES = st.one_of(
    st.text(max_size=40),
    st.sampled_from(["", " ", "\t", "    x", "\tx", "}", ")", "end", "def f():", "</div>"]),
    st.integers(0, 900).map(lambda size: "x" * size),
    st.integers(0, 200).map(lambda size: " " * size),
)
_BREAKS = st.sampled_from(["\n", "\n", "\n", "\r\n", "\r", "\x0c", "\u2028", "\x85", "\n\n\n\n"])
texts = st.lists(st.tuples(_LINES, _BREAKS), max_size=40).map(
    lambda pairs: "".join(line + end for line, end in pairs)
)


def chunk_lines(text, max_chars):
    """The chunks of a text that has no outline."""
    return chunk_text(text, "other", max_chars)


@given(texts, st.integers(1, 400))
@example("", 100)
@example("\n", 100)
@example("x", 1)
@example("a\r\nb", 2)
@example("a\n" * 500, 100)
@example("x" * 1000 + "\n" + "y" * 1000, 100)
@example("a" + "\n" * 500 + "b", 100)
def test_joined_chunks_are_the_text(text, max_chars):
    joined = "".join(chunk.text for chunk in chunk_lines(text, max_chars))
    assert joined == (text if text.strip() else "")


@given(texts, st.integers(1, 400))
def test_a_chunk_is_never_empty_nor_longer_than_allowed(text, max_chars):
    for chunk in chunk_lines(text, max_chars):
        assert 1 <= len(chunk.text) <= max_chars


@given(texts, st.integers(1, 400))
@example("a\r\nb\x0cc\u2028d\re\n\nf", 3)
def test_a_chunk_names_exactly_the_lines_it_was_cut_from(text, max_chars):
    lines = text.split("\n")
    position = 0
    for chunk in chunk_lines(text, max_chars):
        end = position + len(chunk.text)
        assert chunk.start_line == 1 + text.count("\n", 0, position)
        assert chunk.end_line == 1 + text.count("\n", 0, end - 1)
        assert chunk.text in "\n".join(lines[chunk.start_line - 1 : chunk.end_line]) + "\n"
        position = end


@given(texts, st.integers(1, 400))
def test_chunks_come_in_the_order_of_their_lines(text, max_chars):
    chunks = chunk_lines(text, max_chars)
    for chunk in chunks:
        assert chunk.start_line <= chunk.end_line
    for before, after in zip(chunks, chunks[1:], strict=False):
        assert after.start_line - before.end_line in {0, 1}


@given(texts, st.integers(1, 400))
def test_a_line_that_fits_is_never_cut(text, max_chars):
    lines = [line + "\n" for line in text.split("\n")]
    chunks = chunk_lines(text, max_chars)
    for before, after in zip(chunks, chunks[1:], strict=False):
        if before.end_line == after.start_line:
            assert len(lines[after.start_line - 1]) > max_chars


@pytest.mark.parametrize("text", ["", " ", "\n\n", "\r\n\t\u2028\x0c "])
def test_white_space_alone_has_no_chunks(text):
    assert chunk_lines(text, 100) == []


def test_a_text_that_fits_is_one_chunk():
    (chunk,) = chunk_lines("a\n\n\nb\n", 100)
    assert (chunk.start_line, chunk.end_line) == (1, 4)


def _function(name, lines):
    return f"def {name}():\n" + "    statement = 1\n" * lines


PYTHON = "\n".join(_function(name, 4) for name in ("one", "two", "three", "four"))
BRACES = "".join(f"void f{i}() {{\n  int value = 0;\n  use(value);\n}}\n" for i in range(8))
PROSE = "\n".join("words in a paragraph of prose\n" * 3 for _ in range(6))
NESTED = "class A:\n" + "".join(f"    def m{i}(self):\n        return {i}\n" for i in range(12))
HTML = "".join(f"<div>\n  <p>paragraph {i} of text</p>\n</div>\n" for i in range(8))


@pytest.mark.parametrize(
    ("text", "max_chars", "beginning"),
    [
        (PYTHON, 150, "def "),
        (PYTHON, 220, "def "),
        (BRACES, 100, "void "),
        (BRACES, 170, "void "),
        (PROSE, 130, "words"),
        (PROSE, 220, "words"),
        (NESTED, 120, "    def "),
        (HTML, 100, "<div>"),
    ],
)
def test_a_chunk_begins_where_something_begins(text, max_chars, beginning):
    chunks = chunk_lines(text, max_chars)
    assert len(chunks) > 1
    for chunk in chunks[1:]:
        assert chunk.text.startswith(beginning)


@pytest.mark.parametrize("between", ["", "\n"])
@pytest.mark.parametrize("comment", ["// keep the line open", "# keep the line open", "## Timers"])
def test_a_comment_stays_with_what_it_speaks_of(comment, between):
    steps = "".join(f"    step_{n:02}(one, two, three)\n" for n in range(9))
    text = f"{steps}    {comment}\n{between}    timer = start(seconds)\n{steps}"
    first, second, *_ = (chunk.text for chunk in chunk_lines(text, len(steps) + len(comment) + 6))
    assert comment not in first
    assert second.startswith(f"    {comment}\n")


def test_a_chunk_of_prose_begins_behind_a_blank_line():
    lines = PROSE.split("\n")
    for chunk in chunk_lines(PROSE, 150)[1:]:
        assert lines[chunk.start_line - 2] == ""


@pytest.mark.parametrize("closer", ["}", ")", "]", "end", "</div>", "};"])
@pytest.mark.parametrize("indent", ["", "  "])
def test_a_chunk_keeps_what_closes_it(closer, indent):
    block = f"{indent}open\n{indent}    a line inside the block\n{indent}{closer}\n"
    for max_chars in range(5 * len(block), 8 * len(block)):
        for chunk in chunk_lines(block * 20, max_chars):
            assert chunk.text.lstrip().startswith("open" if not indent else ("open", "a line"))


def test_a_long_line_is_cut_into_full_pieces():
    chunks = chunk_lines("x" * 250, 100)
    assert [len(chunk.text) for chunk in chunks] == [100, 100, 50]
    assert {(chunk.start_line, chunk.end_line) for chunk in chunks} == {(1, 1)}


def test_a_tab_counts_as_indentation():
    text = "".join(f"func f{i}() {{\n\tbody := value{i}\n\tuse(body)\n}}\n" for i in range(6))
    for chunk in chunk_lines(text, 110)[1:]:
        assert chunk.text.startswith("func ")


@given(texts, texts)
def test_the_same_text_is_always_cut_the_same_way(text, other):
    first = chunk_lines(text, 100)
    chunk_lines(other, 50)
    assert chunk_lines(text, 100) == first


def test_the_rest_at_the_end_is_worth_a_chunk():
    """Else the last line of a long function would be a result of its own."""
    for count in range(20, 60):
        text = "".join(f"    call({n:02}, 'some words of a line')\n" for n in range(count))
        assert len(chunk_lines(text, 1_000)[-1].text) > 60
