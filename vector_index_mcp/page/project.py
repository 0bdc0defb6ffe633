"""The page of a project: the answers of the tools, with colours and marks added."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import anyio.to_thread

from vector_index_mcp.codebase import wire
from vector_index_mcp.codebase.limits import MAX_TOKENS
from vector_index_mcp.codebase.recent import Asked, Asker
from vector_index_mcp.codebase.remedies import REMEDIES
from vector_index_mcp.engine.words import words
from vector_index_mcp.errors import QueryError
from vector_index_mcp.foreign import visible
from vector_index_mcp.page import folders, highlight
from vector_index_mcp.page.content import NOTHING, Change, News

if TYPE_CHECKING:  # the link is there before LanceDB is imported
    from vector_index_mcp.codebase.asking import Answer
    from vector_index_mcp.codebase.service import Codebase

GetService = Callable[[], Awaitable["Codebase"]]

TOP_K = 20
LONGEST_QUERY_CHARS = 2_000


class ProjectPage:
    """What the page of a project shows."""

    index = "index.html"
    command = "vector-index-mcp ui PATH"
    remedies = REMEDIES
    changes: Mapping[str, Change] = NOTHING

    def __init__(self, get_service: GetService) -> None:
        self._get_service = get_service
        self.answers = {"search": self._search, "map": self._map}

    async def _search(self, given: Mapping[str, str]) -> Any:
        query, path, language = (given.get(name, "") for name in ("query", "path", "language"))
        return await _of_search(await self._get_service(), query, path, language)

    async def _map(self, given: Mapping[str, str]) -> Any:
        return await _of_map(await self._get_service(), given.get("folder", ""))

    async def news(self) -> Sequence[News]:
        """The status of the index, and the last queries."""
        codebase = await self._get_service()

        async def status() -> Any:
            return (await wire.index_status(codebase)).model_dump(mode="json")

        async def recent() -> Any:
            return [_asked(asked) for asked in codebase.recent.newest_first()]

        return (
            News("status", lambda: codebase.index.progress, status, is_repeated=True),
            News("recent", lambda: codebase.recent.revision, recent),
        )


async def _of_search(codebase: "Codebase", query: str, path: str, language: str) -> dict[str, Any]:
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


async def _of_map(codebase: "Codebase", folder: str) -> dict[str, Any]:
    """What lies in `folder`, a path below the project with slashes; empty for the project.

    Raises:
        StoreError: If there is no index that could be read.
    """
    async with codebase.index.reading() as (_, ledger):
        records = ledger.all()
    part = await anyio.to_thread.run_sync(folders.look_into, folder, records)
    return part.values() | {"folder": folder}


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
