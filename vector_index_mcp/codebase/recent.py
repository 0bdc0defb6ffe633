"""The last queries and their best hits, in memory only."""

from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import TYPE_CHECKING

from vector_index_mcp.engine.types import Hit

if TYPE_CHECKING:  # imports LanceDB, which the page must not wait for
    from vector_index_mcp.codebase.answer import Answer

MOST_KEPT = 200
MOST_SHOWN = 50
MOST_PLACES = 5
MOST_QUERY_CHARS = 500
_TYPING = timedelta(seconds=5)  # after a longer pause, a query on the page counts as a new one


class Asker(StrEnum):
    """The kind of client that asks."""

    CLIENT = "client"
    PAGE = "page"
    """The page, which searches again and again while somebody types."""


@dataclass(frozen=True, slots=True)
class Place:
    """The place of a hit."""

    path: str
    start_line: int
    end_line: int
    score: float


@dataclass(frozen=True, slots=True)
class Asked:
    """A query that was answered."""

    query: str
    """The query, or its beginning if it was very long."""
    asker: Asker
    path: str
    language: str
    at: datetime
    seconds: float
    is_hybrid: bool
    found: int
    best: tuple[Place, ...]


@dataclass(frozen=True, slots=True)
class Repeated:
    """A query with the same path and language, asked once or more often."""

    last: Asked
    times: Mapping[Asker, int]
    """How often each kind of client asked it; the one that asked last comes first."""


class RecentQueries:
    """The last queries, oldest first."""

    def __init__(self) -> None:
        self.revision = 0
        """How many queries were noted since the start."""
        self._kept: deque[Asked] = deque(maxlen=MOST_KEPT)

    def note(self, asked: Asked) -> None:
        """Keep `asked`; on the page it replaces the query that the user goes on typing."""
        self.revision += 1
        if self._kept and _continues(asked, self._kept[-1]):
            self._kept.pop()
        self._kept.append(asked)

    @property
    def last(self) -> Asked | None:
        """The last query; None if there was none."""
        return self._kept[-1] if self._kept else None

    def repeated(self) -> list[Repeated]:
        """The last different queries, newest first, each with how often it was asked."""
        last: dict[tuple[str, str, str], Asked] = {}
        times: dict[tuple[str, str, str], Counter[Asker]] = {}
        for each in reversed(self._kept):
            what = each.query, each.path, each.language
            last.setdefault(what, each)
            times.setdefault(what, Counter())[each.asker] += 1
        return [Repeated(last[what], times[what]) for what in last][:MOST_SHOWN]


def asked(answer: "Answer", asker: Asker) -> Asked:
    """Make the record of a query that has just been answered."""
    wanted = answer.wanted
    return Asked(
        query=(wanted.query.text or f"like {wanted.sample}")[:MOST_QUERY_CHARS],
        asker=asker,
        path=wanted.path[:MOST_QUERY_CHARS],
        language=wanted.language,
        at=datetime.now(UTC),
        seconds=answer.seconds,
        is_hybrid=answer.is_hybrid,
        found=len(answer.hits),
        best=tuple(map(_place, answer.hits[:MOST_PLACES])),
    )


def _place(hit: Hit) -> Place:
    chunk = hit.chunk
    return Place(chunk.key, chunk.start_line, chunk.end_line, hit.likelihood)


def _continues(later: Asked, earlier: Asked) -> bool:
    """Whether both queries come from one user who is typing on the page: one begins the other."""
    if not later.asker is earlier.asker is Asker.PAGE or later.at - earlier.at > _TYPING:
        return False
    return later.query.startswith(earlier.query) or earlier.query.startswith(later.query)
