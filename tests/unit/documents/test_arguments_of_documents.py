"""The arguments that a tool does not know are named, whatever they are called."""

from vector_index_mcp.documents.arguments import SearchArguments, ignored
from vector_index_mcp.protocol import told_of_ignored


def test_what_a_tool_does_not_know_is_named_as_it_was_given():
    given = {"query": "q", "minScore": 1, "min_score": 1, "\ud800": 1, "x" * 999: 1}
    names = ignored(SearchArguments, given)
    assert names == ["min_score", "\ud800", "x" * 999]
    told = told_of_ignored(names).encode().decode()  # an answer must be valid Unicode
    assert told.endswith(f"'min_score', '\\ud800', '{'x' * 300}…'")
    assert ignored(SearchArguments, ["no object"]) == []


def test_of_many_names_five_are_told():
    told = "Unknown arguments were ignored: '0', '1', '2', '3', '4' and 995 more"
    assert told_of_ignored([str(number) for number in range(1_000)]) == told
    assert told_of_ignored([]) == ""
