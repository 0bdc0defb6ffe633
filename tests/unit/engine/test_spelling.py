"""What people write alike is one spelling, whatever Unicode makes of it."""

import re
import time
import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from vector_index_mcp.engine.text.spelling import composed, folded, unified

FORMS = ["NFC", "NFD", "NFKC", "NFKD"]
beyond_ascii = st.text(st.characters(min_codepoint=0x80), max_size=20) | st.text(max_size=20)


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("Straße", "strasse"),
        ("STRAẞE", "strasse"),
        ("ＡＢＣ", "abc"),
        ("ﬁle", "file"),
        ("café", "cafe"),
        ("cafe\u0301", "cafe"),
        ("İstanbul", "istanbul"),
        ("ısı", "isi"),
        ("ΟΔΌΣ", "οδοσ"),
        ("οδός", "οδοσ"),
        ("Ёлка", "елка"),
        ("Łódź", "lodz"),
        ("Ærø", "aero"),
        ("naïveté", "naivete"),
        ("Tiếng Việt", "tieng viet"),
        ("שָׁלוֹם", "שלום"),
        ("كِتَابٌ", "كتاب"),
        ("كتـــاب", "كتاب"),
        ("ﻛﺘﺎﺏ", "كتاب"),
        ("٣٤ ३४ ３４", "34 34 34"),
        ("x² Ⅷ ①", "x2 viii 1"),
        ("ｶﾞｷﾞ", "ガギ"),
        ("か\u3099", "が"),
        ("가\u11a8", "각"),
        ("\u1112\u1161\u11ab", "한"),
        ("foo\u200bbar", "foobar"),
        ("foo\u200d\u200c\u2060\ufeff\u00ad\u034fbar", "foobar"),
        ("\u202bfoo\u202c", "foo"),
        ("مكتبة مکتبه", "مكتبه مكتبه"),
        ("≠ =\u0338 ↚", "≠ ≠ ↚"),
        ("👍🏽", "👍"),
        ("❤️", "❤"),
    ],
)
def test_what_is_written_alike_is_one_spelling(written, expected):
    assert folded(written) == expected


@pytest.mark.parametrize("pair", ["が か", "ผู้ใช้ ผใช", "डेटा डटा", "का क", "한 하", "ə e", "й ы"])
def test_letters_that_are_others_stay_others(pair):
    one, other = pair.split()
    assert folded(one) != folded(other)


def test_ascii_is_as_it_was():
    text = "".join(map(chr, range(128)))
    assert (unified(text), folded(text), composed(text)) == (text, text.lower(), text)


@given(beyond_ascii, st.sampled_from(FORMS))
@example("\u1100\u1161\u11a8", "NFC")
@example("\u0958\u0344\u0f73", "NFD")
@example("ŉ ǰ ΐ ŕ", "NFKD")
def test_every_form_of_a_text_is_one_spelling(text, form):
    assert folded(unicodedata.normalize(form, text)) == folded(text)
    assert composed(composed(text)) == composed(text) == unicodedata.normalize("NFC", text)


@given(beyond_ascii)
def test_the_one_spelling_is_spelled_so_itself(text):
    assert unified(unified(text)) == unified(text)
    assert folded(text.upper()) == folded(text.upper().lower())


@pytest.mark.parametrize("mark", ["\u0301\u0316", "\u0e38\u0e48", "\u3099\u0334", "\u0f74\u0f39"])
def test_marks_without_end_take_linear_time(mark):
    text = "a" + mark * 50_000  # put into order at once: ten seconds
    began = time.process_time()
    assert len(folded(text)) <= len(text)
    assert len(composed(text)) <= len(text)
    assert time.process_time() - began < 3


@pytest.mark.slow
def test_what_is_passed_over_is_plain_already():
    for code in range(0x80, 0x20000):
        char = chr(code)
        if unified(char) == char:
            assert unicodedata.normalize("NFKC", char) == char
            assert unicodedata.category(char) != "Cf"
            assert unicodedata.decimal(char, None) is None
            assert not re.search("[\u0300-\u0337\u0339-\u036f]", unicodedata.normalize("NFD", char))
