"""Makes predicates for rows in LanceDB's SQL. Pure."""

from collections.abc import Iterable, Iterator

import pyarrow as pa

from vector_index_mcp.engine import kinds
from vector_index_mcp.engine.types import Filters
from vector_index_mcp.errors import encodable


def predicate_of(filters: Filters) -> str:
    """Return `filters` as a predicate of LanceDB's SQL; empty if they limit nothing."""
    terms = []
    if filters.languages:
        terms.append(is_among("language", filters.languages))
    if filters.file:
        terms.append(f"file_path = {_quoted(filters.file)}")
    if filters.files:
        terms.append(is_among("file_path", filters.files))
    if filters.folder:  # a range, so that the column's index is used; `0` comes after `/`
        terms.append(f"file_path >= {_quoted(filters.folder + '/')}")
        terms.append(f"file_path < {_quoted(filters.folder + '0')}")
    if filters.path:
        terms.append(matches("file_path", filters.path))
    if filters.kind:
        terms.append(_is_of(filters.kind))
    if filters.text:
        terms.append(matches("extracted_text_chunk", filters.text))
    return " AND ".join(terms)


def predicates_of_rows(rows: pa.Table, most: int) -> Iterator[str]:
    """Yield predicates of at most `most` rows each, which together match the rows of a table."""
    for start in range(0, rows.num_rows, most):
        batch = rows.slice(start, most)
        # The predicate on file_path makes this faster; document_id alone would be enough.
        keys = is_among("file_path", sorted(set(batch.column("file_path").to_pylist())))
        ids = is_among("document_id", batch.column("document_id").to_pylist())
        yield f"{keys} AND {ids}"


def _is_of(kind: str) -> str:
    """Return the predicate that a row's file is of a `kinds.Kind`."""
    others = [f"NOT ({_belongs_to(other)})" for other in kinds.before(kind)]
    return " AND ".join(others if kind == "code" else [*others, f"({_belongs_to(kind)})"])


def _belongs_to(kind: str) -> str:
    patterns, languages = kinds.patterns_of(kind)
    terms = [matches("file_path", pattern) for pattern in patterns]
    return " OR ".join([*terms, is_among("language", languages)] if languages else terms)


def _quoted(value: str) -> str:
    """Return a string literal of LanceDB's SQL: quotes are doubled, nothing else is special.

    No row has a text that UTF-8 cannot encode.
    """
    return "'" + encodable(value).replace("'", "''") + "'"


def is_among(column: str, values: Iterable[str]) -> str:
    """Return the predicate that `column` is one of `values`; `false` if there are none."""
    listed = ", ".join(map(_quoted, values))
    return f"{column} IN ({listed})" if listed else "false"


def matches(column: str, pattern: str) -> str:
    """Return the predicate that a regular expression matches in `column`."""
    return f"regexp_like({column}, {_quoted(pattern)})"


def contains(column: str, part: str) -> str:
    """Return the predicate that `column` contains `part` in any case."""
    return f"contains(lower({column}), {_quoted(part.lower())})"
