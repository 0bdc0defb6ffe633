"""Answers a call from an index that this process opens itself."""

import os
from contextlib import suppress
from functools import partial
from typing import Any

import anyio

from vector_index_mcp.console.documents.progress import Show
from vector_index_mcp.documents import calls
from vector_index_mcp.documents.home import Home
from vector_index_mcp.documents.service import Documents
from vector_index_mcp.errors import StoreError
from vector_index_mcp.indexing.role import Role
from vector_index_mcp.serving.loading import open_documents
from vector_index_mcp.settings import Settings

_LOOKS = {"status", "contexts"}
"""Calls that show the index as it is; the others bring it up to date first."""
_UPDATES = {"update", "add"}
"""Calls that bring the index up to date themselves, and count what changes."""
_ERROR_SECONDS = 5.0  # after this time an error is raised; a service would retry for ever
_LOOK_SECONDS = 0.2
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
    """Return the answer to the call `name`; None if another process writes the index.

    Args:
        home: The places of the configuration and the index.
        settings: The settings to open the index with.
        name: The name of the call.
        given: The arguments of the call.
        show: Shows the progress.
        waits: Whether to return None while another process writes, so that the caller can wait
            and try again; otherwise the call fails then.
    """

    async def tell(progress: dict[str, Any]) -> None:
        show(progress)

    documents = await open_documents(home.configuration, settings)
    fail = partial(_fail_in_the_end, documents, is_writing=name in _WRITES)
    is_there = os.path.exists(home.index)  # noqa: ASYNC240 - one look
    role = Role.READER if is_there and name in _LOOKS else Role.DEPUTY
    async with documents.running(role):
        if waits and name in _WRITES and await documents.index.is_kept_elsewhere():
            return None
        if role is not Role.READER and name not in _UPDATES:
            with suppress(StoreError):  # it is logged, and the index can be searched as it is
                async with calls.beside(fail):
                    await calls.catch_up(documents, tell)
        async with calls.beside(fail):
            return await calls.answer(documents, name, given, tell)


async def _fail_in_the_end(documents: Documents, *, is_writing: bool) -> None:
    """Raise the error of an index that cannot be written, once it has lasted for 5 seconds.

    Whoever only reads can do so while another process, which may hang, has the index.
    """
    since = None
    while True:
        await anyio.sleep(_LOOK_SECONDS)
        is_ours = is_writing or documents.index.indexer is not None
        error = documents.index.progress.error
        since = (since or anyio.current_time()) if error and is_ours else None
        if since is not None and anyio.current_time() - since > _ERROR_SECONDS:
            raise StoreError(error)
