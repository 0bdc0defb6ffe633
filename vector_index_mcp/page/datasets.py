"""The page of the datasets: lists them with their errors, searches them, and makes new ones."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import anyio.to_thread

from vector_index_mcp.datasets.arguments import EVERYTHING, WrongArguments, asked
from vector_index_mcp.datasets.limits import ENDINGS
from vector_index_mcp.datasets.refusal import Code, Refusal
from vector_index_mcp.datasets.remedies import REMEDIES
from vector_index_mcp.engine.prose.stems import asked_stems
from vector_index_mcp.errors import QueryError, VectorIndexError
from vector_index_mcp.page import marking
from vector_index_mcp.page.content import Change, News

if TYPE_CHECKING:  # a link to the page can be given before LanceDB is imported
    from vector_index_mcp.datasets.dataset import Result
    from vector_index_mcp.datasets.service import Datasets
    from vector_index_mcp.datasets.workshop import Job

GetService = Callable[[], Awaitable["Datasets"]]

_RESULTS = 20
_SNIPPET_CHARS = 600


class DatasetsPage:
    """The content of the page of the datasets."""

    index = "datasets.html"
    command = "vector-index-mcp datasets ui"
    remedies = REMEDIES

    def __init__(self, get_service: GetService) -> None:
        self._get_service = get_service
        self.answers = {"search": self._search}
        self.changes: Mapping[str, Change] = {"make": self._make, "cancel": self._cancel}

    async def news(self) -> Sequence[News]:
        """Return the news of the page: the datasets, and those that are being made."""
        datasets = await self._get_service()
        registry = datasets.registry

        async def status() -> Any:
            from vector_index_mcp.datasets import listing

            return {
                "folder": str(registry.root),
                "is_loading": registry.is_loading,
                "datasets": await listing.listed(datasets),
                "endings": ENDINGS,
            }

        async def jobs() -> Any:
            return [_job(job) for job in reversed(datasets.workshop.jobs)]

        return (
            News(
                "status", lambda: (datasets.registry.revision, datasets.registry.is_loading), status
            ),
            News("jobs", lambda: [_sign(job) for job in datasets.workshop.jobs], jobs),
        )

    async def _search(self, given: Mapping[str, str]) -> Any:
        query = given.get("query", "")
        wanted = {"dataset": given.get("dataset") or EVERYTHING, "query": query, "topK": _RESULTS}
        try:
            question = asked(wanted)
        except WrongArguments as error:
            raise QueryError("Ask a question of at most 1,024 characters.") from error
        datasets = await self._get_service()
        try:
            found = await datasets.search(question)
        except Refusal as refusal:
            is_wrong = refusal.code is Code.DATASET_NOT_FOUND
            raise (QueryError if is_wrong else VectorIndexError)(str(refusal)) from refusal
        stems = frozenset(asked_stems(query))
        return {
            "milliseconds": found.milliseconds,
            "note": "; ".join(found.notes),
            "results": [_result(each, stems) for each in found.results],
        }

    async def _make(self, given: Mapping[str, Any]) -> Any:
        from vector_index_mcp.datasets import workshop

        datasets = await self._get_service()
        allow_broad = datasets.workshop.allow_broad
        order = await anyio.to_thread.run_sync(
            lambda: workshop.order_of(given, allow_broad=allow_broad)
        )
        return _job(await datasets.workshop.begin(order))

    async def _cancel(self, given: Mapping[str, Any]) -> Any:
        number = given.get("number")
        if type(number) is not int:
            raise QueryError("Give the number of the dataset's job.")
        (await self._get_service()).workshop.cancel(number)
        return {}


def _sign(job: "Job") -> tuple[Any, ...]:
    return job.number, job.what, job.done, job.total, job.ended.is_set()


def _job(job: "Job") -> dict[str, Any]:
    made = job.made
    return {
        "number": job.number,
        "id": job.order.about.id,
        "source": str(job.order.source),
        "what": job.what,
        "done": job.done,
        "total": job.total,
        "has_ended": job.ended.is_set(),
        "error": job.error if job.ended.is_set() else "",
        "documents": made.documents if made else 0,
        "chunks": made.chunks if made else 0,
    }


def _result(result: "Result", stems: frozenset[str]) -> dict[str, Any]:
    text = result.snippet[:_SNIPPET_CHARS]
    return {
        "dataset": result.dataset,
        "score": result.score,
        "title": result.title,
        "path": result.path,
        "lines": [marking.by_stems(line, stems) for line in text.splitlines() if line.strip()],
    }
