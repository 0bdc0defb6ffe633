"""The answers as a person or an agent reads them, to the letter of the contract. Pure."""

import math
from collections.abc import Mapping

from vector_index_mcp.documents.wire import IndexStatus, ResultItem


def of_results(results: list[ResultItem], query: str) -> str:
    """A line for each result, as MCP has it."""
    if not results:
        return f'No results found for "{query}"'
    return "\n".join([f"{_head(results, query)}:\n", *map(_line, results)])


def of_results_in_rest(results: list[ResultItem], query: str) -> str:
    """The same, as REST has it: no colon, and blank lines between results."""
    if not results:
        return f'No results found for "{query}"'
    return "\n\n".join([_head(results, query), *map(_line, results)])


def _head(results: list[ResultItem], query: str) -> str:
    return f'Found {len(results)} result{"" if len(results) == 1 else "s"} for "{query}"'


def _line(item: ResultItem) -> str:
    return f"{item.docid} {math.floor(item.score * 100 + 0.5)}% {item.file} - {item.title}"


def of_status(status: IndexStatus) -> str:
    """The state of the index."""
    lines = [
        "QMD Index Status:",
        f"  Total documents: {status.total_documents}",
        f"  Needs embedding: {status.needs_embedding}",
        f"  Vector index: {'yes' if status.has_vector_index else 'no'}",
        f"  Collections: {len(status.collections)}",
        *(f"    - {each.path} ({each.documents} docs)" for each in status.collections),
    ]
    return "\n".join(lines)


# -- REST alone ------------------------------------------------------------------------------


def of_added(name: str, documents: int) -> str:
    """A collection that is new."""
    return f"Added collection '{name}' with {documents} documents"


def of_removed(name: str) -> str:
    """A collection that is gone."""
    return f"Removed collection '{name}'"


def of_renamed(name: str, new: str) -> str:
    """A collection that has another name."""
    return f"Renamed '{name}' to '{new}'"


def of_collections(counts: Mapping[str, int]) -> str:
    """How many documents each collection has."""
    lines = [f"- {name} ({count} docs)" for name, count in counts.items()]
    return "\n".join([f"Collections: {len(counts)}", *lines])


def of_indexed(collections: int, documents: int) -> str:
    """All collections as they are in the index now."""
    return f"Indexed {_collections(collections)}: {documents} documents"


def of_updated(collections: int) -> str:
    """All collections, brought up to date."""
    return f"Updated {_collections(collections)}"


def of_context_added(path: str) -> str:
    """What is said of documents now."""
    return f"Added context for {path}"


def _collections(count: int) -> str:
    return f"{count} collection{'' if count == 1 else 's'}"
