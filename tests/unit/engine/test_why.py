"""Why a hit stands where it does: what is told adds up to the order and the score."""

import math

import pytest
from ranking import candidates, stored

from vector_index_mcp.engine.ranking.query import Query
from vector_index_mcp.engine.ranking.rank import best

WHERE = Query("where are the differences shown to the user")
TEXTS = {
    stored("core.py", 3, text="differences of users", total_chunks=120): 13.0,
    stored("core.py", 40, text="shown to the user", total_chunks=120): 6.0,
    stored("view/differences.py", 0, text="differences shown", total_chunks=2): 9.0,
    stored("tests/test_view.py", 0, text="differences shown to the user", total_chunks=3): 11.0,
}
NEAR = {chunk: 0.6 - 0.05 * place for place, chunk in enumerate(TEXTS) if place != 1}


def found(query, lexical, semantic):
    return best(query, candidates(lexical), candidates(semantic), 10)


@pytest.mark.parametrize("near", [NEAR, {}], ids=["by meaning", "by words"])
def test_what_speaks_for_a_file_adds_up_to_the_order(near):
    hits = found(WHERE, TEXTS, near)
    sums = {hit.chunk.key: math.fsum(hit.why.file.values()) for hit in hits}
    assert list(sums.values()) == sorted(sums.values(), reverse=True)
    assert len(set(sums.values())) == 3
    assert ("meaning" in hits[0].why.file) == bool(near)


def test_what_speaks_for_a_chunk_adds_up_to_the_order_in_its_file():
    inside = stored("core.py", 5, text="differences of the user", scope="class A", total_chunks=120)
    hits = found(WHERE, TEXTS | {inside: 12.9}, {})
    sums = [math.fsum(hit.why.in_file.values()) for hit in hits if hit.chunk.key == "core.py"]
    assert len(sums) == 3
    assert sums == sorted(sums, reverse=True)
    assert next(hit for hit in hits if hit.chunk is inside).why.in_file["inside"] > 0


@pytest.mark.parametrize("near", [NEAR, {}], ids=["by meaning", "by words"])
def test_what_a_score_comes_from_adds_up_to_it(near):
    hits = found(WHERE, TEXTS, near)
    for hit in hits:
        total = math.fsum(hit.why.likelihood.values())
        assert hit.likelihood == pytest.approx(1 / (1 + math.exp(-total)))
    likely = [round(hit.likelihood, 9) for hit in hits]
    assert likely == sorted(likely, reverse=True)


def test_a_chunk_tells_what_raised_and_lowered_it():
    why = {hit.chunk.key: hit.why for hit in found(WHERE, TEXTS, NEAR)}
    assert why["view/differences.py"].factors["path"] > 1
    assert why["tests/test_view.py"].factors["kind_of_file"] < 1
    assert "kind_of_file" not in why["core.py"].factors
    assert "quoted" not in why["core.py"].factors


def test_a_chunk_tells_what_the_searches_gave_it():
    whys = {hit.chunk.document_id: hit.why for hit in found(WHERE, TEXTS, NEAR)}
    first, second = whys["core.py::3"], whys["core.py::40"]
    assert (first.words, first.meaning) == (1.0, 1.0)
    assert second.words == pytest.approx(6 / 13)
    assert second.meaning is None
    assert max(why.chunk for why in whys.values()) == 1.0


def test_files_are_not_spoken_for_where_chunks_alone_are_ranked():
    [hit] = found(Query("parse_config"), {stored("load.py", symbols=["parse_config"]): 3.0}, {})
    assert hit.why.file == {}
    assert hit.why.factors["defines"] == 5.0
