"""What a model is given of a text."""

import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vector_index_mcp.engine.types import ModelIdentity
from vector_index_mcp.engine.wording import WHOLE, WORDS, is_of_model, of_code

MODEL = ModelIdentity("some/model", "ab" * 32, 384)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("parser.py Parser\ndef load_all(self, *paths: str) -> None:\n    # ---- here ----\n",
         "parser py Parser def load all self paths str None here "),
        ("std::vector<int>& v[0] += a->b;", "std vector int v 0 a b "),
        ("x-y_z  =  'a'", "x y z a "),
        ("नमस्ते, दुनिया।", "नमस्ते दुनिया "),  # its vowels are marks, and belong to the words
        ("「鍵」を開ける。", " 鍵 を開ける "),
        ("a ≤ b → c", "a ≤ b → c"),  # a sign may be what somebody asks for
        ("{}();", " "),
        ("", ""),
    ],
)  # fmt: skip
def test_words_alone_are_left(text, words):
    assert WORDS.given(text) == words


@given(st.text())
def test_no_letter_and_no_digit_is_lost_or_moved(text):
    kept = [one for one in text if unicodedata.category(one)[0] in "LN"]
    given_words = [one for one in WORDS.given(text) if unicodedata.category(one)[0] in "LN"]
    assert given_words == kept


@given(st.text())
def test_what_is_left_stays_as_it_is(text):
    assert WORDS.given(WORDS.given(text)) == WORDS.given(text)
    assert not re.search(r"[!-/:-@\[-`{-~]", WORDS.given(text))


def test_vectors_of_words_alone_are_those_of_another_model():
    other = WORDS.identity(MODEL)
    assert (other.dimension, len(other.digest)) == (384, 64)
    assert other.digest != MODEL.digest
    assert other.name == MODEL.name
    assert WHOLE.identity(MODEL) == MODEL
    assert WHOLE.given("a.b(c)") == "a.b(c)"


def test_a_question_asks_vectors_of_either_wording_and_of_no_other_model():
    for wording in (WHOLE, WORDS):
        assert is_of_model(wording.identity(MODEL).digest, MODEL.digest)
    assert not is_of_model("cd" * 32, MODEL.digest)
    assert not is_of_model(MODEL.digest, WORDS.digest(MODEL.digest))


@pytest.mark.parametrize(
    ("name", "wording"),
    [
        ("all-MiniLM-L6-v2", WORDS),
        ("sentence-transformers/all-MiniLM-L6-v2", WORDS),
        ("BAAI/bge-small-en-v1.5", WHOLE),
        ("./all-MiniLM-L6-v2", WHOLE),
        ("", WHOLE),
    ],
)
def test_only_the_model_that_was_measured_is_given_words_alone(name, wording):
    assert of_code(name) is wording
