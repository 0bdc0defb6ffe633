"""Counts the rows of each file in the table `chunks`. Pure."""

from collections import Counter

import pyarrow as pa

from vector_index_mcp.engine.types import Holding


def holdings(rows: pa.Table, missing: pa.Table) -> dict[str, Holding]:
    """Return the holdings of all files, by key.

    Args:
        rows: The columns `file_path` and `content_hash` of all rows.
        missing: The column `file_path` of the rows without a vector.
    """
    unembedded = _count_by(missing, ["file_path"])
    found: dict[str, Holding] = {}
    for (key, content_hash), count in _count_by(rows, ["file_path", "content_hash"]).items():
        other = found.get(key)
        found[key] = Holding(
            content_hash="" if other else content_hash,
            rows=count + (other.rows if other else 0),
            unembedded=unembedded[(key,)],
        )
    return found


def _count_by(table: pa.Table, columns: list[str]) -> Counter[tuple[str, ...]]:
    """Count the rows of each combination of values. Arrow's grouping would load 5 MB of code."""
    return Counter(zip(*(table.column(name).to_pylist() for name in columns), strict=True))
