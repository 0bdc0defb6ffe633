"""Answers a query that is a regular expression with the chunks that match it."""

import re
from collections.abc import Sequence
from dataclasses import replace

from vector_index_mcp.codebase.lead import led
from vector_index_mcp.engine.ranking.pattern import Pattern
from vector_index_mcp.engine.ranking.query import Query
from vector_index_mcp.engine.ranking.search import no_vector, search
from vector_index_mcp.engine.store import Store
from vector_index_mcp.engine.types import Filters, Hit, StoredChunk
from vector_index_mcp.errors import QueryError, StoreError, counted

_LIKELY = 0.95  # together: one of them is what somebody looks for
_NAME = "pattern"  # in explanations
# Each line has a beginning and an end, be that CRLF; if nothing matches so, in any case.
_FLAGS = ("(?mR)", "(?mRi)")
_NO_MATCH = "No chunk matches the query as a regular expression"
_INVALID = (
    "the query is not a regular expression of Rust's syntax, which has no look-around and no "
    "backreferences, or it is too large"
)
_MOST_PLACED = 500  # chunks that match and have none of the words


async def matched(
    pattern: Pattern, limit: int, store: Store, filters: Filters
) -> tuple[list[Hit], str]:
    """Return the chunks that a pattern matches, those that suit its words best first.

    It is LanceDB that matches, with Rust's expressions: they take as long as their size times the
    text's at most. `.{900}` has a size of 900.

    Args:
        pattern: What to match.
        limit: How many hits at most.
        store: The store to search.
        filters: Which chunks count.

    Returns:
        The hits, and a sentence that tells how many chunks match. Without hits: that none does, or
        that the expression is invalid; empty if the query may be text.

    Raises:
        QueryError: If what is said to be an expression is invalid.
        StoreError: If the index cannot be read any more.
    """
    if not pattern.is_sure and await _is_text(pattern.regex, store, filters):
        return [], ""
    within, count = filters, 0
    try:
        for flags in _FLAGS[:1] if pattern.is_wanted else _FLAGS:
            within = replace(filters, text=flags + pattern.regex)
            if count := await store.contents.count(within):
                break
    except StoreError as error:
        await store.contents.count(filters)  # fails as well if it is not the expression
        if pattern.is_wanted:
            raise QueryError(_INVALID) from error
        return [], _instead(pattern, _INVALID)
    if not count:
        return [], _instead(pattern, _NO_MATCH)
    found = await _best(pattern, limit, store, within)
    verb = "matches" if count == 1 else "match"
    ignored = ", if case is ignored" if within.text.startswith(_FLAGS[-1]) else ""
    remark = f"{counted(count, 'chunk')} {verb} the query as a regular expression{ignored}."
    return led(found, (), limit, name=_NAME, likely=_LIKELY), remark


def _instead(pattern: Pattern, why: str) -> str:
    """Return a sentence that says why nothing matches; empty if the query may be text."""
    if not pattern.is_sure:
        return ""
    searched = "" if pattern.is_wanted else "; its words were searched"
    return f"{why[0].upper()}{why[1:]}{searched}."


async def _is_text(regex: str, store: Store, filters: Filters) -> bool:
    """Return whether a file contains what may be an expression as it is."""
    try:
        return await store.contents.has_match(re.escape(regex), filters)
    except StoreError:  # a character that these expressions lack
        return False


async def _best(
    pattern: Pattern, limit: int, store: Store, within: Filters
) -> Sequence[tuple[StoredChunk, Sequence[StoredChunk]]]:
    """Return the best chunks, each with others of its file; last, those with none of the words."""
    query = Query(pattern.plain)
    hits = await search(store, query, no_vector, limit, within) if query.words else []
    found = [(hit.chunk, hit.also) for hit in hits]
    if len(found) < limit:
        shown = {hit.chunk.document_id for hit in hits}
        placed = await store.contents.placed(within, _MOST_PLACED)
        found += [(chunk, ()) for chunk in placed if chunk.document_id not in shown]
    return found[:limit]
