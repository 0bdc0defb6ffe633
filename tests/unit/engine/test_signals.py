"""What each signal prefers; how much is for the benchmarks to say."""

from dataclasses import fields, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ranking import stored

from vector_index_mcp.engine import kinds
from vector_index_mcp.engine.ranking import signals
from vector_index_mcp.engine.ranking.query import Query
from vector_index_mcp.engine.ranking.signals import SIGNALS, Weights, context

WEIGHTS = Weights()


def factor(signal, query, chunk, *others, weights=WEIGHTS):
    """What `signal` makes of `chunk`, met among `others`."""
    ctx = context(Query(query), weights, [chunk, *others])
    return SIGNALS[signal](ctx, chunk)


def prefers(signal, query, better, worse):
    """Whether `signal` puts `better` before `worse` when both are met."""
    ctx = context(Query(query), WEIGHTS, [better, worse])
    return SIGNALS[signal](ctx, better) > SIGNALS[signal](ctx, worse)


# -- defines ---------------------------------------------------------------------------------


@pytest.mark.parametrize("symbol", ["parse_cookie", "parseCookie", "PARSE_COOKIE", "parse-cookie"])
@pytest.mark.parametrize("query", ["parse_cookie", "ParseCookie", "where is parse_cookie defined"])
def test_the_definition_of_an_identifier_is_preferred_in_any_spelling(query, symbol):
    assert factor("defines", query, stored("a", symbols=["other", symbol])) > 1


@pytest.mark.parametrize(
    ("query", "symbol"),
    [
        ("Foo::bar", "bar"),
        ("Foo.bar", "Foo.bar"),
        ("bar", "Foo.bar"),
        ("Foo#bar", "Foo::bar"),
        ("src\\Foo", "Foo"),
    ],
)
def test_a_qualified_name_is_compared_by_its_last_part(query, symbol):
    assert factor("defines", query, stored("a", symbols=[symbol])) > 1


@pytest.mark.parametrize(
    ("query", "symbol"),
    [
        ("parse cookie", "parseCookie"),
        ("the parse cookie function", "parse_cookie"),
        ("parse cookie function", "parse_cookie_function"),
        ("is node in tree", "_is_node_in_tree"),
    ],
)
def test_the_words_of_a_name_ask_for_its_definition(query, symbol):
    assert factor("defines", query, stored("a", symbols=[symbol])) > 1


@pytest.mark.parametrize(
    ("query", "symbol"),
    [
        ("how to parse cookie", "howToParseCookie"),
        ("parse cookie", "parse_cookies"),
        ("parse parseCookie cookie", "parseParseCookieCookie"),
        ("who parses a cookie from the header", "whoParsesACookieFromTheHeader"),
    ],
)
def test_a_question_is_no_name(query, symbol):
    assert factor("defines", query, stored("a", symbols=[symbol])) == 1


def test_of_methods_of_one_name_that_of_the_type_asked_for_is_preferred():
    own, other = (stored("a.go", symbols=[name]) for name in ("Mux.Close", "Tree.Close"))
    assert prefers("defines", "Mux.Close", own, other)
    assert prefers("defines", "Tree::Close", other, own)


def test_the_spelling_asked_for_is_preferred_to_another():
    same, other = (stored("a", symbols=[name]) for name in ("parse_cookie", "ParseCookie"))
    assert prefers("defines", "parse_cookie", same, other)
    assert prefers("defines", "ParseCookie", other, same)


@pytest.mark.parametrize(
    ("query", "symbols"),
    [
        ("parse_cookie", []),
        ("parse_cookie", ["parse_cookies", "cookie", "parse"]),
        ("how is a cookie parsed", ["cookie", "parsed"]),
        ("", ["parse_cookie"]),
    ],
)
def test_without_a_definition_of_what_is_asked_for_nothing_changes(query, symbols):
    assert factor("defines", query, stored("a", symbols=symbols)) == 1


@pytest.mark.parametrize("name", ["größe", "gro\u0308\u00dfe", "GRÖSSE", "grosse"])
def test_a_definition_is_met_in_any_spelling_of_unicode(name):
    for query in ("größe", "gro\u0308\u00dfe"):
        assert factor("defines", query, stored("a", symbols=[name])) > 1
    same, other = (stored("a", symbols=[n]) for n in ("gro\u0308\u00dfe", "grosse"))
    assert prefers("defines", "größe", same, other)


# -- part_of_name ----------------------------------------------------------------------------


@pytest.mark.parametrize("part", ["isTarn", "tarnPool", "is_tarn", "Tarn"])
def test_the_definition_of_a_name_is_preferred_for_a_part_of_it(part):
    whole, longer = (stored("a", symbols=[name]) for name in ("isTarnPool", "isTarnPoolOfOthers"))
    assert factor("part_of_name", part, whole) > factor("part_of_name", part, longer) > 1


@pytest.mark.parametrize(
    ("query", "symbol", "text"),
    [
        ("isTarn", "isTarnPool", "isTarn()"),  # it stands somewhere
        ("isTarn", "isTern", ""),
        ("ist", "isTarnPool", ""),
        ("where is isTarn called", "isTarnPool", ""),
    ],
)
def test_what_is_no_part_of_a_name_that_is_asked_for_changes_nothing(query, symbol, text):
    assert factor("part_of_name", query, stored("a", symbols=[symbol], text=text)) == 1


# -- holds -----------------------------------------------------------------------------------


@pytest.mark.parametrize("query", ["RACK_ENV", "rackEnv", "ENV.RACK_ENV", "rack-env"])
@pytest.mark.parametrize(
    "text", ["x = ENV['RACK_ENV']", "rackEnv()", "--rack-env", "MY_RACK_ENV_2"]
)
def test_an_identifier_is_met_in_any_spelling_where_it_is_only_used(query, text):
    held, parts = stored("a", text=text), stored("b", text="the env of the rack, an env of a rack")
    assert prefers("holds", query, held, parts)
    assert factor("holds", query, parts) == 1
    # The parts of the name cover less than the name.
    assert prefers("coverage", query, held, parts)


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("set", "reset the offset"),
        ("Log", "a catalogue, dialog"),
        ("0.0.0.0", "x = 0"),
        ("*.rb", "rb_define"),
        ("@@x", "x = 1"),
        ("$0", "0 0 0"),
        ("__FILE__", "the file"),
        ("RACK_ENV", "BRACK_ENV RACK_ENVS"),
    ],
)
def test_a_part_of_a_word_and_a_name_too_short_hold_nothing(query, text):
    assert factor("holds", query, stored("a", text=text)) == 1


@pytest.mark.parametrize("text", ["url_for(x)", "UrlFor", "flask.URL-FOR", "my_url_for_2"])
def test_a_name_that_is_run_together_is_held_as_it_is_spelled(text):
    assert factor("holds", "urlfor", stored("a", text=text)) > 1
    assert factor("holds", "urlfor", stored("a", text="curl_for url_form url_ for")) == 1


def test_the_spelling_that_is_asked_for_is_held_more_than_another():
    same, other = stored("a", text="RACK_ENV"), stored("b", text="rack_env")
    assert prefers("holds", "RACK_ENV", same, other)
    assert prefers("holds", "rack_env", other, same)


def test_a_question_holds_no_identifier():
    assert factor("holds", "how is RACK_ENV read at the start", stored("a", text="RACK_ENV")) == 1


@pytest.mark.parametrize("text", ["ein größerer Wert", "ein gro\u0308\u00dferer Wert"])
def test_words_and_quotations_are_met_in_any_spelling_of_unicode(text):
    assert prefers("coverage", "GRÖSSERER Wert", stored("a", text=text), stored("a", text="Wert"))
    assert prefers("quoted", "'größerer Wert'", stored("a", text=text), stored("a", text="Wert"))


@pytest.mark.parametrize(
    ("query", "key", "named"),
    [
        ("caf\u00e9.py", "src/cafe\u0301.py", True),
        ("/home/ada/shop/src/app.py:12", "src/app.py", True),
        ("/home/ada/shop/app.py", "app.py", False),  # it may be another one
        ("/home/ada/shop/src/app.py", "rc/app.py", False),
        ("where is pages/[id].tsx", "web/pages/[id].tsx", True),
    ],
)
def test_a_file_is_named_as_logs_and_other_systems_write_it(query, key, named):
    assert (factor("named", query, stored(key)) > 1) == named


# -- path, coverage --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("better", "worse"),
    [
        ("src/cookie.py", "src/other.py"),
        ("cookie/a.py", "other/a.py"),
        ("src/CookieJar.py", "src/cookie.py"),
        ("src/parse_cookies.py", "src/other.py"),
    ],
)
def test_a_path_that_is_called_what_is_asked_for_is_preferred(better, worse):
    assert prefers("path", "how the cookie jar works", stored(better), stored(worse))


def test_an_extension_is_no_name():
    assert factor("path", "python py files", stored("src/main.py")) == 1


def test_a_text_that_covers_more_of_the_query_is_preferred():
    more = stored("a", text="the cookie in its jar")
    less = stored("b", text="cookie cookie cookie cookie")
    assert prefers("coverage", "how the cookie jar works", more, less)


@pytest.mark.parametrize("text", ["Cookies", "COOKIE", "parseCookie", "cookielib"])
def test_inflections_and_cases_of_a_word_cover_it(text):
    assert factor("coverage", "cookie", stored("a", text=text), stored("b")) > 1


@pytest.mark.parametrize("signal", ["path", "coverage"])
def test_a_rare_word_tells_more_than_a_common_one(signal):
    rare = stored("quokka.py", text="quokka")
    common = stored("handle.py", text="handle")
    others = [stored(f"{number}.txt", text="handle") for number in range(20)]
    ctx = context(Query("quokka handle"), WEIGHTS, [rare, common, *others])
    assert SIGNALS[signal](ctx, rare) > SIGNALS[signal](ctx, common) > 1


@pytest.mark.parametrize("signal", ["path", "coverage"])
@pytest.mark.parametrize("query", ["", "???", "cookie"])
def test_where_no_word_is_met_nothing_changes(signal, query):
    assert factor(signal, query, stored("a.py", text="x", symbols=["y"])) == 1


# -- named, quoted ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "key"),
    [
        ("what does src/app.py do", "src/app.py"),
        ("src/app.py", "lib/src/app.py"),
        ("./src/app.py", "src/app.py"),
        ("../src/app.py", "src/app.py"),
        ("/src/app.py", "src/app.py"),
        ("the rules in .gitignore", ".gitignore"),
        (".github/workflows/test.yml", ".github/workflows/test.yml"),
        ("(see `app.py`)", "src/app.py"),
    ],
)
def test_the_file_that_the_query_names_is_preferred(query, key):
    assert factor("named", query, stored(key)) > 1


@pytest.mark.parametrize(
    ("query", "key"),
    [
        ("app.py", "src/myapp.py"),
        ("src/app.py", "src/app.pyi"),
        ("src/app.py", "app.py"),
        ("what does the app do", "app"),
    ],
)
def test_a_file_of_a_similar_name_is_not_the_one_named(query, key):
    assert factor("named", query, stored(key)) == 1


@pytest.mark.parametrize("quotes", ['"{}"', "'{}'", "`{}`"])
def test_a_text_that_holds_what_is_quoted_is_preferred(quotes):
    query = f"who says {quotes.format('No such file')} and why"
    assert factor("quoted", query, stored("a", text="raise X('No such file')")) > 1
    assert factor("quoted", query, stored("a", text="no such file")) == 1
    assert factor("quoted", query, stored("a", text="file such No")) == 1


@pytest.mark.parametrize(
    ("text", "has"),
    [
        *(
            (text, True)
            for text in ("1.2.3", "v1.2.3.", "..1.2.3..", "a-1.2.3.tar", "11.2.3 1.2.3")
        ),
        *((text, False) for text in ("1.2.34", "11.2.3", "1.2.3.4", "0.1.2.3", "1.2.3.4, 0.1.2.3")),
    ],
)
def test_the_number_of_a_release_is_no_part_of_a_longer_one(text, has):
    assert (factor("numbered", "what changed in 1.2.3", stored("a", text=text)) > 1) is has


def test_without_quotes_nothing_is_quoted():
    assert factor("quoted", "no such file", stored("a", text="no such file")) == 1


# -- kind_of_file ----------------------------------------------------------------------------

OF_KIND = {
    kinds.TEST: ("tests/test_a.py", "python", "the tests of cookies"),
    kinds.EXAMPLE: ("examples/a.py", "python", "an example of cookies"),
    kinds.DOCS: ("guide.md", "markdown", "the documentation of cookies"),
    kinds.GENERATED: ("a_pb2.py", "python", "the generated cookies"),
    kinds.VENDORED: ("vendor/a.py", "python", "the vendored cookies"),
    kinds.DEPRECATED: ("legacy/a.py", "python", "the deprecated cookies"),
    kinds.DECLARATIONS: ("a.d.ts", "typescript", "the typings of cookies"),
    kinds.DATA: ("a.json", "json", "the settings of cookies"),
}


@pytest.mark.parametrize("kind", OF_KIND)
def test_what_is_not_the_real_thing_yields_unless_it_is_asked_for(kind):
    key, language, asking = OF_KIND[kind]
    chunk = stored(key, language=language)
    assert factor("kind_of_file", "where are cookies parsed", chunk) < 1
    assert factor("kind_of_file", asking, chunk) == 1


def test_a_test_yields_less_to_a_query_that_names_tests_without_asking_for_them():
    chunk = stored("tests/test_a.py")
    named = factor("kind_of_file", "resume at the first test that failed", chunk)
    assert factor("kind_of_file", "where are cookies parsed", chunk) < named < 1


def test_a_file_that_only_passes_names_on_yields():
    assert factor("kind_of_file", "where are cookies parsed", stored("a/__init__.py")) < 1


def test_a_file_that_defines_much_is_real_whatever_it_is_called():
    query = "where are cookies parsed"
    large = {"total_chunks": 4, "symbols": ["parse"]}
    for key in ("a/__init__.py", "src/mod.rs", "lib/index.js"):
        assert factor("kind_of_file", query, stored(key, **large)) == 1
        assert factor("kind_of_file", query, stored(key, **large | {"total_chunks": 3})) < 1
        assert factor("kind_of_file", query, stored(key, **large | {"symbols": []})) < 1


@pytest.mark.parametrize(
    ("language", "scope", "is_test"),
    [
        ("rust", "module tests", True),
        ("rust", "module a › module test › function works", True),
        ("rust", "module testing", False),
        ("rust", "function tests", False),
        ("ruby", "module tests", False),
    ],
)
def test_unit_tests_beside_what_they_test_yield_as_others(language, scope, is_test):
    query = "where are cookies parsed"
    inside = factor("kind_of_file", query, stored("src/a.rs", language=language, scope=scope))
    apart = factor("kind_of_file", query, stored("tests/a.rs", language=language))
    assert inside == (apart if is_test else 1)


def test_a_file_of_two_kinds_yields_twice():
    query = "where are cookies parsed"
    both = factor("kind_of_file", query, stored("vendor/tests/a.py"))
    assert both < min(
        factor("kind_of_file", query, stored(key)) for key in ("vendor/a.py", "tests/a.py")
    )
    assert factor("kind_of_file", "vendored tests", stored("vendor/tests/a.py")) == 1


def test_ordinary_code_does_not_yield():
    assert factor("kind_of_file", "where are cookies parsed", stored("src/cookies.py")) == 1


def test_every_kind_has_a_weight_that_lowers():
    every = {value for name, value in vars(kinds).items() if name.isupper() and name[0] != "_"}
    assert every <= {field.name for field in fields(Weights)}
    assert all(0 < getattr(WEIGHTS, kind) < 1 for kind in every)


# -- all of them -----------------------------------------------------------------------------

chunks = st.builds(
    stored,
    st.sampled_from(["cookie/jar.py", "tests/cookie.py", "a", ".gitignore"]),
    text=st.text("cokie jar'\n", max_size=30),
    scope=st.sampled_from(["", "class CookieJar"]),
    symbols=st.lists(st.sampled_from(["parse_cookie", "CookieJar", "_", "$", ""]), max_size=2),
)
queries = st.sampled_from(["parse_cookie", "where is the cookie jar", "'cookie' in a.py", "", "$"])


@given(queries, chunks)
def test_every_factor_is_finite_and_positive(query, chunk):
    for name in SIGNALS:
        assert 0 < factor(name, query, chunk) < 100


@given(queries, chunks)
def test_a_signal_of_no_strength_changes_nothing(query, chunk):
    strengths = {f.name for f in fields(Weights) if f.name.split("_")[0] in SIGNALS}
    without = replace(WEIGHTS, **dict.fromkeys(strengths, 0.0))
    for name in strengths & set(SIGNALS):
        assert factor(name, query, chunk, weights=without) == 1


@pytest.mark.parametrize(
    ("word", "prefix"),
    [
        *(("retries", "retri"), ("retried", "retri"), ("retry", "retry")),
        *(("authenticate", "authe"), ("authentication", "authe"), ("get", "get")),
        *(("diffs", "diff"), ("class", "class"), ("bus", "bus"), ("this", "this")),
    ],
)
def test_a_word_and_most_of_its_inflections_have_one_prefix(word, prefix):
    assert signals.prefix_of(word) == prefix
