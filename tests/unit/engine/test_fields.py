"""What the two searches see of a chunk beside its own text."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vector_index_mcp.engine.ranking.query import Query
from vector_index_mcp.engine.text.fields import chunk_hash, embedded_text, entries, symbol_word
from vector_index_mcp.engine.types import Chunk


def matched(key, text="", scope="", symbols=()):
    return Counter(entries(key, [Chunk(text, 1, 1, scope, symbols)])[0].search_text.split(" "))


def test_the_model_sees_the_file_and_what_encloses_the_text():
    assert embedded_text("src/a.py", "class Foo", "x = 1\n") == "a.py class Foo\nx = 1\n"
    assert embedded_text("src/a.py", "", "x = 1\n") == "a.py\nx = 1\n"


def test_a_moved_folder_embeds_nothing_anew():
    assert chunk_hash("src/a.py", "class Foo", "x") == chunk_hash("lib/b/a.py", "class Foo", "x")


@pytest.mark.parametrize(
    "other", [("b.py", "class Foo", "x"), ("a.py", "class Bar", "x"), ("a.py", "class Foo", "y")]
)
def test_what_the_model_would_see_otherwise_has_another_hash(other):
    assert chunk_hash("a.py", "class Foo", "x") != chunk_hash(*other)


texts = st.text(max_size=20)


@given(texts, texts, texts, texts, texts, texts)
def test_hashes_are_equal_only_for_equal_embedded_texts(key, scope, text, key2, scope2, text2):
    one, other = (key, scope, text), (key2, scope2, text2)
    same_text = embedded_text(*one) == embedded_text(*other)
    assert (chunk_hash(*one) == chunk_hash(*other)) == same_text


def test_text_that_is_no_valid_unicode_has_a_hash():
    assert len(chunk_hash("a", "", "\ud800")) == 64


@pytest.mark.parametrize(
    ("chunk", "word"),
    [
        ({"key": "src/userStore.py"}, "userstore"),
        ({"key": "src/userStore.py"}, "py"),
        ({"key": "auth/session/a.py"}, "session"),
        ({"key": "a", "scope": "class ShoppingCart › function addItem"}, "additem"),
        ({"key": "a", "scope": "class ShoppingCart › function addItem"}, "cart"),
        ({"key": "a", "symbols": ("addItem",)}, "item"),
        ({"key": "a", "symbols": ("addItem",)}, "=additem"),
        ({"key": "a", "symbols": ("Cart::add_item",)}, "=additem"),
        ({"key": "a", "text": "removeAll()"}, "removeall"),
    ],
)
def test_full_text_sees_path_scope_symbols_and_text(chunk, word):
    assert matched(**chunk)[word] >= 1


def test_names_weigh_more_than_mentions():
    mentioned = matched("a", text="cookie")["cookie"]
    assert matched("a", symbols=("cookie",))["cookie"] > mentioned
    assert matched("cookie.py")["cookie"] > mentioned


def test_only_the_nearest_folders_are_seen():
    words = matched("outermost/b/c/d/e.py")
    assert not words["outermost"]
    assert all(words[folder] for folder in "bcd")


def test_only_definitions_are_found_as_such():
    assert not matched("a", text="add_item = addItem", scope="function addItem")["=additem"]


@pytest.mark.parametrize("query", ["addItem", "add_item", "ADD-ITEM", "Cart.addItem", "x::AddItem"])
@pytest.mark.parametrize("symbol", ["addItem", "add_item", "Cart::add_item", "AddItem"])
def test_a_query_for_a_symbol_asks_for_the_word_of_its_definition(query, symbol):
    assert matched("a", symbols=(symbol,))[Query(query).matched[-1]] == 1


def test_a_symbol_word_is_no_word_of_any_text():
    assert symbol_word("add_item") == "=additem"
    assert not matched("=additem", text="x =additem", scope="=additem")["=additem"]


@given(texts, texts, texts, st.lists(texts, max_size=3))
def test_matched_words_are_separated_by_single_spaces(key, scope, text, symbols):
    words = entries(key, [Chunk(text, 1, 1, scope, tuple(symbols))])[0].search_text
    assert words.split() == ([] if not words else words.split(" "))
