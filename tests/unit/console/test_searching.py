"""What the command line calls what the tool speaks of."""

import pytest

from vector_index_mcp.codebase.wanted import Sample
from vector_index_mcp.console.searching import in_options
from vector_index_mcp.errors import QueryError


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("No indexed file matches path='a'.", "No indexed file matches --glob 'a'."),
        ('path="it\'s" is too long', '--glob "it\'s" is too long'),
        ("3 more results did not fit max_tokens.", "3 more results did not fit --max-tokens."),
        ("1 folder cannot be read (see get_status).", "1 folder cannot be read (see `status`)."),
        ("No indexed file matches 'similar_to.py'.", "No indexed file matches 'similar_to.py'."),
    ],
)
def test_a_sentence_names_options(said, told):
    assert in_options(said) == told


def test_a_sample_that_names_no_line_is_told_by_its_option():
    with pytest.raises(QueryError) as refused:
        Sample.of("app.py")
    assert in_options(str(refused.value)).startswith("--similar-to names no line")
