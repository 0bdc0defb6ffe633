import pytest
from hypothesis import given
from hypothesis import strategies as st

from vector_index_mcp.engine.models.embedding_requests import requests_of_equal_work

texts = st.lists(st.integers(0, 3_000).map(lambda size: "x" * size), max_size=60)


@pytest.mark.slow
@given(texts)
def test_every_text_is_in_one_request(found):
    keys = [key for request in requests_of_equal_work(dict(enumerate(found))) for key in request]

    assert sorted(keys) == list(range(len(found)))


@given(texts)
def test_a_request_is_no_more_work_than_eight_texts_of_full_length(found):
    for request in requests_of_equal_work(dict(enumerate(found))):
        longest = max(min(len(found[key]), 1_000) for key in request)
        assert len(request) == 1 or longest * len(request) <= 8_000


def test_texts_of_like_length_are_together():
    found = {"a": "x" * 1_000, "b": "y", "c": "z" * 999, "d": "w"}

    assert list(requests_of_equal_work(found)) == [["b", "d", "c", "a"]]
    assert list(requests_of_equal_work({str(n): "x" * 2_000 for n in range(20)})) == [
        [str(n) for n in range(8)],
        [str(n) for n in range(8, 16)],
        [str(n) for n in range(16, 20)],
    ]


def test_short_texts_share_a_request():
    found = dict.fromkeys(range(100), "x" * 80)

    assert [len(request) for request in requests_of_equal_work(found)] == [100]
