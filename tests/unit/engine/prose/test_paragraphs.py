"""A long line is cut where its sentences end, else between words; nothing of it is lost."""

import pytest
from drawn import examples
from hypothesis import example, given, settings
from hypothesis import strategies as st

from vector_index_mcp.engine.chunk.lines import cut_lines
from vector_index_mcp.engine.prose.paragraphs import cut_paragraphs

_PIECES = st.sampled_from(
    ["Word. ", "Ends! Then", " ", "longer words", "\n", "\r\n", "\n\n", "。", "？」", "e.g. this"]
    + ["x" * 70, " " * 50, "\r" * 40, "- ", "| a | b |", "\t", "ü", "…) ", "3. "]
)
texts = st.lists(_PIECES, max_size=60).map("".join)


def texts_of(chunks):
    return [chunk.text for chunk in chunks]


@pytest.mark.slow
@settings(max_examples=examples(400))
@given(texts, st.integers(1, 120))
@example("x" * 997 + "\r\n", 100)
@example("x" * 20 + "\r" * 500 + "\n", 20)
@example(" " * 300, 20)
@example("", 20)
def test_the_chunks_joined_are_the_text_and_name_its_lines(text, max_chars):
    position = 0
    for chunk in cut_paragraphs(text, max_chars):
        assert 1 <= len(chunk.text) <= max_chars
        assert text.startswith(chunk.text, position)
        assert chunk.start_line == 1 + text.count("\n", 0, position)
        position += len(chunk.text)
        assert chunk.end_line == 1 + text.count("\n", 0, position - 1)
    assert position == len(text)


@given(st.lists(st.text("ab. \n", max_size=19), max_size=20).map("\n".join))
def test_a_text_of_short_lines_is_cut_by_its_lines(text):
    assert cut_paragraphs(text, 20) == cut_lines(text, 20)


@pytest.mark.parametrize("end", ["", "\n", "\r\n"])
def test_a_long_line_is_cut_between_sentences(end):
    sentences = [f"This is sentence number {word}. " for word in ("one", "two", "three", "four")]
    chunks = cut_paragraphs("".join(sentences).rstrip() + end, 70)
    assert texts_of(chunks) == ["".join(sentences[:2]), "".join(sentences[2:]).rstrip() + end]


@pytest.mark.parametrize(
    "sentence",
    [
        "It said “so be it.” ",
        "Is it (really so?) ",
        "**It is bold.** ",
        "这是一个句子。",
        "「これは文ですか？」",
    ],
)
def test_a_sentence_ends_with_what_closes_it(sentence):
    for chunk in cut_paragraphs(sentence * 20, 60):
        assert chunk.text.startswith(sentence) and chunk.text.endswith(sentence)


@pytest.mark.parametrize("text", ["See e.g. this one or that, ", "In version 3. Of those there, "])
def test_not_every_full_stop_ends_a_sentence(text):
    chunks = texts_of(cut_paragraphs((text * 3 + "End. ") * 10, 110))
    assert [chunk.endswith("End. ") for chunk in chunks] == [True] * 10


def test_without_sentences_it_is_cut_between_words():
    text = "words " * 200
    assert all(
        chunk.endswith(" ") and chunk.startswith("words")
        for chunk in texts_of(cut_paragraphs(text, 100))
    )


def test_without_words_it_is_cut_anywhere():
    assert [len(text) for text in texts_of(cut_paragraphs("x" * 250, 100))] == [97, 97, 56]


def test_what_is_left_of_a_paragraph_is_put_with_the_next_one():
    paragraphs = ["One sentence here. " * 6, "", "Another paragraph, as a whole.", ""]
    chunks = texts_of(cut_paragraphs("\n".join(paragraphs), 100))
    assert chunks[-1].startswith("One sentence") and chunks[-1].endswith("as a whole.\n")
