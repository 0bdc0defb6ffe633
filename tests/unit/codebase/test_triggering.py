"""What is said of an index that somebody has asked to bring up to date."""

from types import SimpleNamespace

import pytest

from vector_index_mcp.codebase import triggering
from vector_index_mcp.indexing.writing.run import Kind, Run


def status_of(failed=(), **values):
    progress = {"error": "", "lacks_vectors": False, "vectors_failure": "", "embedder_reason": ""}
    return SimpleNamespace(
        progress=SimpleNamespace(**progress | values),
        indexed=1,
        chunks=2,
        embedded=1,
        failed=[SimpleNamespace(key=key, reason="it crashed") for key in failed],
    )


def finished():
    run = Run(Kind.REQUEST, number=1)
    run.finished.set()
    return run


@pytest.mark.parametrize(
    ("values", "pending", "message"),
    [
        ({}, 0, "The index is complete and up to date."),
        ({}, 2, "Files changed meanwhile and still have to be indexed: 2 paths."),
        ({"error": "the disk is full", "lacks_vectors": True}, 0, "the disk is full."),
        ({"lacks_vectors": True}, 0, "Embedding goes on in the background."),
        ({"lacks_vectors": True, "embedder_reason": "no model"}, 0, "by meaning: no model."),
    ],
)
def test_what_keeps_it_from_being_complete_is_named(values, pending, message):
    result = triggering._result(status_of(**values), finished(), pending)
    assert result.message.endswith(message)
    assert result.complete == (not values and not pending)


@pytest.mark.parametrize(
    ("failed", "listed"),
    [
        ("a", "a (it crashed)."),
        ("abcd", "a (it crashed), b (it crashed), c (it crashed) and more."),
    ],
)
def test_files_that_cannot_be_indexed_are_not_passed_over(failed, listed):
    result = triggering._result(status_of(failed), finished(), 0)
    assert result.message.endswith(f"lacks what cannot be indexed: {listed}")
    assert "complete" not in result.message
