"""The answer to a call from an index that this process opens itself."""

import os
from typing import Any

from vector_index_mcp.console.documents.progress import Show
from vector_index_mcp.documents import calls
from vector_index_mcp.documents.home import Home
from vector_index_mcp.indexing.keeper import Role
from vector_index_mcp.serving.loading import open_documents
from vector_index_mcp.settings import Settings

_LOOKS = {"status", "contexts"}
"""Calls that show the index as it is; the others bring it up to date first."""
_UPDATES = {"update", "add"}
"""Calls that bring it up to date themselves, and count what changes."""
_WRITES = _UPDATES | {"remove", "rename", "embed", "cleanup"}
"""Calls that only the index's writer can answer."""


async def answered(
    home: Home,
    settings: Settings,
    name: str,
    given: dict[str, Any],
    show: Show,
    *,
    waits: bool,
) -> Any | None:
    """The answer to the call `name`; None if it has to wait for another process.

    Args:
        home: Where configuration and index lie.
        settings: How the index is opened.
        name: Of the call.
        given: Its arguments.
        show: Is told how far the answer is.
        waits: Whether whoever asks would rather wait than be told that another process writes.
    """

    async def tell(progress: dict[str, Any]) -> None:
        show(progress)

    documents = await open_documents(home.configuration, settings)
    is_there = os.path.exists(home.index)  # noqa: ASYNC240 - one look
    role = Role.READER if is_there and name in _LOOKS else Role.VISITOR
    async with documents.running(role):
        if waits and name in _WRITES and await documents.index.is_kept_elsewhere():
            return None
        if role is Role.VISITOR and name not in _UPDATES:
            await calls.catch_up(documents, tell)
        return await calls.answer(documents, name, given, tell)
