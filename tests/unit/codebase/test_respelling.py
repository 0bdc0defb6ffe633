"""A word that stands nowhere may be a slip of the hand, and the name that is meant is found."""

import pytest

from vector_index_mcp.codebase.respelling import meant, spellings

SYMBOLS = ["net.Connection", "Bus::open_connection", "connection", "Signature", "parseHTTPHeader"]
KEYS = ["src/authentication.py", "lib/ObjectPath.cs"]
KNOWN = spellings(SYMBOLS, KEYS)


@pytest.mark.parametrize(
    ("word", "name"),
    [
        ("conection", "Connection"),
        ("Connnection", "Connection"),
        ("net.Conection", "Connection"),
        ("Conection.parsHttpHeader", "Connection.parseHTTPHeader"),
        ("Connection::parsHttpHeader", "Connection::parseHTTPHeader"),
        ("app.Conection#authenticatoin", "Connection#authentication"),
        ("openConection", "open_connection"),
        ("authentification", "authentication"),
        ("object_pth", "ObjectPath"),
        ("parse_http_heder", "parseHTTPHeader"),
        ("heaader", "header"),
        ("collection", ""),
        ("connection2", ""),
        ("umbrella", ""),
        ("sign", ""),
        ("bux", ""),
        ("", ""),
        ("日本語", ""),
    ],
)
def test_the_nearest_name_is_meant_or_none(word, name):
    assert meant([word], KNOWN) == ({word: name} if name else {})


def test_of_names_of_one_spelling_the_type_is_meant_and_a_private_one_least():
    assert meant(["forgett"], spellings(["_forget", "forget"], [])) == {"forgett": "forget"}
    known = spellings(["_Signature", "signature", "Signature", "__signature__"], [])
    assert meant(["signture"], known) == {"signture": "Signature"}


def test_each_word_has_its_own():
    assert meant(["conection", "signture", "umbrella"], KNOWN) == {
        "conection": "Connection",
        "signture": "Signature",
    }


@pytest.mark.slow
def test_only_so_many_names_are_compared_and_none_that_is_very_long(monkeypatch):
    compared = []

    def note(word, names, *_):
        compared.extend(names)
        return []

    monkeypatch.setattr("vector_index_mcp.codebase.respelling.get_close_matches", note)
    names = [
        f"q{format(number, '017b').translate(str.maketrans('01', 'ab'))}" for number in range(9_000)
    ]
    meant(["qabababababababab"], spellings(names, []))
    assert len(compared) == 3_000
    compared.clear()
    meant(["q" + "ab" * 30], spellings(names, []))
    assert compared == []
