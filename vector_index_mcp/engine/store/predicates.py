"""Which rows, in LanceDB's SQL. Pure."""

from collections.abc import Iterable

from vector_index_mcp.engine import kinds
from vector_index_mcp.engine.types import Filters


def predicate_of(filters: Filters) -> str:
    """`filters` as a predicate of LanceDB's SQL."""
    terms = []
    if filters.languages:
        terms.append(is_among("language", filters.languages))
    if filters.file:
        terms.append(f"file_path = {_quoted(filters.file)}")
    if filters.files:
        terms.append(is_among("file_path", filters.files))
    if filters.folder:  # as a range, which the column's index answers; `0` comes after `/`
        terms.append(f"file_path >= {_quoted(filters.folder + '/')}")
        terms.append(f"file_path < {_quoted(filters.folder + '0')}")
    if filters.path:
        terms.append(f"regexp_like(file_path, {_quoted(filters.path)})")
    if filters.kind:
        terms.append(_is_of(filters.kind))
    return " AND ".join(terms)


def _is_of(kind: str) -> str:
    """The predicate that a row's file is of one of `kinds.Kind`."""
    others = [f"NOT ({_belongs_to(other)})" for other in kinds.before(kind)]
    return " AND ".join(others if kind == "code" else [*others, f"({_belongs_to(kind)})"])


def _belongs_to(kind: str) -> str:
    patterns, languages = kinds.patterns_of(kind)
    terms = [f"regexp_like(file_path, {_quoted(pattern)})" for pattern in patterns]
    return " OR ".join([*terms, is_among("language", languages)] if languages else terms)


def _quoted(value: str) -> str:
    """A string of LanceDB's SQL: quotes are doubled, nothing else is special."""
    return "'" + value.replace("'", "''") + "'"


def is_among(column: str, values: Iterable[str]) -> str:
    """The predicate that `column` holds one of `values`; never true of none."""
    listed = ", ".join(map(_quoted, values))
    return f"{column} IN ({listed})" if listed else "false"


def contains(column: str, part: str) -> str:
    """The predicate that `part` stands in `column`, capitals aside."""
    return f"contains(lower({column}), {_quoted(part.lower())})"
