"""The vector of a question, turned towards those of code."""

import zlib

import numpy as np
import pytest

from vector_index_mcp.engine.models import question_map
from vector_index_mcp.engine.models.wording import WHOLE, WORDS, WORDS_AND_GIST, Reading


def units(count, dimension=384, seed=1):
    vectors = np.random.default_rng(seed).normal(size=(count, dimension)).astype("<f4")
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def test_the_map_is_small_and_not_empty():
    table = question_map.loaded(question_map.FILE)
    assert (table.shape, table.dtype) == ((384, 384), np.int8)
    assert len(zlib.compress(table.tobytes())) < 80_000
    assert 1 < np.abs(table).mean() < 4  # else `UNIT` is too coarse, or finer than it has to be
    assert np.abs(table).max() < 127  # no entry is cut off


def test_what_is_turned_keeps_its_shape_and_length():
    vectors = units(3)
    turned = question_map.turned(vectors)
    assert (turned.shape, turned.dtype) == (vectors.shape, vectors.dtype)
    assert np.allclose(np.linalg.norm(turned, axis=1), 1, atol=1e-5)
    assert np.allclose([question_map.turned(each) for each in vectors], turned, atol=1e-6)
    assert not np.allclose(turned, vectors, atol=1e-3)


def test_nothing_is_turned_by_an_empty_map():
    vectors = units(3, 8)
    assert np.allclose(question_map.moved(vectors, np.zeros((8, 8), "<f4")), vectors, atol=1e-6)


def test_the_map_adds_what_it_says_and_makes_the_length_one():
    table = np.array([[0, 1], [0, 0]], "<f4")
    assert np.allclose(question_map.moved(np.array([1, 0], "<f4"), table), [0.5**0.5, 0.5**0.5])
    assert np.allclose(question_map.moved(np.array([0, 1], "<f4"), table), [0, 1])


def test_shortened_vectors_are_left_as_they_are():
    vectors = units(2, 128)
    assert question_map.turned(vectors) is vectors


def test_only_questions_about_code_are_turned():
    made = units(1)
    question = Reading(WORDS_AND_GIST, ["how are rows counted"], are_queries=True)
    chunk = Reading(WORDS_AND_GIST, ["how are rows counted"], are_queries=False)
    assert np.array_equal(question.vectors(made), question_map.turned(made))
    assert np.allclose(chunk.vectors(np.concatenate([made, made])), made, atol=1e-6)


@pytest.mark.parametrize("wording", [WHOLE, WORDS])
def test_the_questions_of_others_stay_as_they_are(wording):
    made = units(1)
    assert np.array_equal(Reading(wording, ["how"], are_queries=True).vectors(made), made)
