"""Which place of a file comes first."""

import pytest
from ranking import candidates, stored

from vector_index_mcp.engine.ranking.likelihood import BY_WORDS
from vector_index_mcp.engine.ranking.query import Query
from vector_index_mcp.engine.ranking.rank import best, rank

WHERE = Query("where are the differences shown to the user")


def shown(chunks, query=WHERE):
    """The number of the chunk that is shown of each file, by the score of each chunk."""
    first = {}
    for hit in rank(query, candidates(chunks), []):
        first.setdefault(hit.chunk.key, hit.chunk.chunk_index)
    return first


def file(key, head, inside, language="python"):
    """The first chunk of a file, and a later one that lies in a definition."""
    about = {"language": language, "text": "differences shown", "total_chunks": 9}
    return {
        stored(key, 0, **about): head,
        stored(key, 4, scope="class View › function show", **about): inside,
    }


def test_inside_of_a_definition_comes_before_the_head_of_the_file():
    assert shown(file("view.py", 10.0, 8.0)) == {"view.py": 4}


def test_a_head_that_answers_much_better_stays_first():
    assert shown(file("view.py", 10.0, 4.0)) == {"view.py": 0}


def test_outside_of_definitions_the_better_place_comes_first():
    about = {"text": "differences shown", "total_chunks": 9}
    chunks = {stored("view.py", 3, **about): 9.0, stored("view.py", 4, **about): 10.0}
    assert shown(chunks) == {"view.py": 4}


COMMENTS = [
    ("view.ts", "/**\n * How differences are shown.\n *\n * ```\n * show(a, b)\n * ```\n */\n"),
    ("view.ts", " * differences are shown\n\n * side by side\n"),
    ("view.go", "// Differences are shown\n\n// side by side.\n"),
    ("view.py", '"""Differences.\n\nThey are shown side by side.\n"""\n'),
    ("view.lua", "-- differences are shown\n"),
    ("view.js", "module.exports = { differences, shown: show }\n"),
    ("view.ts", "export { differences, shown } from './show';\n"),
    ("view.py", "__all__ = ['differences', 'shown']\n"),
]


@pytest.mark.parametrize(("key", "comment"), COMMENTS)
def test_what_a_comment_describes_comes_before_the_comment(key, comment):
    about = {"scope": "function show", "total_chunks": 9}
    chunks = {
        stored(key, 3, text=comment, **about): 10.0,
        stored(key, 4, text="function show(differences) {\n", **about): 7.0,
    }
    assert shown(chunks) == {key: 4}


@pytest.mark.parametrize(
    "text",
    [
        "// differences\nshow(a, b)\n",
        "a -- differences\n",
        'x = """\ndifferences\n"""\n',
        "#define DIFFERENCES 5\n#include <show.h>\n",
        "#[derive(Differences)]\n",
        "#differences { color: red }\n",
        "*differences = 3;\n",
        "module.exports = { differences: (a, b) => show(a, b) }\n",
    ],
)
def test_code_with_comments_is_no_comment(text):
    about = {"scope": "function show", "total_chunks": 9}
    chunks = {
        stored("view.ts", 3, text=text, **about): 10.0,
        stored("view.ts", 4, text="function show(differences) {\n", **about): 9.0,
    }
    assert shown(chunks) == {"view.ts": 3}


def test_a_definition_comes_before_a_crowd_of_short_ones():
    about = {"text": "differences shown", "total_chunks": 9}
    names = tuple(f"show{number}" for number in range(8))
    chunks = {
        stored("view.ts", 3, symbols=names, **about): 10.0,
        stored("view.ts", 4, symbols=("show",), **about): 8.0,
    }
    assert shown(chunks) == {"view.ts": 4}


@pytest.mark.parametrize(("key", "language"), [("guide.md", "markdown"), ("docs/a.py", "python")])
def test_the_head_of_a_document_may_answer(key, language):
    assert shown(file(key, 10.0, 8.0, language)) == {key: 0}


def test_who_asks_for_a_name_gets_the_place_that_scores_best():
    name = Query("show_differences")
    assert shown(file("view.py", 10.0, 9.0), name) == {"view.py": 0}


def test_the_order_of_files_is_not_touched():
    files = file("a.py", 10.0, 9.0) | file("b.py", 7.0, 6.9)
    assert shown(files) == {"a.py": 4, "b.py": 4}
    assert list(shown(files)) == ["a.py", "b.py"]


def test_a_file_is_as_likely_right_whichever_place_of_it_is_shown():
    chunks = file("view.py", 10.0, 8.0)
    first, second = best(WHERE, candidates(chunks), [], 5)
    assert (first.chunk.chunk_index, second.chunk.chunk_index) == (4, 0)
    assert first.why.likelihood["score"] == pytest.approx(BY_WORDS.evidence.score)
