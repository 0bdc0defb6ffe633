"""What the index holds of each file is counted, however its rows lie."""

import pyarrow as pa

from vector_index_mcp.engine.store.holdings import holdings
from vector_index_mcp.engine.types import Holding


def held(rows, missing=()):
    keys, hashes = [key for key, _ in rows], [content_hash for _, content_hash in rows]
    text = pa.string()
    table = pa.table({"file_path": pa.array(keys, text), "content_hash": pa.array(hashes, text)})
    return holdings(table, pa.table({"file_path": pa.array([*missing], text)}))


def test_rows_are_counted_by_file_with_those_that_lack_a_vector():
    rows = [("a", "1"), ("b", "2"), ("a", "1"), ("a", "1")]
    assert held(rows, ["a", "b", "a"]) == {"a": Holding("1", 3, 2), "b": Holding("2", 1, 1)}


def test_rows_of_several_generations_have_no_hash_in_common():
    rows = [("a", "1"), ("a", "2"), ("b", "1"), ("a", "3"), ("a", "1")]
    assert held(rows, ["a"]) == {"a": Holding("", 4, 1), "b": Holding("1", 1, 0)}


def test_an_empty_index_holds_nothing():
    assert held([]) == {}


def test_a_file_that_went_between_both_looks_is_not_held():
    assert held([("a", "1")], ["gone"]) == {"a": Holding("1", 1, 0)}
