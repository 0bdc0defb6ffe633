"""One thing is one thing in our sentences, and large numbers can be read."""

import pytest

from vector_index_mcp.counts import counted


@pytest.mark.parametrize(
    ("number", "words"), [(0, "0 files"), (1, "1 file"), (2, "2 files"), (12_345, "12,345 files")]
)
def test_a_number_has_its_noun(number, words):
    assert counted(number, "file") == words
