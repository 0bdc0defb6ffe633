"""Any spelling of a name meets any other, in texts and in queries."""

from itertools import permutations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from vector_index_mcp.engine.text.words import (
    MAX_WORD_CHARS,
    joined,
    places,
    query_words,
    without_ending,
    words,
)

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
    ["имяФайла", "имя_файла", "ИмяФайла", "ИМЯ_ФАЙЛА"],
    ["όνομαΑρχείου", "ονομα_αρχειου"],
    ["straßenname", "strassenname", "STRASSENNAME", "Straßenname", "STRAẞENNAME"],
    ["getＵｓｅｒ", "get_user", "ｇｅｔ-user"],
    ["foobar", "foo\u200bbar", "foo\u00adbar", "\ufefffoobar", "foo\u2060bar", "FOO\u200dBAR"],
    ["fileName", "ﬁle_name", "ﬁleName"],
    ["caféAuLait", "cafe\u0301_au_lait", "cafe-au-lait"],
    ["İstanbul", "istanbul", "ISTANBUL", "ıstanbul", "i\u0307stanbul"],
    ["ὈΔΥΣΣΕΎΣ", "οδυσσευς", "οδυσσεύσ"],
    ["كتاب", "كتـــاب", "كِتَاب", "ﻛﺘﺎﺏ"],
    ["שלום", "שָׁלוֹם"],
    ["ガード", "ｶﾞｰﾄﾞ", "カ\u3099ード"],
    ["한글", "\u1112\u1161\u11ab\u1100\u1173\u11af"],
    ["x2", "x²", "x_２", "x٢"],
    ["👍", "👍🏽", "👍\ufe0f"],
    ["❤", "❤\ufe0f", "❤\ufe0e"],
    ["👩‍💻", "👩🏽‍💻"],
    ["🇩🇪", "🇩🇪"],
    ["1️⃣", "1\u20e3"],
    ["डेटा_फ़ाइल", "डेटा-फ\u093cाइल"],
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


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("mergePDFs", ["mergepdfs", "merge", "pdfs", "pdf"]),
        ("URLs", ["urls", "url"]),
        ("HTTPServers", ["httpservers", "http", "servers"]),
        ("isJSON", ["isjson", "is", "json"]),
    ],
)
def test_an_acronym_in_the_plural_has_its_singular(name, expected):
    assert words(name) == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("user.service.ts", "user.service"),
        (".gitlab-ci.yml", "gitlab-ci"),
        (".eslintrc.js", "eslintrc"),
        (".env", "env"),
        ("Makefile", "Makefile"),
    ],
)
def test_of_a_files_name_only_the_last_ending_says_nothing_of_it(name, expected):
    assert without_ending(name) == expected


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
        ("用户名称", ["用户", "户名", "名称", "用", "户", "名", "称"]),
        ("用", ["用"]),
        ("人々", ["人々", "人"]),
        ("ユーザー", ["ユー", "ーザ", "ザー"]),
        ("사용자", ["사용", "용자", "사", "용", "자"]),
        ("ผู้ใช้", ["ผู", "ู้", "้ใ", "ใช", "ช้"]),
        ("用户name", ["用户name", "用户", "用", "户", "name"]),
    ],
)
def test_scripts_without_spaces_are_cut_into_pairs(text, expected):
    assert words(text) == expected


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("锁", "释放锁之后"),
        ("释放", "释放锁之后"),
        ("값", "기본값"),
        ("人々", "多くの人々が"),
        ("ไทย", "ภาษาไทยง่าย"),
        ("имя файла", "имяФайла"),
        ("ａｂｃ ｄｅｆ", "abcDef"),
    ],
)
def test_what_is_asked_for_is_found_inside(query, text):
    assert set(query_words(query)) & set(words(text))


def test_pairs_that_are_asked_for_bring_no_single_characters():
    assert query_words("用户名称") == ["用户", "户名", "名称"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("foo→bar", ["foo", "→", "bar"]),
        ("👩‍💻👍", ["👩", "💻", "👍"]),
        ("🇩🇪🇫🇷", ["🇩🇪", "🇫🇷"]),
        ("a ≠ b =\u0338 c", ["a", "≠", "b", "c"]),
        ("5 €, ©2020", ["5", "€", "©", "2020"]),
        ("“quoted” — text…", ["quoted", "text"]),
        ("┌──┐│ a │└──┘▓░⠋", ["a"]),
        ("用户，名称。", ["用户", "用", "户", "名称", "名", "称"]),
        ("ﷺ", ["صلي", "الله", "عليه", "وسلم"]),
        ("½", ["1", "2"]),
        ("\u200b\ufeff\u00ad", []),
    ],
)
def test_symbols_are_words_and_punctuation_is_none(text, expected):
    assert words(text) == expected
    assert words(f"{text} {text}") == expected * 2


@given(st.lists(st.sampled_from("ab_-. AB09"), max_size=30).map("".join))
def test_a_text_has_the_same_words_beside_one_beyond_ascii(text):
    assert words(f"{text} é") == [*words(text), "e"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "unit", ["a_", "A", "Aé", "é_", "用", "👍", "a\u0301\u0316", "ж-", "\u200b"]
)
@pytest.mark.timeout(20)
def test_a_run_without_end_takes_linear_time(unit):
    text = unit * 40_000
    assert len(words(text)) <= 3 * len(text)
    assert len(query_words(text)) <= 3 * len(text)
    assert len(joined(text)) <= 3 * len(text)
    assert len(list(places(text, {"a"}))) <= 1


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("sha256", ["sha256", "sha", "256"]),
        ("v1.2", ["v1", "v", "1", "2"]),
        ("0xFF", ["0xff", "0", "x", "ff"]),
        ("42", ["42"]),
        ("a,b;c", ["a", "b", "c"]),
        ("don't", ["don", "t"]),
        ("naïve", ["naive"]),
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


@given(st.text(st.characters(min_codepoint=0x80)))
def test_no_text_beyond_ascii_yields_such_a_word_either(text):
    for word in [*words(text), *query_words(text)]:
        assert word.split() == [word]
        assert len(word) <= MAX_WORD_CHARS
        word.encode()  # as LanceDB stores it


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
