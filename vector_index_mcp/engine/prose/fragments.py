"""Leaves out chunks that have only fragments of a name that a query asks for.

Names like `E1` and `ERR_4711x9` are matched by their parts, too, since a text may have them in a
longer one, such as `E1-Lampe`. But most texts have a 1 or an x, which says nothing about the name.
"""

import re
from collections.abc import Sequence

from vector_index_mcp.engine.store import Store
from vector_index_mcp.engine.text.spelling import folded
from vector_index_mcp.engine.text.words import IDENTIFIER, MAX_WORD_CHARS, parts_of
from vector_index_mcp.engine.types import Candidate, Filters, StoredChunk

_MOST_NAMES = 16


async def without_fragments(
    found: Sequence[Candidate],
    query: str,
    stems: Sequence[str],
    store: Store,
    most: int,
    filters: Filters,
) -> list[Candidate]:
    """Return the candidates that have more than single characters and short numbers of a name.

    Args:
        found: What full-text search has found for `stems`.
        query: The query.
        stems: The stems of its words.
        store: The store that was searched.
        most: How many chunks were searched for.
        filters: Which chunks count.

    Raises:
        StoreError: If the store cannot be read.
    """
    fragments, names = _fragments_of(query)
    if names is None or not found:
        return [*found]
    telling = [stem for stem in stems if stem not in fragments]
    told = {c.chunk.document_id for c in await store.matching(telling, most, filters)}
    return [
        candidate
        for candidate in found
        if candidate.chunk.document_id in told or names.search(_shown(candidate.chunk))
    ]


def _shown(chunk: StoredChunk) -> str:
    return folded(f"{chunk.key}\n{chunk.scope}\n{chunk.text}")


def _fragments_of(query: str) -> tuple[frozenset[str], re.Pattern[str] | None]:
    """Return the parts of names that say nothing alone, and a pattern of those names.

    None if the query has no such part.
    """
    names = [n for n in IDENTIFIER.findall(query) if len(n) <= MAX_WORD_CHARS][:_MOST_NAMES]
    split = [[folded(part) for part in parts_of(name)] for name in names]
    alone = {parts[0] for parts in split if len(parts) == 1}
    small = {part for parts in split for part in parts if _is_small(part)}
    fragments = frozenset(small - alone)
    patterns = [_pattern(parts) for parts in split if fragments.intersection(parts)]
    return fragments, re.compile("|".join(patterns), re.IGNORECASE) if patterns else None


def _is_small(part: str) -> bool:
    return part.isascii() and len(part) <= (2 if part.isdigit() else 1)


def _pattern(parts: Sequence[str]) -> str:
    """Return a pattern of a name in any spelling, which goes on with no digit or letter of ASCII.

    Between two of other scripts, a word may end anywhere: `5月` in `2024年5月10日`.
    """
    before, behind = _border(parts[0][0]), _border(parts[-1][-1])
    name = r"[\W_]?".join(map(re.escape, parts))
    return rf"(?<!{before}){name}(?!{behind})"


def _border(char: str) -> str:
    """Return what may not stand beside a name that begins or ends with `char`.

    For scripts without spaces that is nothing: the last pattern never matches.
    """
    if char.isdigit():
        return r"\d"
    return "[a-z]" if char.isascii() else r"[^\s\S]"
