"""A document has a URI and a short name, and either leads back to it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vector_index_mcp.documents.uris import docid_of, hash_asked, key_of, uri_of

HASH = "abc123" + "0" * 58


@pytest.mark.parametrize(
    ("key", "uri"),
    [
        ("docs/readme.md", "qmd://docs/readme.md"),
        ("docs/a b.md", "qmd://docs/a%20b.md"),
        ("docs/ä&b=c?#.md", "qmd://docs/%C3%A4%26b%3Dc%3F%23.md"),
        ("docs/-_.!~*'().md", "qmd://docs/-_.!~*'().md"),
        ("docs/100%.md", "qmd://docs/100%25.md"),
        ("docs/[a],{b};c:d@e+f$.md", "qmd://docs/%5Ba%5D%2C%7Bb%7D%3Bc%3Ad%40e%2Bf%24.md"),
        ("docs/😀.md", "qmd://docs/%F0%9F%98%80.md"),
        ("docs/\udcff.md", "qmd://docs/%FF.md"),
        ("docs/a\nb\0.md", "qmd://docs/a%0Ab%00.md"),
    ],
)
def test_what_urls_reserve_is_escaped_and_slashes_are_not(key, uri):
    assert uri_of(key) == uri
    assert key_of(uri) == key


@pytest.mark.parametrize(
    ("uri", "key"),
    [
        ("qmd://docs%2Fmeetings%2Fa.md", "docs/meetings/a.md"),
        ("docs/a%20b.md", "docs/a b.md"),
        ("qmd://docs/100%.md", "docs/100%.md"),
        ("qmd://docs/%zz", "docs/%zz"),
        ("qmd://", ""),
    ],
)
def test_other_ways_to_write_a_uri_are_read(uri, key):
    assert key_of(uri) == key


@given(st.text())
def test_every_key_comes_back(key):
    key = key.encode("utf-8", "surrogatepass").decode("utf-8", "surrogateescape")
    assert key_of(uri_of(key)) == key
    assert uri_of(key).isascii()


@pytest.mark.parametrize(
    "written", ["#abc123", "abc123", "ABC123", '"#abc123"', "'abc123'", "`#abc123`", " abc123\n"]
)
def test_a_short_name_is_understood_as_people_write_it(written):
    assert docid_of(HASH) == "#abc123"
    assert hash_asked(written) == "abc123"


def test_more_digits_are_more_exact():
    assert hash_asked("#" + HASH) == HASH


@pytest.mark.parametrize(
    "written",
    ["", "#", "abc12", "abc12g", "##abc123", "abc123.md", "a/abc123", "a" * 65, "abc１２３"],
)
def test_what_is_no_short_name(written):
    assert hash_asked(written) == ""


@pytest.mark.slow
def test_no_text_takes_long():
    assert hash_asked("a" * 1_000_000) == ""
    assert len(key_of("qmd://" + "%C3%A4" * 100_000)) == 100_000
