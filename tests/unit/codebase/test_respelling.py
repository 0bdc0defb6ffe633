"""A word that stands nowhere may be a slip of the hand, and the name that is meant is found."""

import pytest

from vector_index_mcp.codebase.respelling import meant

SYMBOLS = ["net.Connection", "Bus::open_connection", "connection", "Signature", "parseHTTPHeader"]
KEYS = ["src/authentication.py", "lib/ObjectPath.cs"]


@pytest.mark.parametrize(
    ("word", "name"),
    [
        ("conection", "Connection"),
        ("Connnection", "Connection"),
        ("net.Conection", "Connection"),
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
    assert meant([word], SYMBOLS, KEYS) == ({word: name} if name else {})


def test_each_word_has_its_own():
    assert meant(["conection", "signture", "umbrella"], SYMBOLS, KEYS) == {
        "conection": "Connection",
        "signture": "Signature",
    }
