"""What a model is given of a text."""

import re
import unicodedata

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vector_index_mcp.engine.models.wording import (
    WHOLE,
    WORDS,
    WORDS_AND_GIST,
    Reading,
    is_of_model,
    of_code,
)
from vector_index_mcp.engine.types import ModelIdentity

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
    for wording in (WHOLE, WORDS, WORDS_AND_GIST):
        assert is_of_model(wording.identity(MODEL).digest, MODEL.digest)
    assert not is_of_model("cd" * 32, MODEL.digest)
    assert not is_of_model(MODEL.digest, WORDS.digest(MODEL.digest))


@pytest.mark.parametrize(
    ("name", "wording"),
    [
        ("all-MiniLM-L6-v2", WORDS_AND_GIST),
        ("sentence-transformers/all-MiniLM-L6-v2", WORDS_AND_GIST),
        ("BAAI/bge-small-en-v1.5", WHOLE),
        ("./all-MiniLM-L6-v2", WHOLE),
        ("", WHOLE),
    ],
)
def test_only_the_model_that_was_measured_is_given_words_and_gist(name, wording):
    assert of_code(name) is wording


# -- the gist --------------------------------------------------------------------------------

PYTHON = '''parser.py class Parser
def load(self, path):
    """Read the settings of a user.

    They may be missing.
    """
    text = open(path).read()  # at once
    # Errors are the caller's.
    return parse(text)
'''


@pytest.mark.parametrize(
    ("text", "gist"),
    [
        (PYTHON, "parser py class Parser load Read the settings of a user They may be missing "
                 "Errors are the caller s"),
        ("a.py\nx = 1\n", ""),
        ("a.py", ""),
        ("a.py class A\nx = 1\n", "a py class A"),
        ("a.c\n/* Frees the list.\n * Twice is an error. */\nint *p;\n",
         "a c Frees the list Twice is an error"),
        ("a.lua\n-- Says hello.\nprint(1)\n", "a lua Says hello"),
        ("a.py\n\"\"\"One line.\"\"\"\nx = 1\n", "a py One line"),
        ("a.go\nfunc (s *Store) KeepAll(n int) {\n}\ntype Store struct {\n",
         "a go keepall keep all store"),
        ("a.rs\npub fn load() {}\nfn load() {}\nimpl Config {\n", "a rs load config"),
        ("a.js\nexport const fetchAll = () => 1;\n", "a js fetchall fetch all"),
        ("a.md Guide\n# Guide\n\nText.\n", "a md Guide Guide"),
    ],
)  # fmt: skip
def test_the_gist_is_the_place_and_the_comments(text, gist):
    assert WORDS_AND_GIST.gist(text) == gist


@given(st.text())
def test_a_gist_is_short_and_of_words(text):
    gist = WORDS_AND_GIST.gist(text)
    assert len(gist) <= 300
    assert WORDS.given(gist) == gist


def unit(*numbers):
    vector = np.array(numbers, dtype="<f4")
    return vector / np.linalg.norm(vector)


def test_the_vector_of_a_gist_is_added_to_that_of_its_text():
    reading = Reading(WORDS_AND_GIST, ["a.py\nx = 1", "b.py\n# y", "c.py"], are_queries=False)
    assert reading.given == ["a py x 1", "b py y", "c py", "b py y"]
    made = np.array([unit(1, 0), unit(0, 1), unit(3, 4), unit(1, 0)])
    before = made.copy()
    expected = [unit(1, 0), unit(0.5, 1), unit(3, 4)]
    assert np.allclose(reading.vectors(made), expected, atol=1e-6)
    assert (made == before).all()


@pytest.mark.parametrize("wording", [WHOLE, WORDS])
def test_other_wordings_have_no_gist(wording):
    reading = Reading(wording, [PYTHON], are_queries=False)
    assert reading.given == [wording.given(PYTHON)]
    assert (reading.vectors(np.array([unit(3, 4)])) == [unit(3, 4)]).all()


def test_a_query_has_no_gist():
    reading = Reading(WORDS_AND_GIST, [PYTHON], are_queries=True)
    assert reading.given == [WORDS.given(PYTHON)]


def test_of_no_texts_there_are_no_vectors():
    reading = Reading(WORDS_AND_GIST, [], are_queries=False)
    assert reading.vectors(np.empty((0, 4), dtype="<f4")).shape == (0, 4)
