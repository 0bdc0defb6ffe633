"""What is new, for an open page: a stream of events that says something when something changed.

The index reports its changes to nobody, so the page looks for them: its progress costs nothing.
"""

import json
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

import anyio

from vector_index_mcp.codebase import wire
from vector_index_mcp.page import answers

if TYPE_CHECKING:  # the link is there before LanceDB is imported
    from vector_index_mcp.codebase.service import Codebase

_LOOK_SECONDS = 0.3  # so that no more is said than somebody can read
_SILENT_SECONDS = 15.0  # then the status is sent anyway: sizes change without a sign
_RETRY_MS = 1_000


async def stream(codebase: "Codebase", ending: anyio.Event) -> AsyncIterator[str]:
    """Server-sent events `status` and `recent` until `ending`; both at once at the beginning."""
    yield f"retry: {_RETRY_MS}\n\n"
    looks, sent, asked = 0, None, None
    while not ending.is_set():
        progress = codebase.index.progress
        if progress != sent or looks * _LOOK_SECONDS >= _SILENT_SECONDS:
            sent, looks = progress, 0
            status = await wire.index_status(codebase)
            yield _event("status", status.model_dump(mode="json"))
        if codebase.recent.revision != asked:
            asked = codebase.recent.revision
            yield _event("recent", answers.of_recent(codebase))
        looks += 1
        with anyio.move_on_after(_LOOK_SECONDS):
            await ending.wait()


def _event(name: str, data: Any) -> str:
    return f"event: {name}\ndata: {json.dumps(data)}\n\n"
