"""What a query asks for, told by its wording alone."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from vector_index_mcp.engine import kinds
from vector_index_mcp.engine.query import Query


@pytest.mark.parametrize(
    ("text", "symbols"),
    [
        ("parse_cookie", {"parsecookie"}),
        ("parseCookie", {"parsecookie"}),
        ("HTTPServer", {"httpserver"}),
        ("retry", {"retry"}),
        ("where is parse_cookie defined", {"parsecookie"}),
        ("Where is the class ShoppingCart defined?", {"shoppingcart"}),
        ("definition of `get_user`", {"getuser"}),
        ("find function getUser", {"getuser"}),
        ("class Foo", {"foo"}),
        ("addItem removeItem", {"additem", "removeitem"}),
        ("Foo::bar", {"bar"}),
        ("flask.sessions.SecureCookie", {"securecookie"}),
        ("Widget#render method", {"render"}),
        ("get-user-name", {"getusername"}),
        ("$scope", {"scope"}),
        ("__init__", {"init"}),
        ("_private", {"private"}),
    ],
)
def test_an_identifier_is_asked_for_whatever_filler_stands_beside_it(text, symbols):
    query = Query(text)
    assert query.symbols == symbols
    assert query.is_symbol


@pytest.mark.parametrize(
    ("text", "symbols"),
    [
        ("where are retries with backoff handled", set()),
        ("http server", set()),
        ("what does get_user return when the session is gone", {"getuser"}),
        ("how does ShoppingCart compute the total", {"shoppingcart"}),
        ("user_id order_id item_id cart_id", {"userid", "orderid", "itemid", "cartid"}),
        ("where is the class defined", set()),
        ("function", set()),
        ("", set()),
        ("???", set()),
    ],
)
def test_a_sentence_is_no_identifier_but_may_hold_some(text, symbols):
    query = Query(text)
    assert query.symbols == symbols
    assert not query.is_symbol


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("What does parse_cookie(value) do?", ["What", "does", "parse_cookie", "value", "do"]),
        ("see `a.b`, then [c].", ["see", "a.b", "then", "c"]),
        ("x: y::z.", ["x", "y::z"]),
        ("...", []),
    ],
)
def test_tokens_are_the_words_as_typed_without_punctuation(text, tokens):
    assert Query(text).tokens == tokens


def test_the_definition_of_an_identifier_is_matched_besides_its_words():
    assert Query("parse_cookie").matched == ["parsecookie", "parse", "cookie", "=parsecookie"]
    assert Query("Foo::barBaz").matched[-1] == "=barbaz"
    assert not any(word.startswith("=") for word in Query("retries with backoff").matched)


def test_the_subject_has_each_idea_once():
    query = Query("the user name is shown")
    assert "username" in query.words
    assert query.subject == ["user", "name", "shown"]


@pytest.mark.parametrize(
    ("text", "paths"),
    [
        ("what is in src/flask/app.py for", ["src/flask/app.py"]),
        ("see README.md", ["README.md"]),
        ("./src/a.ts and ../b/c.ts", ["src/a.ts", "b/c.ts"]),
        ("/src/app.py", ["src/app.py"]),
        ("src/components", ["src/components"]),
        (".gitignore", [".gitignore"]),
        (".github/workflows/ci.yml", [".github/workflows/ci.yml"]),
        ("`lib/a-b_c@2+.js`", ["lib/a-b_c@2+.js"]),
        ("parse_cookie", []),
        ("version 1.2", []),
        ("how does it end.", []),
        ("std::vector", []),
        ("ключ/файл.py", ["ключ/файл.py"]),
    ],
)
def test_paths_are_the_tokens_that_name_a_file(text, paths):
    assert Query(text).paths == paths


@pytest.mark.parametrize(
    ("text", "phrases"),
    [
        ('who says "No such file" here', ["No such file"]),
        ("who says 'No such file' here", ["No such file"]),
        ("who says `No such file` here", ["No such file"]),
        ("\"one\" and 'two' and `three`", ["one", "two", "three"]),
        ("it's the user's name", []),
        ("an unclosed \" quote", []),
        ('"x"', []),
        ("no quotes", []),
    ],
)  # fmt: skip
def test_phrases_are_what_stands_in_quotes(text, phrases):
    assert Query(text).phrases == phrases


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        ("Tests of the parser", {kinds.TEST}),
        ("which mocks and fixtures are there", {kinds.TEST}),
        ("an example of usage", {kinds.EXAMPLE}),
        ("the README, please", {kinds.DOCS}),
        ("old vendored code", {kinds.DEPRECATED, kinds.VENDORED}),
        ("where is the YAML config", {kinds.DATA}),
        ("type stubs", {kinds.DECLARATIONS}),
        ("the latest contest", set()),
        ("where are retries handled", set()),
        ("test_client", set()),
    ],
)
def test_the_kinds_of_files_that_a_query_asks_for(text, asked):
    assert Query(text).kinds == asked


@given(st.text(max_size=60))
@example("-> :: . / \\ # $ _")
@example('"\'`"')
@example("a/" * 30 + "!")
@example("\ud800")
def test_every_text_is_a_query(text):
    query = Query(text)
    assert len(query.identifiers) <= len(query.tokens)
    assert set(query.subject) <= set(query.words) <= set(query.matched)
    assert not query.is_symbol or query.identifiers
    assert all(word.split() == [word] for word in query.matched)
    assert all(not path.startswith(("/", "./", "../")) for path in query.paths)
    assert all(phrase in text for phrase in query.phrases)
