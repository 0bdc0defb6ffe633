"""The page of a project: search results with colours and marks, whole files, and a map."""

from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread

from vector_index_mcp import editors
from vector_index_mcp.codebase import rendering, wire
from vector_index_mcp.codebase.hits import SearchHit
from vector_index_mcp.codebase.limits import MAX_TOKENS
from vector_index_mcp.codebase.recent import Asker, Repeated
from vector_index_mcp.codebase.remedies import REMEDIES
from vector_index_mcp.engine.text.words import words
from vector_index_mcp.errors import QueryError
from vector_index_mcp.files.language import languages_meant_by
from vector_index_mcp.foreign import visible
from vector_index_mcp.page import folders, highlight, whole
from vector_index_mcp.page.content import NOTHING, Change, News

if TYPE_CHECKING:  # a link to the page can be given before LanceDB is imported
    from vector_index_mcp.codebase.answer import Answer
    from vector_index_mcp.codebase.service import Codebase

GetService = Callable[[], Awaitable["Codebase"]]

TOP_K = 20
LONGEST_QUERY_CHARS = 2_000
_MOST_DIGITS = 9


class ProjectPage:
    """The content of a project's page."""

    index = "index.html"
    command = "vector-index-mcp ui PATH"
    remedies = REMEDIES
    changes: Mapping[str, Change] = NOTHING

    def __init__(
        self, get_service: GetService, template: str = editors.KNOWN[editors.DEFAULT]
    ) -> None:
        """Prepare the answers.

        Args:
            get_service: Waits for the running service and returns it.
            template: The address that opens a file in an editor, from `editors`; empty for none.
        """
        self._get_service = get_service
        self._template = template
        self._reading = anyio.CapacityLimiter(1)  # a long file keeps a processor busy for a while
        self.answers = {
            "search": self._search,
            "file": self._file,
            "languages": self._languages,
            "map": self._map,
        }

    async def _search(self, given: Mapping[str, str]) -> Any:
        """Search; return the answer of `search_index` with its texts as coloured spans.

        Raises:
            QueryError: If the query is empty or too long, or a filter is invalid.
            StoreError: If no index can be read.
        """
        query, path, language = (given.get(name, "") for name in ("query", "path", "language"))
        if len(query) > LONGEST_QUERY_CHARS:
            raise QueryError(
                f"the query is longer than {LONGEST_QUERY_CHARS:,} characters; ask for less at once"
            )
        codebase = await self._get_service()
        answer = await codebase.search(query, TOP_K, path=path, language=language, asker=Asker.PAGE)
        return await anyio.to_thread.run_sync(self._searched, answer, codebase.root)

    def _searched(self, answer: "Answer", root: Path) -> dict[str, Any]:
        subject = answer.searched.subject
        # People need no budget.
        result = rendering.search_result(answer, MAX_TOKENS[1], explain=True)
        hits = [
            _hit(hit, subject) | self._edited(root, hit.file_path, hit.start_line)
            for hit in result.results
        ]
        return {
            "mode": result.mode,
            "note": result.told,
            "is_limited": bool(result.note),
            "seconds": answer.seconds,
            "words": subject,
            "results": hits,
        }

    async def _file(self, given: Mapping[str, str]) -> Any:
        """Return an indexed file as it is now, around a line.

        Raises:
            QueryError: If the line is not a number.
            UnknownError: If the file is not indexed, or may not be shown.
            StoreError: If no index can be read.
        """
        key, line = given.get("path", ""), given.get("line") or "1"
        if not (line.isascii() and line.isdigit() and len(line) <= _MOST_DIGITS):
            raise QueryError("the line must be a number")
        codebase = await self._get_service()
        async with codebase.index.reading() as (_, ledger):
            record = whole.record_of(ledger, key)
        found = await anyio.to_thread.run_sync(
            whole.shown, codebase.project, record, int(line), limiter=self._reading
        )
        return found | self._edited(codebase.root, key, max(1, min(int(line), found["lines"])))

    def _edited(self, root: Path, key: str, line: int) -> dict[str, str]:
        if not self._template:
            return {"editor": ""}
        return {"editor": editors.link(self._template, root / key, line)}

    async def _languages(self, given: Mapping[str, str]) -> Any:
        """Return the languages of the indexed files, each with how many files its filter finds.

        Raises:
            StoreError: If no index can be read.
        """
        codebase = await self._get_service()
        async with codebase.index.reading() as (index, _):
            files = Counter(await index.store.contents.languages())
        return {
            language: sum(files[each] for each in languages_meant_by(language) or ())
            for language in sorted(files)
        }

    async def _map(self, given: Mapping[str, str]) -> Any:
        return await _of_map(await self._get_service(), given.get("folder", ""))

    async def news(self) -> Sequence[News]:
        """Return the news of the page: the status of the index, and the last queries."""
        codebase = await self._get_service()

        async def status() -> Any:
            return (await wire.index_status(codebase)).model_dump(mode="json")

        async def recent() -> Any:
            return [_asked(each) for each in codebase.recent.repeated()]

        return (
            News("status", lambda: codebase.index.progress, status, is_repeated=True),
            News("recent", lambda: codebase.recent.revision, recent),
        )


def _hit(hit: SearchHit, subject: list[str]) -> dict[str, Any]:
    text = visible(hit.extracted_text_chunk, keep="\n\t").rstrip()
    seen = set(words(f"{hit.file_path} {hit.scope} {text}"))
    values = hit.model_dump(mode="json", exclude={"extracted_text_chunk"})
    return values | {
        "spans": highlight.spans(text, hit.language, frozenset(subject)),
        "matched": [word for word in subject if word in seen],
    }


async def _of_map(codebase: "Codebase", folder: str) -> dict[str, Any]:
    """Return the map of `folder`, a path below the project with slashes; empty for the project.

    Raises:
        StoreError: If no index can be read.
    """
    async with codebase.index.reading() as (_, ledger):
        records = ledger.all()
    part = await anyio.to_thread.run_sync(folders.look_into, folder, records)
    return part.values() | {"folder": folder}


def _asked(repeated: Repeated) -> dict[str, Any]:
    asked = repeated.last
    return {
        "query": asked.query,
        "asker": asked.asker.value,
        "times": {asker.value: times for asker, times in repeated.times.items()},
        "path": asked.path,
        "language": asked.language,
        "at": asked.at.isoformat(),
        "seconds": asked.seconds,
        "mode": "hybrid" if asked.is_hybrid else "lexical",
        "found": asked.found,
        "best": [
            {"path": p.path, "start_line": p.start_line, "end_line": p.end_line, "score": p.score}
            for p in asked.best
        ],
    }
