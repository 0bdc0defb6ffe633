"""The calls with which commands ask a codebase: JSON values in, JSON values out.

A command that calls a service this way imports neither MCP nor LanceDB, which saves a second.
"""

import shlex
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeAlias

from vector_index_mcp.codebase import arguments, rendering, wire
from vector_index_mcp.codebase.arguments import ExplainedArguments, TriggerArguments
from vector_index_mcp.codebase.hits import Detail
from vector_index_mcp.codebase.service import Codebase
from vector_index_mcp.codebase.triggering import triggered
from vector_index_mcp.codebase.wanted import Likeness
from vector_index_mcp.errors import QueryError
from vector_index_mcp.indexing.answering.asking import OnLoading
from vector_index_mcp.indexing.following import (
    Tell,
    follow_fetch,
    follow_text,
    follow_vectors,
    loading_shown,
    passed_on,
)

Values: TypeAlias = dict[str, Any]


async def answer(codebase: Codebase, name: str, given: Mapping[str, Any], tell: Tell) -> Values:
    """Answer a call.

    Args:
        codebase: It must be running.
        name: The name of the call, one of `CALLS`.
        given: The arguments.
        tell: Sends the progress to the caller.

    Raises:
        QueryError: If there is no such call, or an argument is wrong.
        VectorIndexError: If the call fails.
    """
    if name not in CALLS:
        raise QueryError(
            f"there is no call {name[:100]!r}; command and service are of different versions: end "
            f"the service with `vector-index-mcp stop {shlex.quote(str(codebase.root))}`, and try "
            "again"
        )
    return await CALLS[name](codebase, given, tell)


async def _search(codebase: Codebase, given: Mapping[str, Any], tell: Tell) -> Values:
    """Wait until all text is indexed and the model is loaded, then search.

    A person rather waits for the model than reads an answer by words alone.
    """
    asked = arguments.checked("search", ExplainedArguments, given)
    async with passed_on(tell) as show:
        await follow_fetch(show, codebase.index)
        if run := await codebase.index.catching_up():
            await follow_text(show, run)
        return await _found(codebase, asked, wait_for_model=True, on_loading=loading_shown(show))


async def _find(codebase: Codebase, given: Mapping[str, Any], _: Tell) -> Values:
    """Search what is indexed now, as the tool does; `refused` says what is wrong with a query."""
    try:
        like = given.get("like")
        own = {name: value for name, value in given.items() if name != "like"}
        asked = arguments.checked("search", ExplainedArguments, own)
        return await _found(
            codebase,
            asked,
            wait_for_model=False,
            of_a_miss=asked.detail_of_a_miss,
            like=Likeness.of(like) if like else None,
        )
    except QueryError as error:
        return {"refused": str(error)}


async def _found(
    codebase: Codebase,
    asked: ExplainedArguments,
    *,
    wait_for_model: bool,
    on_loading: OnLoading | None = None,
    of_a_miss: Detail | None = None,
    like: Likeness | None = None,
) -> Values:
    found = await codebase.search(
        asked.query,
        asked.top_k,
        **asked.limits,
        like=like,
        wait_for_model=wait_for_model,
        on_loading=on_loading,
    )
    result = rendering.search_result(
        found, asked.max_tokens, asked.detail, of_a_miss=of_a_miss, explain=asked.explain
    )
    return result.model_dump(mode="json")


async def _sample(codebase: Codebase, given: Mapping[str, Any], _: Tell) -> Values:
    """The chunk at `similar_to`: its `text`, `path` and `lines`, and its `Likeness` as `like`.

    Empty if it names no chunk.
    """
    try:
        chunk, like = await codebase.sample(str(given.get("similar_to", "")))
    except QueryError:
        return {}
    lines = [chunk.start_line, chunk.end_line]
    values = {"text": chunk.text, "path": chunk.key, "lines": lines}
    return values | ({"like": like.as_json()} if like is not None else {})


async def _trigger(codebase: Codebase, given: Mapping[str, Any], _: Tell) -> Values:
    """Answer like `trigger_index`; nobody follows the progress."""
    asked = arguments.checked("trigger", TriggerArguments, given)

    async def report(*_: object) -> None:
        pass

    result = await triggered(codebase, report, force_reindex=asked.force_reindex)
    return result.model_dump(mode="json")


async def _status(codebase: Codebase, _: Mapping[str, Any], __: Tell) -> Values:
    """Answer like `get_status`."""
    return (await wire.index_status(codebase)).model_dump(mode="json")


async def _index(codebase: Codebase, given: Mapping[str, Any], tell: Tell) -> Values:
    """Bring text and vectors up to date; returns the `run` and the `status` after it."""
    asked = arguments.checked("index", TriggerArguments, given)
    async with passed_on(tell) as show:
        await follow_fetch(show, codebase.index)
        run = await codebase.index.trigger(force_reindex=asked.force_reindex)
        await follow_text(show, run)
        await follow_vectors(show, codebase.index)
    status = await wire.index_status(codebase)
    return {
        "run": wire.run_report(run).model_dump(mode="json"),
        "status": status.model_dump(mode="json"),
    }


CALLS: Mapping[str, Callable[[Codebase, Mapping[str, Any], Tell], Awaitable[Values]]] = {
    "search": _search,
    "find": _find,
    "sample": _sample,
    "trigger": _trigger,
    "status": _status,
    "index": _index,
}
