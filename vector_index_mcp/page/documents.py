"""The page of documents: search over all collections, rendered documents, and their links."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from itertools import dropwhile
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread

from vector_index_mcp.documents.conditions import date_of
from vector_index_mcp.documents.remedies import REMEDIES
from vector_index_mcp.documents.uris import uri_of
from vector_index_mcp.engine.text import front_matter
from vector_index_mcp.errors import NoVectorsError, QueryError, UnknownError
from vector_index_mcp.page import marking, markup
from vector_index_mcp.page.content import NOTHING, Change, News

if TYPE_CHECKING:  # a link to the page can be given before LanceDB is imported
    from vector_index_mcp.documents.asking import Answer, Found
    from vector_index_mcp.documents.catalog import Entry
    from vector_index_mcp.documents.retrieval import Text
    from vector_index_mcp.documents.service import Documents

GetService = Callable[[], Awaitable["Documents"]]

_RESULTS = 20
_MOST_LISTED = 1_000
_NO_WORDS = "No result has a word of the query; these are the nearest by meaning."
_SNIPPET_CHARS = 500
_PLAIN = {".txt", ".text", ".rst", ".adoc", ".asciidoc", ".org"}
"""Extensions of documents that are not Markdown and are not converted to it."""


class DocumentsPage:
    """The content of the page of documents."""

    index = "documents.html"
    command = "vector-index-mcp documents ui"
    remedies = REMEDIES
    changes: Mapping[str, Change] = NOTHING

    def __init__(self, get_service: GetService) -> None:
        self._get_service = get_service
        self._rendering = anyio.CapacityLimiter(1)  # a long text keeps a processor busy for 1 s
        self.answers = {
            "search": self._search,
            "document": self._document,
            "list": self._list,
        }

    async def news(self) -> Sequence[News]:
        """Return the news of the page: the status of the index and its collections."""
        documents = await self._get_service()

        async def status() -> Any:
            return await _status(documents)

        return (
            News(
                "status",
                lambda: (documents.index.progress, documents.configuration, documents.problem),
                status,
                is_repeated=True,
            ),
        )

    async def _search(self, given: Mapping[str, str]) -> Any:
        from vector_index_mcp.documents import asking

        try:
            mode = asking.Mode(given.get("mode") or "query")
        except ValueError as error:
            raise QueryError("the mode must be search, vsearch or query") from error
        wanted = asking.Wanted(
            given.get("query", ""),
            mode,
            limit=_RESULTS,
            collection=given.get("collection", ""),
        )
        documents = await self._get_service()
        if wanted.collection:
            documents.configuration.named(wanted.collection)
        try:
            answer = await asking.search(documents, wanted)
        except NoVectorsError as error:
            raise QueryError(str(error)) from error
        return await anyio.to_thread.run_sync(_searched, answer)

    async def _document(self, given: Mapping[str, str]) -> Any:
        from vector_index_mcp.documents import catalog, retrieval

        documents, key = await self._get_service(), given.get("key", "")
        found = await retrieval.get(documents, uri_of(key), retrieval.Part())
        if isinstance(found, retrieval.Missing) or found.key != key:
            raise UnknownError(f"There is no document {key} now; it may have been removed.")
        ledger = await documents.known()
        entry = catalog.entry_at(ledger, key)
        links = await documents.link_map(ledger)

        def target(link: str) -> str:
            return links.target_of(entry, link) if entry is not None else ""

        def titled(keys: Sequence[str]) -> list[dict[str, str]]:
            entries = ((other, catalog.entry_at(ledger, other)) for other in keys)
            return [{"key": other, "title": e.title if e else other} for other, e in entries]

        shown = await anyio.to_thread.run_sync(_shown, found, target, limiter=self._rendering)
        linked = {"out": titled(found.links.out), "back": titled(found.links.back)}
        return shown | linked | (_about(entry) if entry is not None else {"title": found.title})

    async def _list(self, given: Mapping[str, str]) -> Any:
        from vector_index_mcp.documents import catalog

        documents, name = await self._get_service(), given.get("collection", "")
        documents.configuration.named(name)
        ledger = await documents.known()
        entries = sorted(catalog.entries_of(ledger, name), key=date_of, reverse=True)
        return {
            "total": len(entries),
            "documents": [_about(entry) for entry in entries[:_MOST_LISTED]],
        }


async def _status(documents: "Documents") -> dict[str, Any]:
    state, progress = await documents.look(), documents.index.progress
    return {
        "file": str(documents.home.configuration),
        "state": str(progress.state),
        "problem": state.problem,
        "text_revision": documents.index.pipeline.revision,
        "documents": state.documents,
        "chunks": progress.chunks,
        "embedded": progress.embedded,
        "waits_for_vectors": progress.waits_for_vectors,
        "reason": progress.embedder_reason,
        "files_done": progress.files_done,
        "files_to_do": progress.files_to_do,
        "skipped": dict(state.skipped),
        "failed": [*state.failed],
        "collections": [
            {
                "name": each.collection.name,
                "path": str(each.collection.path),
                "documents": each.documents,
                "problem": each.problem,
            }
            for each in state.collections
        ],
    }


def _about(entry: "Entry") -> dict[str, Any]:
    return {
        "key": entry.key,
        "title": entry.title,
        "tags": [*entry.properties.tags],
        "date": date_of(entry),
    }


def _searched(answer: "Answer") -> dict[str, Any]:
    from vector_index_mcp.documents.asking import BY_MEANING_ALONE

    hits = [_hit(answer, found) for found in answer.found]
    wanted = frozenset(answer.stems)
    lines = [line for hit in hits for line in hit["lines"]]
    lines += [marking.by_stems(hit["title"], wanted) for hit in hits]
    has_words = any(is_marked for line in lines for _, is_marked in line)
    is_miss = bool(hits and wanted) and not has_words and BY_MEANING_ALONE not in answer.note
    return {
        "seconds": answer.seconds,
        "note": " ".join(filter(None, (_NO_WORDS if is_miss else "", answer.note))),
        "results": hits,
    }


def _hit(answer: "Answer", found: "Found") -> dict[str, Any]:
    snippet = answer.snippet_of(found, _SNIPPET_CHARS)
    wanted = frozenset(answer.stems)
    lines = [*dropwhile(lambda line: not line.strip(), snippet.lines)]
    return _about(found.entry) | {
        "score": found.score,
        "context": found.context,
        "is_stale": found.is_stale,
        "line": snippet.line,
        "lines": [marking.by_stems(line, wanted) for line in lines],
    }


def _shown(found: "Text", target: Callable[[str], str]) -> dict[str, Any]:
    """Return a document as elements; text that is too long or not Markdown stays plain."""
    lines = found.body.split("\n")
    _, first = front_matter.split(lines)
    text = "\n".join(lines[first:])
    is_plain = PurePosixPath(found.key).suffix.lower() in _PLAIN
    nodes, left_out = markup.shown(text, target, first + 1, is_plain=is_plain)
    return {
        "key": found.key,
        "context": found.context,
        "nodes": nodes,
        "left_out": left_out,
    }
