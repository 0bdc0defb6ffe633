"""The calls that commands make to the documents: JSON values in, JSON values out.

A command makes the same calls whether the documents run in its own process or in a service.
"""

import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeAlias

import anyio
import anyio.to_thread

from vector_index_mcp.documents import catalog, contexts, lines, retrieval
from vector_index_mcp.documents.asking import Answer, Found, Mode, Wanted, search
from vector_index_mcp.documents.configuration import DEFAULT_PATTERN, Collection
from vector_index_mcp.documents.given import Given
from vector_index_mcp.documents.limits import LARGEST_BYTES, MOST_RESULTS
from vector_index_mcp.documents.places import Places
from vector_index_mcp.documents.service import Documents
from vector_index_mcp.documents.state import CollectionState
from vector_index_mcp.documents.updating import Update
from vector_index_mcp.documents.uris import SCHEME, key_of
from vector_index_mcp.engine.prose.stems import stems_of
from vector_index_mcp.engine.text.spelling import composed
from vector_index_mcp.errors import NoVectorsError, QueryError, SettingsError, first_of
from vector_index_mcp.files import secrets
from vector_index_mcp.indexing.following import Tell, loading_shown, passed_on

Values: TypeAlias = dict[str, Any]
INDEXING, EMBEDDING = "Indexing", "Embedding"

_SNIPPET_CHARS = 500
_LOOK_SECONDS = 0.1  # how often to check the progress


async def answer(documents: Documents, name: str, given: Mapping[str, Any], tell: Tell) -> Values:
    """Answer one call.

    Args:
        documents: The documents; they must be running.
        name: The name of the call in `CALLS`.
        given: The arguments of the call.
        tell: Reports progress.

    Raises:
        QueryError: If there is no such call, or an argument has the wrong type.
        VectorIndexError: If the call fails.
    """
    if name not in CALLS:
        raise QueryError(
            f"there is no call {name[:100]!r}; stop the service, it is another version"
        )
    return await CALLS[name](documents, Given(given), tell)


# -- finding and reading ------------------------------------------------------------------------


def _searching(mode: Mode) -> "_Call":
    async def call(documents: Documents, given: Given, tell: Tell) -> Values:
        limit = given.whole("limit")
        if name := given.text("collection"):
            _check_name(documents, name)
        wanted = Wanted(
            given.text("query"),
            mode,
            limit=MOST_RESULTS if limit is None else min(limit, MOST_RESULTS),
            min_score=given.number("min_score"),
            collection=name,
        )
        try:
            async with passed_on(tell) as show:
                found = await search(documents, wanted, loading_shown(show))
        except NoVectorsError as error:
            return {"results": [], "lack": str(error)}
        is_whole = given.flag("full")
        hits = [await hit_of(documents, found, each, is_whole=is_whole) for each in found.found]
        return {"results": hits, "lack": "", "note": found.note}

    return call


async def hit_of(
    documents: Documents, answer: Answer, found: Found, *, is_whole: bool = False
) -> Values:
    """Return a hit, with the text that the document's file has now; all of it if `is_whole`."""
    text = await retrieval.text_at(documents, found.entry.key, found.entry)
    body = found.chunk.text if text is None else text.body
    file_lines = None if text is None else len(lines.lines_of(body))
    snippet = answer.snippet_of(found, _SNIPPET_CHARS, file_lines)
    whole = None
    if is_whole:  # masked, as every result of a search
        whole, _ = await anyio.to_thread.run_sync(secrets.masked, body)
    return {
        "docid": found.entry.docid,
        "key": found.entry.key,
        "title": found.entry.title,
        "score": found.score,
        "context": found.context,
        "line": snippet.line,
        "has_words": not set(answer.stems).isdisjoint(stems_of(snippet.text)),
        "header": snippet.with_header.partition("\n")[0],
        "start": snippet.start,
        "lines": list(snippet.lines),
        "body": whole,
    }


async def _get(documents: Documents, given: Given, _: Tell) -> Values:
    part = retrieval.Part(given.whole("from"), given.whole("lines"), given.flag("numbered"))
    found = await retrieval.get(documents, given.text("file"), part, _places(documents, given))
    if isinstance(found, retrieval.Missing):
        return {"missing": found.asked, "similar": list(found.similar), "reason": found.reason}
    return _document(found) | {"note": found.note}


async def _multi_get(documents: Documents, given: Given, _: Tell) -> Values:
    part = retrieval.Part(given.whole("from"), given.whole("lines"), given.flag("numbered"))
    most = given.whole("max_bytes")
    many = await retrieval.multi_get(
        documents,
        given.text("pattern"),
        part,
        LARGEST_BYTES if most is None else most,
        places=_places(documents, given),
        suggests=False,
    )
    return {"documents": [_part(documents, each) for each in many.documents], "errors": many.errors}


def _part(documents: Documents, each: retrieval.Text | retrieval.TooLarge) -> Values:
    if isinstance(each, retrieval.Text):
        return _document(each)
    context = contexts.context_of(documents.configuration, each.key)
    entry = catalog.entry_at(documents.index.ledger, each.key)
    title = each.key.rpartition("/")[2] if entry is None else entry.title
    return {"key": each.key, "title": title, "context": context, "size": each.size}


def _document(text: retrieval.Text) -> Values:
    return {"key": text.key, "title": text.title, "context": text.context, "body": text.body}


def _places(documents: Documents, given: Given) -> Places:
    here = given.text("here")
    return Places(retrieval.places_of(documents).folders, Path(here) if here else None)


# -- what there is --------------------------------------------------------------------------------


async def _ls(documents: Documents, given: Given, _: Tell) -> Values:
    """List the documents of a collection, or of a folder in it."""
    path = given.text("path").strip("\"'`")
    key = (key_of(path) if path.startswith(SCHEME) else path).strip("/")
    name, _slash, folder = key.partition("/")
    _check_name(documents, name, "\nRun 'qmd ls' to see available collections.")
    ledger = await documents.known()
    within = contexts.normalized(folder)
    return {
        "collection": name,
        "folder": within,
        "documents": [
            {"key": entry.key, "size": entry.size, "modified": entry.modified}
            for entry in catalog.entries_of(ledger, name)
            if not within or f"{composed(entry.path)}/".startswith(f"{within}/")
        ],
    }


async def _status(documents: Documents, _: Given, __: Tell) -> Values:
    """Return the state of the index and of all collections."""
    state = await documents.look()
    return {
        "index": documents.index.uri,
        "size": state.size_bytes or 0,
        "documents": state.documents,
        "embedded": state.embedded_chunks,
        "unembedded": state.unembedded,
        "problem": state.problem,
        "collections": [*map(_collection, state.collections)],
        "skipped": dict(state.skipped),
        "skipped_files": [*state.skipped_files],
        "failed": [*state.failed],
        "operations": [operation.name for operation in documents.operations.listed],
        "work": _work(documents),
        "model": dict(state.model),
    }


def _collection(state: CollectionState) -> Values:
    about = state.collection.contexts.items()
    return {
        "name": state.collection.name,
        "path": str(state.collection.path),
        "pattern": state.collection.pattern,
        "documents": state.documents,
        "updated": None if state.updated is None else state.updated.timestamp(),
        "problem": state.problem,
        "contexts": [[contexts.normalized(prefix), text] for prefix, text in about],
    }


# -- collections ----------------------------------------------------------------------------------


async def _add(documents: Documents, given: Given, tell: Tell) -> Values:
    path = Path(given.text("path"))
    if not path.is_absolute() or not await anyio.to_thread.run_sync(path.is_dir):
        raise SettingsError(f"Folder not found: {path}\nName a folder that exists.")
    new = Collection(given.text("name"), path, given.text("pattern", DEFAULT_PATTERN))
    async with beside(_tell_forever, documents, tell):
        return {"documents": await documents.add(new), "pattern": new.pattern}


async def _remove(documents: Documents, given: Given, _: Tell) -> Values:
    await documents.index.catching_up()
    return {"documents": await documents.remove(given.text("name"))}


async def _rename(documents: Documents, given: Given, _: Tell) -> Values:
    await documents.rename(given.text("name"), given.text("new"))
    return {}


# -- contexts -------------------------------------------------------------------------------------


async def _contexts(documents: Documents, _: Given, __: Tell) -> Values:
    listed = contexts.listed(documents.configuration)
    named = [(each.collection or contexts.ALL, each.path, each.text) for each in listed]
    return {"contexts": [*map(list, named)]}


async def _add_context(documents: Documents, given: Given, _: Tell) -> Values:
    target = _target(documents, given)
    await documents.set_context(target.collection, target.prefix, given.text("text"))
    return {"collection": target.collection, "prefix": target.prefix}


async def _remove_context(documents: Documents, given: Given, _: Tell) -> Values:
    target = _target(documents, given)
    await documents.remove_context(target.collection, target.prefix)
    return {"collection": target.collection, "prefix": target.prefix}


def _target(documents: Documents, given: Given) -> contexts.Target:
    path, here = given.text("path"), given.text("here")
    if path.startswith(SCHEME):
        _check_name(documents, key_of(path).strip("/").partition("/")[0])
    return contexts.target_of(path, documents.configuration, Path(here) if here else None)


async def _check_contexts(documents: Documents, _: Given, __: Tell) -> Values:
    keys = catalog.keys_of(await documents.known())
    lacking = contexts.lacking(documents.configuration, keys)
    return {
        "collections": [list(each) for each in lacking.collections],
        "folders": [[name, list(folders)] for name, folders in lacking.folders],
    }


def _check_name(documents: Documents, name: str, advice: str = "") -> None:
    if not documents.configuration.has(name):
        raise SettingsError(f"Collection not found: {name}{advice}")


# -- indexing -------------------------------------------------------------------------------------


async def catch_up(documents: Documents, tell: Tell) -> None:
    """Wait until an index that has just been opened is up to date with its files."""
    async with beside(_tell_forever, documents, tell):
        if run := await documents.index.catching_up():
            await run.finished.wait()


async def _update(documents: Documents, given: Given, tell: Tell) -> Values:
    async with beside(_tell_forever, documents, tell):
        updates = await documents.update(pull=given.flag("pull"))
    state = await documents.look()
    problems = {each.collection.name: each.problem for each in state.collections}
    collections = [_updated(each, problems.get(each.collection.name, "")) for each in updates]
    return {"collections": collections, "unembedded": state.unembedded}


def _updated(update: Update, problem: str) -> Values:
    return {
        "name": update.collection.name,
        "path": str(update.collection.path),
        "pattern": update.collection.pattern,
        "new": update.new,
        "updated": update.updated,
        "unchanged": update.unchanged,
        "removed": update.removed,
        "pulled": update.pulled,
        "problem": problem,
    }


async def _embed(documents: Documents, given: Given, tell: Tell) -> Values:
    began = time.monotonic()
    is_anew = given.flag("anew")
    async with beside(_tell_forever, documents, tell):
        await documents.index.catching_up()
        ledger = documents.index.ledger
        before = 0 if is_anew else ledger.chunk_count - ledger.unembedded_count
        embedded = await documents.embed(anew=is_anew)
    seconds = time.monotonic() - began
    count = len(catalog.keys_of(documents.index.ledger))
    return {"new": max(embedded - before, 0), "documents": count, "seconds": seconds}


async def _cleanup(documents: Documents, _: Given, __: Tell) -> Values:
    await documents.tidy()
    return {}


@asynccontextmanager
async def beside(
    work: Callable[..., Coroutine[Any, Any, None]], *arguments: Any
) -> AsyncIterator[None]:
    """Run `work` while the context lasts; an error of either ends both and is raised as it is."""
    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(work, *arguments)
            yield
            tasks.cancel_scope.cancel()
    except ExceptionGroup as group:
        raise first_of(group) from None


async def _tell_forever(documents: Documents, tell: Tell) -> None:
    """Report the progress of indexing and embedding whenever it has changed."""
    last: Values = {}
    while True:
        now = _work(documents)
        if now and now != last:
            last = now
            await tell(now)
        await anyio.sleep(_LOOK_SECONDS)


def _work(documents: Documents) -> Values:
    """Return the progress of the work that is under way; empty if there is none."""
    progress = documents.index.progress
    if progress.files_to_do:
        return {"what": INDEXING, "done": progress.files_done, "total": progress.files_to_do}
    if progress.waits_for_vectors:
        return {"what": EMBEDDING, "done": progress.embedded, "total": progress.chunks}
    return {}


_Call: TypeAlias = Callable[[Documents, Given, Tell], Awaitable[Values]]
CALLS: Mapping[str, _Call] = {
    "search": _searching(Mode.WORDS),
    "vsearch": _searching(Mode.MEANING),
    "query": _searching(Mode.BOTH),
    "get": _get,
    "multi_get": _multi_get,
    "ls": _ls,
    "status": _status,
    "add": _add,
    "remove": _remove,
    "rename": _rename,
    "contexts": _contexts,
    "add_context": _add_context,
    "remove_context": _remove_context,
    "check_contexts": _check_contexts,
    "update": _update,
    "embed": _embed,
    "cleanup": _cleanup,
}
"""The calls by name."""
