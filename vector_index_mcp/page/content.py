"""What a page shows, as the routes need to know it."""

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import anyio

from vector_index_mcp.indexing.remedies import Remedies

Answer = Callable[[Mapping[str, str]], Awaitable[Any]]
"""Answers a question of the page: its parameters to what JSON can hold."""

Change = Callable[[Mapping[str, Any]], Awaitable[Any]]
"""Does what somebody asks for on the page: JSON to what JSON can hold."""

NOTHING: Mapping[str, Change] = {}
"""What can be done on a page that only shows."""

_LOOK_SECONDS = 0.3  # so that no more is said than somebody can read
_SILENT_SECONDS = 15.0  # then it is sent anyway: sizes change without a sign
_RETRY_MS = 1_000


@dataclass(frozen=True, slots=True)
class News:
    """Something that an open page is told when it changes."""

    name: str
    sign: Callable[[], Any]
    """What differs whenever it has changed; costs nothing, so it may be asked often."""
    values: Callable[[], Awaitable[Any]]
    """What is told."""
    is_repeated: bool = False
    """Whether it is told now and then without a sign as well."""


class Content(Protocol):
    """The page of a tool set."""

    @property
    def index(self) -> str:
        """The file that is shown first."""

    @property
    def command(self) -> str:
        """The command that makes a link to the page."""

    @property
    def remedies(self) -> Remedies:
        """What to do about an error."""

    @property
    def answers(self) -> Mapping[str, Answer]:
        """What the page can ask, by the last part of the path."""

    @property
    def changes(self) -> Mapping[str, Change]:
        """What can be done on the page, by the last part of the path; most pages only show."""

    async def news(self) -> Sequence[News]:
        """What an open page is told."""


async def events(news: Sequence[News], ending: anyio.Event) -> AsyncIterator[str]:
    """Server-sent events until `ending`; each of `news` once at the beginning.

    The index reports its changes to nobody, so the signs are looked at.
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
