"""Which questions are about the project as a whole."""

import pytest

from vector_index_mcp.codebase.introduction import asks_for_whole
from vector_index_mcp.engine.ranking.query import Query


@pytest.mark.parametrize(
    "question",
    [
        "what is this project for",
        "What does this library do?",
        "what's this repository about",
        "project overview",
        "give me an overview of the codebase",
        "purpose of this application",
        "Describe the project.",
        "what is this",
    ],
)
def test_a_question_about_the_whole_is_known(question):
    assert asks_for_whole(Query(question))


@pytest.mark.parametrize(
    "question",
    [
        "what does this project use for logging",
        "what is the application",  # may be a class of that name
        "what does the repository do",
        "the library",
        "overview",
        "project",
        "what is it",
        "what does this module do",
        "where is the project described",
    ],
)
def test_one_about_something_in_it_is_not(question):
    assert not asks_for_whole(Query(question))
