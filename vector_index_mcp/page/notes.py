"""The page of the notes: projects, documents, to-do lists, their history, search. It only reads.

An open page gets news when there is a new commit.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import anyio
import anyio.to_thread

from vector_index_mcp.engine.prose.stems import asked_stems
from vector_index_mcp.errors import (
    SYSTEM_ERRORS,
    QueryError,
    UnknownError,
    VectorIndexError,
    counted,
    sentence,
)
from vector_index_mcp.foreign import visible
from vector_index_mcp.notes import store_calls
from vector_index_mcp.notes.activity import Call
from vector_index_mcp.notes.arguments import WrongArguments, checked
from vector_index_mcp.notes.calls import Store
from vector_index_mcp.notes.past import pieces
from vector_index_mcp.notes.refusal import Code, Refusal
from vector_index_mcp.notes.remedies import REMEDIES
from vector_index_mcp.notes.search import matching
from vector_index_mcp.notes.store.writer import awaited
from vector_index_mcp.notes.store_calls import Storage
from vector_index_mcp.page import marking, markup, notes_history, notes_views
from vector_index_mcp.page.content import NOTHING, Change, News
from vector_index_mcp.page.notes_history import Subject
from vector_index_mcp.page.notes_views import address_of, cut, key_of, name_of

if TYPE_CHECKING:  # the service is loaded only when it is needed
    from vector_index_mcp.notes.service import Notes

GetService = Callable[[], Awaitable["Notes"]]
_Result = TypeVar("_Result")

_MODES = ("keywords", "both")
_MOST_CHAPTERS = 5  # chapters of a document that are shown in a result
_SNIPPET_CHARS = 500
_MOST_DETAILS_CHARS = 10_000
_OPENING_SECONDS = 5.0
_STATUS_SECONDS = 90.0  # longer than the writer waits for others
_ABSENT = frozenset({Code.PROJECT_NOT_FOUND, Code.DOCUMENT_NOT_FOUND, Code.TODO_NOT_FOUND})
_ASKED_WRONGLY = frozenset({Code.INVALID_SEARCH_QUERY, Code.INVALID_INPUT, Code.INVALID_FILENAME})


class NotesPage:
    """The content of the page of the notes."""

    index = "notes.html"
    command = "vector-index-mcp notes ui"
    remedies = REMEDIES
    changes: Mapping[str, Change] = NOTHING

    def __init__(self, get_service: GetService) -> None:
        self._get_service = get_service
        self._rendering = anyio.CapacityLimiter(1)  # a long text keeps a processor busy for 1 s
        self._is_opened = False
        self.answers = {
            "projects": self._projects,
            "project": self._project,
            "document": self._document,
            "todo": self._todo,
            "search": self._search,
            "history": self._history,
            "difference": self._difference,
        }

    async def news(self) -> Sequence[News]:
        """Return the news of the page: the status of the store."""
        notes = await self._get_service()

        def sign() -> Any:
            return notes.writer.tree.commit, notes.syncing.problem, len(notes.syncing.news)

        return (News("status", sign, partial(_status, notes), is_repeated=True),)

    # -- what there is ---------------------------------------------------------------------

    async def _projects(self, _: Mapping[str, str]) -> Any:
        return await self._read(notes_views.projects)

    async def _project(self, given: Mapping[str, str]) -> Any:
        name = name_of(given.get("project", ""))
        return await self._read(lambda store: notes_views.project(store, name), self._rendering)

    async def _document(self, given: Mapping[str, str]) -> Any:
        name, file = name_of(given.get("project", "")), name_of(given.get("document", ""))
        return await self._read(
            lambda store: notes_views.document(store, name, file), self._rendering
        )

    async def _todo(self, given: Mapping[str, str]) -> Any:
        name, number = name_of(given.get("project", "")), given.get("todo", "")
        return await self._read(
            lambda store: notes_views.todo(store, name, number), self._rendering
        )

    async def _history(self, given: Mapping[str, str]) -> Any:
        subject, skipped = _subject(given), given.get("skipped", "")
        is_number = skipped.isascii() and skipped.isdecimal() and len(skipped) < 10
        count = int(skipped) if is_number else 0
        return await self._read(lambda store: notes_history.entries(store, subject, count))

    async def _difference(self, given: Mapping[str, str]) -> Any:
        subject, commit = _subject(given), given.get("commit", "")
        return await self._read(lambda store: notes_history.difference(store, subject, commit))

    async def _read(
        self, read: Callable[[Store], _Result], limiter: anyio.CapacityLimiter | None = None
    ) -> _Result:
        """Run `read` on the store in a thread and return its result.

        Raises:
            UnknownError: If there is no such project, document or to-do list.
            QueryError: If the request is invalid.
            VectorIndexError: If the store cannot be read.
        """
        notes = await self._get_service()
        if not self._is_opened:
            self._is_opened = await _is_opened(notes)
        try:
            return await anyio.to_thread.run_sync(read, notes.store, limiter=limiter)
        except Refusal as refusal:
            if refusal.code in _ABSENT:
                raise UnknownError(str(refusal)) from refusal
            if refusal.code in _ASKED_WRONGLY:
                raise QueryError(str(refusal)) from refusal
            raise
        except UnicodeError as error:
            raise QueryError(
                "The name has characters that a file's name cannot have; rename it."
            ) from error
        except SYSTEM_ERRORS as error:
            raise VectorIndexError(sentence(error)) from error

    # -- search ----------------------------------------------------------------------------

    async def _search(self, given: Mapping[str, str]) -> Any:
        query, mode = given.get("query", ""), given.get("mode") or _MODES[0]
        key = given.get("project", "")
        wanted = _wanted(query, mode) | {"all_projects": not key}
        if key:
            wanted["project_id"] = name_of(key)
        notes = await self._get_service()
        answer = await notes.answer(Call("search_knowledge", wanted), wanted)
        if not answer["success"]:
            is_wrong = answer["code"] in _ASKED_WRONGLY
            raise (QueryError if is_wrong else VectorIndexError)(answer["error"])
        return await anyio.to_thread.run_sync(_searched, answer, query, wanted["project_id"])


def _wanted(query: str, mode: str) -> dict[str, Any]:
    """Return the arguments of a search.

    Raises:
        QueryError: If the query or the mode is invalid.
    """
    if mode not in _MODES:
        raise QueryError(f"The mode of a search must be {' or '.join(_MODES)}.")
    given = {"project_id": "all", "query": query, "mode": mode}  # a name that any project may have
    try:
        return checked("search_knowledge", given)
    except WrongArguments as error:
        raise QueryError("Search for 1 to 20 words of at most 200 characters.") from error


def _searched(answer: Mapping[str, Any], query: str, project: str) -> dict[str, Any]:
    words, stems = matching.words_of(query), frozenset(asked_stems(query))
    skipped = answer.get("skipped", ())
    notes = [answer.get("note", "")]
    if skipped:
        notes.append(
            f"{counted(len(skipped), 'document')} could not be read; the first: {skipped[0]}"
        )
    return {
        "total": answer["total_documents"],
        "note": cut("; ".join(filter(None, notes)), 2 * _SNIPPET_CHARS),
        "results": [_hit(result, project, words, stems) for result in answer["results"]],
    }


def _hit(
    result: Mapping[str, Any], project: str, words: list[str], stems: frozenset[str]
) -> dict[str, Any]:
    project = result.get("project_id", project)
    data, kind = result["metadata"], result.get("kind", "knowledge")
    matches = result["matching_chapters"]
    title = cut(data.get("title") or result["file"])
    if kind == "todo":
        address = address_of(project, "todo", str(data["number"]))
    elif kind == "main":
        address = address_of(project)
    else:
        address = address_of(project, "document", key_of(result["file"]))
    return {
        "project": cut(project),
        "project_key": key_of(project),
        "address": address,
        "kind": kind,
        "name": cut(result["file"]),
        "title": marking.by_letters(title, words),
        "keywords": [cut(each) for each in data.get("keywords", ())[:_MOST_CHAPTERS]],
        "more": max(0, len(matches) - _MOST_CHAPTERS),
        "matches": [_match(match, words, stems) for match in matches[:_MOST_CHAPTERS]],
    }


def _match(match: Mapping[str, Any], words: list[str], stems: frozenset[str]) -> dict[str, Any]:
    """Return a chapter that was found, with the text around the words, or its best lines."""
    chapter = match["chapter"]
    if "content" in match:
        text = visible(cut(match["content"], _SNIPPET_CHARS), keep="\n\t")
        lines = [marking.by_stems(line, stems) for line in text.split("\n")]
    else:
        # Words close to each other have the same text around them, which is shown once.
        found = dict.fromkeys(text for texts in match["match_context"].values() for text in texts)
        lines = [marking.by_letters(visible(cut(text, _SNIPPET_CHARS)), words) for text in found]
    is_chapter = chapter != matching.INTRODUCTION
    return {
        "chapter": marking.by_letters(cut(chapter), words) if is_chapter else [],
        "fragment": cut(markup.name_of(chapter)) if is_chapter else "",
        "lines": lines,
    }


# -- history ---------------------------------------------------------------------------------


def _subject(given: Mapping[str, str]) -> Subject:
    """Return the subject of a history from the parameters of a request.

    Raises:
        UnknownError: If no project, document or to-do list can have such a name.
    """
    if "project" not in given:
        return Subject(None)
    project = name_of(given["project"])
    if "document" in given:
        name = notes_views.checked_file(name_of(given["document"]))
        return Subject(project, pieces.document(name))
    if "todo" in given:
        number = notes_views.checked_number(given["todo"])
        return Subject(project, pieces.piece_of(["todo", str(number)]))
    return Subject(project, pieces.MAIN_TEXT if given.get("part") == "main" else pieces.ALL)


# -- the store -------------------------------------------------------------------------------


async def _alone(notes: "Notes", do: Callable[[], _Result], seconds: float) -> _Result:
    """Return what `do` returns in the writer's thread.

    No thread waits for it: there are few of them, and all reading needs one.

    Raises:
        TimeoutError: If the writer is busy for so long.
    """
    with anyio.fail_after(seconds):
        return await awaited(notes.writer.alone(do))


async def _is_opened(notes: "Notes") -> bool:
    """Wait until the writer has opened the store; return whether it has.

    An error is only ignored here: reading the store reports it.
    """
    with suppress(VectorIndexError, *SYSTEM_ERRORS):
        await _alone(notes, lambda: None, _OPENING_SECONDS)
        return True
    return False


async def _status(notes: "Notes") -> dict[str, Any]:
    try:
        storage = await _alone(notes, partial(store_calls.look, notes.writer), _STATUS_SECONDS)
        return await anyio.to_thread.run_sync(_looked_at, notes, storage)
    except (VectorIndexError, *SYSTEM_ERRORS) as error:
        home = str(notes.store.disk.root)
        return {"home": home, "commit": "", "problem": cut(sentence(error), _MOST_DETAILS_CHARS)}


def _looked_at(notes: "Notes", storage: Storage) -> dict[str, Any]:
    """Return the status that the MCP tool returns, and the last commit in pieces."""
    status = store_calls.status(
        notes.store, storage, notes.syncing.status(), list(notes.syncing.news)
    )
    commit = notes.writer.tree.commit
    log = notes.store.repository.run("log", "-1", "--format=%ct%x00%h%x00%s", commit, "--")
    when, short, subject = (log.output.decode("utf-8", "replace").split("\0") + [""] * 3)[:3]
    details = status["status_details"]
    return {
        "home": status["storage_path"],
        "commit": commit,
        "short": short,
        "when": int(when) if when.isdecimal() else 0,
        "what": cut(subject.strip()),
        "branch": cut(status["current_branch"]),
        "remote": cut(status["remote_status"]),
        "uncommitted": status["uncommitted_files"],
        "details": cut(details, _MOST_DETAILS_CHARS) if details != store_calls.CLEAN else "",
        "problem": "",
    }
