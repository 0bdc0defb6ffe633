"""The interface between the pages and the routes: what a page can answer, change and report."""

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import anyio

from vector_index_mcp.indexing.remedies import Remedies

Answer = Callable[[Mapping[str, str]], Awaitable[Any]]
"""Answers a question of the page: takes its parameters, returns values of JSON."""

Change = Callable[[Mapping[str, Any]], Awaitable[Any]]
"""Makes a change that the page asks for: takes and returns values of JSON."""

NOTHING: Mapping[str, Change] = {}
"""The changes of a page that changes nothing."""

_LOOK_SECONDS = 0.3  # send news no more often than somebody can read it
_SILENT_SECONDS = 15.0  # after this time, repeated news are sent even if their sign is the same
_RETRY_MS = 1_000


@dataclass(frozen=True, slots=True)
class News:
    """Values that an open page gets whenever they have changed."""

    name: str
    """The name of the event."""
    sign: Callable[[], Any]
    """Returns a value that differs whenever the news have changed; cheap, so it is called often."""
    values: Callable[[], Awaitable[Any]]
    """Returns the news, as values of JSON."""
    is_repeated: bool = False
    """Whether to send the news now and then even if the sign is the same, as sizes may change."""


class Content(Protocol):
    """The content of the page of a tool set."""

    @property
    def index(self) -> str:
        """The name of the page's HTML file."""

    @property
    def command(self) -> str:
        """The command that makes a link to the page."""

    @property
    def remedies(self) -> Remedies:
        """The remedies that error messages recommend."""

    @property
    def answers(self) -> Mapping[str, Answer]:
        """The questions that the page can ask, by the last part of the path."""

    @property
    def changes(self) -> Mapping[str, Change]:
        """The changes that the page can ask for, by the last part of the path."""

    async def news(self) -> Sequence[News]:
        """Return the news that an open page gets."""


async def events(news: Sequence[News], ending: anyio.Event) -> AsyncIterator[str]:
    """Yield server-sent events until `ending` is set; all `news` are sent once at the beginning.

    The index does not report its changes, so this compares the signs regularly.
    """
    yield f"retry: {_RETRY_MS}\n\n"
    looks = 0
    sent: dict[str, Any] = {}
    while not ending.is_set():
        is_due = looks * _LOOK_SECONDS >= _SILENT_SECONDS
        looks = 0 if is_due else looks + 1
        for each in news:
            sign = each.sign()
            if each.name not in sent or sign != sent[each.name] or (is_due and each.is_repeated):
                sent[each.name] = sign
                yield _event(each.name, await each.values())
        with anyio.move_on_after(_LOOK_SECONDS):
            await ending.wait()


def _event(name: str, data: Any) -> str:
    return f"event: {name}\ndata: {json.dumps(data)}\n\n"
