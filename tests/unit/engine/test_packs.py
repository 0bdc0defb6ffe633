"""A pack gives back what was written, and nothing that makes no sense, whatever its bytes are."""

from hashlib import sha256

import numpy as np
import pytest
from drawn import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from vector_index_mcp.engine.models import packs
from vector_index_mcp.engine.models.packs import Shape, Span
from vector_index_mcp.engine.types import ModelIdentity

MODEL = ModelIdentity("model", "ab" * 32, 16)
OTHER = ModelIdentity("model", "cd" * 32, 16)


def key(number):
    return sha256(str(number).encode()).hexdigest()


def vectors(count, dimension=16):
    rows = np.random.default_rng(count).normal(size=(count, dimension))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return {key(n): row.astype("<f4") for n, row in enumerate(rows)}


def read(data, wanted, model=MODEL):
    """What a reader finds of `wanted`; None if it takes `data` for no pack."""
    shape = packs.size_fits(len(data), model)
    if shape is None or not packs.is_head_of(data, model, shape):
        return None
    rows = packs.rows_of(data, shape, list(wanted))
    spans = packs.spans_of(sorted(rows.values()), shape)
    places = [(span, *span.place(shape)) for span in spans]
    pieces = [(span, data[start : start + length]) for span, start, length in places]
    return packs.vectors_in(pieces, rows, shape)


@pytest.mark.parametrize("count", [1, 2, 3_000])
def test_what_is_written_is_found_again(count):
    written = vectors(count)
    found = read(packs.pack_of(MODEL, written), [*written, key("unknown")])
    assert found.keys() == written.keys()
    for each, vector in found.items():
        assert vector.dtype == np.dtype("<f4")
        assert vector @ written[each] > 0.999_999
        assert abs(np.linalg.norm(vector) - 1) < 1e-6


def test_a_pack_holds_hashes_and_numbers_and_nothing_else():
    written = vectors(5)
    data = packs.pack_of(MODEL, written)
    assert len(data) == 64 + 5 * (32 + 16 * 2)
    shape = packs.size_fits(len(data), MODEL)
    assert packs.hashes_in(data, shape) == sorted(written)


def test_only_what_is_asked_for_is_found():
    written = vectors(100)
    some = list(written)[::7]
    assert read(packs.pack_of(MODEL, written), some).keys() == set(some)


@pytest.mark.parametrize(
    "model", [OTHER, ModelIdentity("model", "ab" * 32, 8), ModelIdentity("model", "ab" * 32, 32)]
)
def test_a_pack_of_another_model_is_none(model):
    written = vectors(10)
    assert read(packs.pack_of(MODEL, written), written, model) is None


@pytest.mark.parametrize(
    "row",
    [
        np.full(16, np.nan),
        np.full(16, np.inf),
        np.zeros(16),
        np.full(16, 1e-7),
        np.full(16, 60_000.0),
        np.full(16, 0.26),  # 1.04 long
    ],
    ids=["nan", "infinite", "zero", "tiny", "huge", "too long"],
)
def test_a_vector_that_no_model_makes_is_missing(row):
    written = vectors(10)
    bad = list(written)[3]
    found = read(packs.pack_of(MODEL, {**written, bad: row}), written)
    assert found.keys() == written.keys() - {bad}


def test_hashes_that_begin_alike_are_told_apart():
    one, other = "ab" * 8 + "00" * 24, "ab" * 8 + "01" * 24
    row = next(iter(vectors(1).values()))
    assert read(packs.pack_of(MODEL, {one: row}), [other]) == {}


def test_what_is_too_large_is_not_read():
    largest = (packs.MOST_BYTES - 64) // (32 + 32)
    assert packs.size_fits(64 + largest * 64, MODEL) is not None
    assert packs.size_fits(64 + (largest + 1) * 64, MODEL) is None
    for model in (MODEL, ModelIdentity("m", "ab" * 32, 4_096)):
        written = packs.most_rows(model) * (32 + 2 * model.dimension)
        assert packs.size_fits(64 + written, model) is not None


@pytest.mark.slow
@given(st.integers(0, 64 + 3 * 64), st.binary(max_size=300))
@settings(max_examples=examples(500))
def test_what_is_cut_off_or_overwritten_never_gives_a_vector_that_makes_no_sense(cut, garbage):
    written = vectors(3)
    data = packs.pack_of(MODEL, written)
    for damaged in (data[:cut], data[:cut] + garbage, data[:cut] + garbage + data[cut:], garbage):
        for vector in (read(damaged, written) or {}).values():
            assert abs(np.linalg.norm(vector) - 1) < 1e-5


def test_a_piece_that_is_too_short_gives_nothing():
    written = vectors(4)
    data = packs.pack_of(MODEL, written)
    shape = packs.size_fits(len(data), MODEL)
    rows = packs.rows_of(data, shape, list(written))
    start, length = Span(0, 3).place(shape)
    short = data[start : start + length - 1]
    assert packs.vectors_in([(Span(0, 3), short)], rows, shape) == {}


def test_what_lies_close_together_is_read_at_once():
    shape = Shape(100_000, 384)
    assert packs.spans_of([5, 6, 7, 40, 5_000], shape) == [Span(5, 40), Span(5_000, 5_000)]


def test_a_pack_is_read_whole_if_much_of_it_is_wanted_be_it_little_by_little():
    shape = Shape(30_000, 384)
    few = packs.cost_of(packs.spans_of(range(0, 30_000, 3_000), shape), shape)
    many = packs.cost_of(packs.spans_of(range(0, 8_000), shape), shape)
    assert not packs.is_better_whole(few, shape)
    assert packs.is_better_whole(many, shape)
    assert packs.is_better_whole(20 * few, shape)
