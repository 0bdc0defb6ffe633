"""Formats the answers as texts for people and agents, exactly as in the contract. Pure."""

import math
from collections.abc import Mapping, Sequence

from vector_index_mcp.documents.wire import IndexStatus, ResultItem
from vector_index_mcp.foreign import visible


def of_results(results: list[ResultItem], query: str) -> str:
    """Return one line for each result, in the form of MCP."""
    if not results:
        return f'No results found for "{query}"'
    return "\n".join([f"{_head(results, query)}:\n", *map(_line, results)])


def of_results_in_rest(results: list[ResultItem], query: str) -> str:
    """Return the results in the form of REST: without a colon, with empty lines between them."""
    if not results:
        return f'No results found for "{query}"'
    return "\n\n".join([_head(results, query), *map(_line, results)])


def _head(results: list[ResultItem], query: str) -> str:
    return f'Found {len(results)} result{"" if len(results) == 1 else "s"} for "{query}"'


def _line(item: ResultItem) -> str:
    share = math.floor(item.score * 100 + 0.5)
    return visible(f"{item.docid} {share}% {item.file} - {item.title}")  # a name may break lines


def of_status(status: IndexStatus, problems: Sequence[str]) -> str:
    """Return the state of the index, and what is wrong; the contract has no line for the latter."""
    lines = [
        "QMD Index Status:",
        f"  Total documents: {status.total_documents}",
        f"  Needs embedding: {status.needs_embedding}",
        f"  Vector index: {'yes' if status.has_vector_index else 'no'}",
        f"  Collections: {len(status.collections)}",
        *(f"    - {each.path} ({each.documents} docs)" for each in status.collections),
        *(f"  Problem: {problem}" for problem in problems),
    ]
    return "\n".join(lines)


# -- REST only -------------------------------------------------------------------------------


def of_added(name: str, documents: int) -> str:
    """Return the message that a collection was added."""
    return f"Added collection '{name}' with {documents} documents"


def of_removed(name: str) -> str:
    """Return the message that a collection was removed."""
    return f"Removed collection '{name}'"


def of_renamed(name: str, new: str) -> str:
    """Return the message that a collection was renamed."""
    return f"Renamed '{name}' to '{new}'"


def of_collections(counts: Mapping[str, int]) -> str:
    """Return a list of the collections with the number of their documents."""
    lines = [f"- {name} ({count} docs)" for name, count in counts.items()]
    return "\n".join([f"Collections: {len(counts)}", *lines])


def of_indexed(collections: int, documents: int) -> str:
    """Return the message that all collections were indexed."""
    return f"Indexed {_collections(collections)}: {documents} documents"


def of_updated(collections: int, pulled: Mapping[str, str]) -> str:
    """Return the message that all collections were updated, and what `git pull` printed for each.

    The contract has no field for a pull, which may have failed.
    """
    said = [f"git pull for {name}:\n{output}" for name, output in pulled.items()]
    return "\n\n".join([f"Updated {_collections(collections)}", *said])


def of_context_added(path: str) -> str:
    """Return the message that a context was added."""
    return f"Added context for {path}"


def _collections(count: int) -> str:
    return f"{count} collection{'' if count == 1 else 's'}"
