"""Which rows, in LanceDB's SQL. Pure."""

from collections.abc import Iterable

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
    return " AND ".join(terms)


def _quoted(value: str) -> str:
    """A string of LanceDB's SQL: quotes are doubled, nothing else is special."""
    return "'" + value.replace("'", "''") + "'"


def is_among(column: str, values: Iterable[str]) -> str:
    """The predicate that `column` holds one of `values`; never true of none."""
    listed = ", ".join(map(_quoted, values))
    return f"{column} IN ({listed})" if listed else "false"
