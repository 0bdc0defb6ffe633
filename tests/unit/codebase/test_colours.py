"""Which words of code have the colour of keywords."""

import pytest

from vector_index_mcp.codebase.colours import KEYWORD, pieces


@pytest.mark.parametrize(
    ("language", "code", "keywords"),
    [
        ("javascript", "const end = data.then(pass)", ["const"]),
        ("go", "func raise(service string) { return done }", ["func", "string", "return"]),
        ("ruby", "def pay\n  raise unless done\nend", ["def", "raise", "unless", "done", "end"]),
        ("python", "def end(data): pass", ["def", "pass"]),
        ("php", "if ($a and not $b): endif;", ["if", "and", "not", "endif"]),
    ],
)
def test_a_keyword_of_another_language_is_a_name(language, code, keywords):
    assert [text for kind, text in pieces(code, language) if kind == KEYWORD] == keywords
