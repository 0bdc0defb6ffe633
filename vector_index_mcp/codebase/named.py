"""Answers a query that is nothing but a file's path, perhaps with a line: with that place.

All chunks of a file have the words of its path, so a search could only prefer the shortest.
"""

import re
from collections.abc import Iterable, Sequence

from vector_index_mcp.codebase.lead import led
from vector_index_mcp.engine.query import Query
from vector_index_mcp.engine.spelling import composed
from vector_index_mcp.engine.store import Store
from vector_index_mcp.engine.types import Hit
from vector_index_mcp.indexing.ledger import Ledger

_LINE = re.compile(r"(?::|#L)(\d{1,9})")
_LOGIT = 3.0  # 95 %: whoever writes a path means that file
_NAME = "path"  # in explanations


def file_named(query: Query, keys: Iterable[str]) -> str:
    """Return the key of the only file that the query names; empty if it names none, or more.

    The path may begin below the project's folder, or above it.
    """
    if len(query.text.split()) != 1 or len(query.paths) != 1:
        return ""
    [path] = query.paths
    places = {f"/{composed(key)}": key for key in keys}
    if f"/{path}" in places:
        return places[f"/{path}"]
    inside = [key for place, key in places.items() if place.endswith(f"/{path}")]
    if inside:
        return inside[0] if len(inside) == 1 else ""
    around = [place for place in places if place.count("/") > 1 and f"/{path}".endswith(place)]
    return places[max(around, key=len)] if around else ""


async def opened(
    query: Query, hits: Sequence[Hit], limit: int, store: Store, ledger: Ledger
) -> list[Hit] | None:
    """Return `hits` behind the chunk that the query names: at its line, else the file's beginning.

    Returns:
        At most `limit` hits; None if the query is no path of a file that has text.

    Raises:
        StoreError: If the index cannot be read.
    """
    key = file_named(query, ledger.keys())
    rows = (await store.rows([key])).get(key, []) if key else []
    chunks = sorted((chunk for chunk, _ in rows), key=lambda chunk: chunk.chunk_index)
    if not chunks:
        return None
    at = _LINE.search(query.text)
    line = int(at[1]) if at else 1
    first = next((chunk for chunk in chunks if line <= chunk.end_line), chunks[-1])
    behind = [chunk for chunk in chunks if chunk.chunk_index > first.chunk_index]
    return led(first, behind, hits, limit, name=_NAME, logit=_LOGIT)
