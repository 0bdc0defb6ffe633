"""What the page shows: the answers of the tools, with colours and marks added."""

from typing import TYPE_CHECKING, Any

import anyio.to_thread

from vector_index_mcp.codebase import wire
from vector_index_mcp.codebase.limits import MAX_TOKENS
from vector_index_mcp.codebase.recent import Asked, Asker
from vector_index_mcp.engine.words import words
from vector_index_mcp.errors import QueryError
from vector_index_mcp.foreign import visible
from vector_index_mcp.page import folders, highlight

if TYPE_CHECKING:  # the link is there before LanceDB is imported
    from vector_index_mcp.codebase.asking import Answer
    from vector_index_mcp.codebase.service import Codebase

TOP_K = 20
LONGEST_QUERY_CHARS = 2_000


async def of_search(codebase: "Codebase", query: str, path: str, language: str) -> dict[str, Any]:
    """The answer of `search_index`, with its texts as coloured spans.

    Raises:
        QueryError: If the query is empty or too long, or a filter means nothing.
        StoreError: If there is no index that could be read.
    """
    if len(query) > LONGEST_QUERY_CHARS:
        raise QueryError(
            f"the query is longer than {LONGEST_QUERY_CHARS:,} characters; ask for less at once"
        )
    answer = await codebase.search(query, TOP_K, path=path, language=language, asker=Asker.PAGE)
    return await anyio.to_thread.run_sync(_searched, answer)


def _searched(answer: "Answer") -> dict[str, Any]:
    subject = answer.wanted.query.subject
    result = wire.search_result(answer, MAX_TOKENS[1])  # an eye has no budget
    hits = [_hit(hit, subject) for hit in result.results]
    values = result.model_dump(mode="json", include={"mode", "note"})
    return values | {"seconds": answer.seconds, "words": subject, "results": hits}


def _hit(hit: wire.SearchHit, subject: list[str]) -> dict[str, Any]:
    text = visible(hit.extracted_text_chunk, keep="\n\t").rstrip()
    seen = set(words(f"{hit.file_path} {hit.scope} {text}"))
    values = hit.model_dump(mode="json", exclude={"extracted_text_chunk"})
    return values | {
        "spans": highlight.spans(text, hit.language, frozenset(subject)),
        "matched": [word for word in subject if word in seen],
    }


async def of_map(codebase: "Codebase", folder: str) -> dict[str, Any]:
    """What lies in `folder`, a path below the project with slashes; empty for the project.

    Raises:
        StoreError: If there is no index that could be read.
    """
    async with codebase.index.reading() as (_, ledger):
        records = ledger.all()
    part = await anyio.to_thread.run_sync(folders.look_into, folder, records)
    return part.values() | {"folder": folder}


def of_recent(codebase: "Codebase") -> list[dict[str, Any]]:
    """The last queries, the newest first."""
    return [_asked(asked) for asked in codebase.recent.newest_first()]


def _asked(asked: Asked) -> dict[str, Any]:
    return {
        "query": asked.query,
        "asker": asked.asker.value,
        "path": asked.path,
        "language": asked.language,
        "at": asked.at.isoformat(),
        "seconds": asked.seconds,
        "mode": asked.mode,
        "found": asked.found,
        "best": [
            {"path": p.path, "start_line": p.start_line, "end_line": p.end_line, "score": p.score}
            for p in asked.best
        ],
    }
