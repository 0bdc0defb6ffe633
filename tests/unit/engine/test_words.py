"""Any spelling of a name meets any other, in texts and in queries."""

from itertools import permutations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from vector_index_mcp.engine.words import MAX_WORD_CHARS, places, query_words, words

SPELLINGS = [
    [
        "getUserName",
        "get_user_name",
        "get-user-name",
        "GET_USER_NAME",
        "GetUserName",
        "get__userName",
    ],
    ["HTTPServerError", "http_server_error", "HttpServerError", "HTTP-Server-Error"],
    ["utf8", "utf-8", "UTF_8"],
    ["parseURL2JSON", "parse_url_2_json", "ParseUrl2Json"],
    ["__init_subclass__", "initSubclass", "init-subclass"],
    ["größeInBytes", "größe_in_bytes", "Größe-In-Bytes"],
    ["имяФайла", "имя_файла"],
]
parts_of_names = st.lists(st.from_regex(r"[a-z]{2,8}", fullmatch=True), min_size=2, max_size=6)


@pytest.mark.parametrize(
    ("spelling", "other"), [pair for group in SPELLINGS for pair in permutations(group, 2)]
)
def test_every_spelling_of_a_name_meets_every_other(spelling, other):
    assert set(words(spelling)) & set(query_words(other))


@pytest.mark.parametrize(
    ("spelling", "other"), [pair for group in SPELLINGS[:4] for pair in permutations(group, 2)]
)
def test_spellings_of_a_name_are_the_same_words(spelling, other):
    assert words(spelling) == words(other)


@given(parts_of_names)
def test_the_whole_name_is_a_word_however_it_is_spelled(parts):
    camel = parts[0] + "".join(part.capitalize() for part in parts[1:])
    whole = "".join(parts)
    for spelling in (camel, "_".join(parts), "-".join(parts).upper(), "__".join(parts)):
        assert words(spelling) == [whole, *parts]


@given(parts_of_names)
def test_a_query_in_words_meets_the_identifier(parts):
    camel = "".join(part.capitalize() for part in parts)
    assert set(query_words(" ".join(parts))) & set(words(camel))


@pytest.mark.parametrize(
    ("query", "identifier"),
    [
        ("user name", "userName"),
        ("get user name", "get_user_name"),
        ("where is the user name?", "userName"),
        ('"user name".', "UserName"),
        ("utf 8", "utf8"),
        ("http server", "HTTPServer"),
    ],
)
def test_neighbours_in_a_query_are_also_one_name(query, identifier):
    assert words(identifier)[0] in query_words(query)


def test_four_neighbours_are_not_joined():
    assert "abcdefgh" not in query_words("ab cd ef gh")


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("where is the timeout set?", ["timeout", "set", "timeoutset"]),
        ("How do we parse a URL", ["parse", "url", "parseurl"]),
        ("the, timeout!", ["timeout"]),
        ("what is this", ["what", "is", "this", "whatis", "isthis", "whatisthis"]),
        ("what ?", ["what"]),
        ("get", ["get"]),
        ("if", ["if"]),
        ("???", []),
        ("", []),
        (" \t\n", []),
        ("name name", ["name", "namename"]),
    ],
)
def test_a_query_loses_its_grammar_but_never_all_its_words(query, expected):
    assert query_words(query) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("用户名称", ["用户", "户名", "名称"]),
        ("用", ["用"]),
        ("ユーザー", ["ユー", "ーザ", "ザー"]),
        ("사용자", ["사용", "용자"]),
        ("用户name", ["用户name", "用户", "name"]),
    ],
)
def test_scripts_without_spaces_are_cut_into_pairs(text, expected):
    assert words(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("sha256", ["sha256", "sha", "256"]),
        ("v1.2", ["v1", "v", "1", "2"]),
        ("0xFF", ["0xff", "0", "x", "ff"]),
        ("42", ["42"]),
        ("a,b;c", ["a", "b", "c"]),
        ("don't", ["don", "t"]),
        ("naïve", ["naïve", "na", "ï", "ve"]),
        ("", []),
        ("-- __ !", []),
    ],
)
def test_words_stand_in_reading_order_with_repeats(text, expected):
    assert words(text) == expected
    assert words(f"{text} {text}") == expected * 2


@pytest.mark.parametrize("letter", ["a", "7", "A"])
def test_a_run_too_long_to_be_a_word_is_dropped(letter):
    assert words(letter * MAX_WORD_CHARS) == [letter.lower() * MAX_WORD_CHARS]
    assert words(letter * (MAX_WORD_CHARS + 1)) == []


def test_a_name_too_long_to_be_a_word_is_known_by_its_parts():
    parts = ["alpha", "beta", "gamma"] * 6
    assert words("_".join(parts)) == parts


@given(st.text())
@example("İ" * 40)
@example("ſtrange ﬁ Ⅷ ² ½ ٣")
@example("a\u2028b\u00a0c\x1cd\x85e")
@example("\ud800\udfff")
def test_no_text_yields_a_word_with_white_space_or_without_bound(text):
    for word in [*words(text), *query_words(text)]:
        assert word.split() == [word]
        assert len(word) <= MAX_WORD_CHARS


@given(st.text())
def test_a_query_names_each_word_once(text):
    found = query_words(text)
    assert len(found) == len(set(found))


@given(st.from_regex(r"[a-zA-Z_\- .,(){}]*", fullmatch=True))
def test_the_words_of_words_are_the_same_words(text):
    assert set(words(" ".join(words(text)))) == set(words(text))


def test_places_are_those_of_identifiers_with_a_wanted_word():
    text = "def getUserName(user): return USER_NAME"
    found = [text[start:end] for start, end in places(text, {"user", "absent"})]
    assert found == ["getUserName", "user", "USER_NAME"]
    assert list(places(text, frozenset())) == []
