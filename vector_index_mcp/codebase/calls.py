"""What commands ask of a codebase: values of JSON in, values of JSON out.

A command that calls a service needs neither MCP nor LanceDB, and is done a second earlier.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any, TypeAlias

import anyio

from vector_index_mcp.codebase import arguments, wire
from vector_index_mcp.codebase.arguments import ExplainedArguments, TriggerArguments
from vector_index_mcp.codebase.service import Codebase
from vector_index_mcp.errors import QueryError
from vector_index_mcp.indexing.following import Show, follow_fetch, follow_text, follow_vectors

Values: TypeAlias = dict[str, Any]
Tell: TypeAlias = Callable[[Values], Awaitable[None]]
"""Tells how far an answer is: `what` is done, how much is `done`, of what `total`."""


async def answer(codebase: Codebase, name: str, given: Mapping[str, Any], tell: Tell) -> Values:
    """The answer to one call.

    Args:
        codebase: It must be running.
        name: Of the call, as `CALLS` has it.
        given: Its arguments.
        tell: Is told how far the answer is.

    Raises:
        QueryError: If there is no such call, or an argument is wrong.
        VectorIndexError: What else is wrong.
    """
    if name not in CALLS:
        raise QueryError(f"there is no call {name[:100]!r}; front end and service do not match")
    return await CALLS[name](codebase, given, tell)


async def _search(codebase: Codebase, given: Mapping[str, Any], tell: Tell) -> Values:
    """Search what is there once the text is indexed, by meaning as well.

    A person would rather wait for the model than read an answer by words alone.
    """
    asked = arguments.checked("search", ExplainedArguments, given)
    async with _passed_on(tell) as show:  # out of which an error would come wrapped
        await follow_fetch(show, codebase.index)
    if run := await codebase.index.catching_up():
        async with _passed_on(tell) as show:
            await follow_text(show, run)
    return await _found(codebase, asked, wait_for_model=True)


async def _find(codebase: Codebase, given: Mapping[str, Any], _: Tell) -> Values:
    """Search what is there now, as the tool does; `refused` says what makes no sense of it."""
    try:
        asked = arguments.checked("search", ExplainedArguments, given)
        return await _found(codebase, asked, wait_for_model=False)
    except QueryError as error:
        return {"refused": str(error)}


async def _found(codebase: Codebase, asked: ExplainedArguments, *, wait_for_model: bool) -> Values:
    found = await codebase.search(
        asked.query, asked.top_k, **asked.limits, wait_for_model=wait_for_model
    )
    result = wire.search_result(found, asked.max_tokens, asked.detail, explain=asked.explain)
    return result.model_dump(mode="json")


async def _sample(codebase: Codebase, given: Mapping[str, Any], _: Tell) -> Values:
    """The `text` of the code at `similar_to`, and where it lies; nothing if it names none here."""
    try:
        chunk = await codebase.sample(str(given.get("similar_to", "")))
    except QueryError:
        return {}
    return {"text": chunk.text, "path": chunk.key, "lines": [chunk.start_line, chunk.end_line]}


async def _trigger(codebase: Codebase, given: Mapping[str, Any], _: Tell) -> Values:
    """Have text and vectors brought up to date; waits for nothing."""
    asked = arguments.checked("trigger", TriggerArguments, given)
    run = await codebase.index.trigger(force_reindex=asked.force_reindex)
    return wire.run_report(run).model_dump(mode="json")


async def _status(codebase: Codebase, _: Mapping[str, Any], __: Tell) -> Values:
    """What `get_status` answers."""
    return (await wire.index_status(codebase)).model_dump(mode="json")


async def _index(codebase: Codebase, given: Mapping[str, Any], tell: Tell) -> Values:
    """Bring text and vectors up to date: the `run` that did so, and the `status` since."""
    asked = arguments.checked("index", TriggerArguments, given)
    async with _passed_on(tell) as show:
        await follow_fetch(show, codebase.index)
    run = await codebase.index.trigger(force_reindex=asked.force_reindex)
    async with _passed_on(tell) as show:
        await follow_text(show, run)
        await follow_vectors(show, codebase.index)
    status = await wire.index_status(codebase)
    return {
        "run": wire.run_report(run).model_dump(mode="json"),
        "status": status.model_dump(mode="json"),
    }


@asynccontextmanager
async def _passed_on(tell: Tell) -> AsyncIterator[Show]:
    """A function that passes on how far something is; who is told slowly misses some of it."""
    send, received = anyio.create_memory_object_stream[Values](1)

    def show(what: str, done: int, total: int) -> None:
        with suppress(anyio.WouldBlock):
            send.send_nowait({"what": what, "done": done, "total": total})

    async def pass_on() -> None:
        async for progress in received:
            await tell(progress)

    async with received, anyio.create_task_group() as tasks:
        tasks.start_soon(pass_on)
        with send:  # closed, it ends what passes on
            yield show


CALLS: Mapping[str, Callable[[Codebase, Mapping[str, Any], Tell], Awaitable[Values]]] = {
    "search": _search,
    "find": _find,
    "sample": _sample,
    "trigger": _trigger,
    "status": _status,
    "index": _index,
}
