"""The calls about knowledge documents and their chapters."""

from collections.abc import Callable, Iterable, Mapping

from vector_index_mcp.errors import quoted
from vector_index_mcp.notes.calls import (
    Answer,
    Given,
    Read,
    Store,
    Write,
    check_revision,
    found_project,
    plan_of,
    project_of,
)
from vector_index_mcp.notes.refusal import Code, Refusal
from vector_index_mcp.notes.search import matching
from vector_index_mcp.notes.store.writer import Plan
from vector_index_mcp.notes.texts import knowledge
from vector_index_mcp.notes.texts.knowledge import Document
from vector_index_mcp.notes.texts.projects import Project, Projects
from vector_index_mcp.notes.texts.reading import ReadDocument, revision_of
from vector_index_mcp.notes.texts.slugs import filename, is_untitled

_ONLY_LATIN = "of a file name only Latin letters and digits are kept; choose one that has some"
_MOST_RESULTS = 50
"""The most documents in an answer: no agent reads more."""
_MOST_SHOWN_CHAPTERS = 100
"""The most chapters in an answer. Two common words found 500: 375 KB, which clients cut off."""


def metadata_of(read: ReadDocument) -> Answer:
    """Return a document's metadata in the form that answers use."""
    data = read.metadata
    return {
        "title": data.title,
        "keywords": list(data.keywords),
        "created": data.created,
        "updated": data.updated,
    }


def _get_file(store: Store, given: Given) -> Answer:
    read = store.shelf.document(project_of(store, given), given["filename"])
    document = read.document
    return {
        "document": {
            "filename": document.name,
            "metadata": metadata_of(read),
            "introduction": document.introduction,
            "chapters": [
                {
                    "title": part.title,
                    "content": part.content,
                    "summary": knowledge.first_line(part),
                }
                for part in document.parts.parts
            ],
            "full_content": document.text,
            "revision": read.revision,
        }
    }


def _create(store: Store, given: Given) -> Plan:
    project, puts = Projects(store.disk).with_project(given["project_id"])
    name = filename(given["filename"])
    path = project.document(name)
    if store.disk.status(path) is not None:
        raise Refusal(
            Code.FILE_ALREADY_EXISTS,
            f"Knowledge file {name} already exists",
            filename=name,
            **({"hint": _ONLY_LATIN} if is_untitled(given["filename"]) else {}),
        )
    text = knowledge.created(
        given["title"],
        given["introduction"],
        given["keywords"],
        [(chapter["title"], chapter["content"]) for chapter in given["chapters"]],
    )
    data = text.encode()
    answer = {
        "filepath": f"knowledge/{name}",
        "message": f"Knowledge file {name} created in project {project.id}",
        "revision": revision_of(data),
    }
    return plan_of(project, f"Created {name}", {path: data, **puts}, answer)


def _delete(store: Store, given: Given) -> Plan:
    project, name = project_of(store, given), given["filename"]
    path = project.document(name)
    if name not in store.shelf.names(project):
        store.shelf.document(project, name)  # raises the Refusal that says why
    check_revision(store, given, path, store.disk.read(path) or b"")
    answer = {"message": f"Knowledge file {name} deleted from project {project.id}"}
    return plan_of(project, f"Deleted {name}", {}, answer, path)


def _changing(
    verb: str, preposition: str, changed: Callable[[Document, Given], str]
) -> Callable[[Store, Given], Plan]:
    """Return a call that changes a chapter.

    Args:
        verb: What was done, for the messages, such as "updated".
        preposition: What stands between that and the document's name.
        changed: Returns the document's new text from the document and the arguments.
    """

    def plan(store: Store, given: Given) -> Plan:
        project, name, title = project_of(store, given), given["filename"], given["chapter_title"]
        document = store.shelf.document(project, name).document
        path = project.document(name)
        check_revision(store, given, path, document.text.encode())
        data = changed(document, given).encode()
        answer = {
            "message": f'Chapter "{title}" {verb} {preposition} {name}',
            "revision": revision_of(data),
        }
        description = f"{verb.capitalize()} chapter '{title}' {preposition} {name}"
        return plan_of(project, description, {path: data}, answer)

    return plan


# -- chapters one by one -----------------------------------------------------------------------


def _list_chapters(store: Store, given: Given) -> Answer:
    head, read = _document(store, given)
    parts = read.document.parts.parts
    return {
        **head,
        "total_chapters": len(parts),
        "chapters": [
            {"title": part.title, "summary": knowledge.summary(part), "index": number}
            for number, part in enumerate(parts)
        ],
        "revision": read.revision,
    }


def _get_chapter(store: Store, given: Given) -> Answer:
    head, read = _document(store, given)
    number = _number(read.document, given.get("chapter_title"), given.get("chapter_index"), "")
    return {**head, **_chapter(read, number)}


def _get_next_chapter(store: Store, given: Given) -> Answer:
    head, read = _document(store, given)
    number = _number(
        read.document, given.get("current_chapter_title"), given.get("current_index"), "current_"
    )
    total = len(read.document.parts.parts)
    if number + 1 < total:
        return {**head, **_chapter(read, number + 1)}
    return {
        **head,
        "has_next": False,
        "message": "No more chapters after the current one",
        "current_index": number,
        "total_chapters": total,
    }


def _document(store: Store, given: Given) -> tuple[Answer, ReadDocument]:
    read = store.shelf.document(project_of(store, given), given["filename"])
    return {"project_id": given["project_id"], "filename": given["filename"]}, read


def _chapter(read: ReadDocument, number: int) -> Answer:
    parts = read.document.parts.parts
    part = parts[number]
    return {
        "title": part.title,
        "content": part.text.rstrip("\r\n") + "\n",
        "summary": knowledge.summary(part),
        "index": number,
        "total_chapters": len(parts),
        "has_next": number + 1 < len(parts),
        "has_previous": number > 0,
        "revision": read.revision,
    }


def _number(document: Document, title: str | None, index: int | None, which: str) -> int:
    total = len(document.parts.parts)
    if title is not None:
        number = document.parts.find(title)
        if number is None:
            raise knowledge.chapter_not_found(document, title)
        return number
    if index is None:
        name = f"{which}chapter_title"
        other = "current_index" if which else "chapter_index"
        raise Refusal(Code.INVALID_INPUT, f"Either {name} or {other} is required")
    if index >= total:
        valid = f"(0-{total - 1})" if total else "(there are no chapters)"
        raise Refusal(
            Code.INVALID_INPUT,
            f"Chapter index {index} out of range {valid}",
            chapter_index=index,
            total_chapters=total,
        )
    return index


# -- search ------------------------------------------------------------------------------------


def search(store: Store, given: Given) -> Answer:
    """Answer a search by words."""
    projects = _projects_to_search(store, given)
    check_query(given["query"])
    if not projects:
        return nothing_searched(store, given)
    searched, skipped = _documents_of(store, projects)
    results = matching.search(searched, given["query"])
    shown = results[:_MOST_RESULTS]
    most = max(1, _MOST_SHOWN_CHAPTERS // max(1, len(shown)))
    answer: Answer = {
        "total_documents": len(results),
        "total_matches": sum(len(found.matches) for found in results),
        "results": [_result(found, most, with_project=given["all_projects"]) for found in shown],
    }
    notes = []
    if not results and (titled := matching.titled(searched, given["query"])):
        name, word = titled
        notes.append(
            f"{name} has {quoted(word)} in its title or keywords, which mode both searches"
        )
    if len(results) > len(shown):
        notes.append(f"Only the best {_MOST_RESULTS} documents are shown; rarer words find fewer")
    if any(len(found.matches) > most for found in shown):
        notes.append(f"At most {most} chapters of each document are shown, even if more match")
    if notes:
        answer["note"] = ". ".join(notes)
    return {**answer, "skipped": skipped} if skipped else answer


def _documents_of(
    store: Store, projects: Iterable[Project]
) -> tuple[list[tuple[str, ReadDocument]], list[str]]:
    """Return all documents of `projects`, by project id, and why others are skipped."""
    found, skipped = [], []
    for project in projects:
        for read in store.shelf.documents(project):
            if isinstance(read, Refusal):
                skipped.append(str(read))
            else:
                found.append((project.id, read))
    return found, skipped


def nothing_searched(store: Store, given: Given) -> Answer:
    """Answer a search of a project that does not exist, or of all if there are none."""
    answer: Answer = {"total_documents": 0, "total_matches": 0, "results": []}
    if given["all_projects"]:
        return answer
    name = given["project_id"]
    near = Projects(store.disk).similar(name)
    meant = f"did you mean {near[0]!r}?" if near else "all_projects searches those of every project"
    return {**answer, "note": f"There are no notes about a project {name!r}; {meant}"}


def check_query(query: str) -> None:
    """Refuse a query without any word.

    Raises:
        Refusal: If the query is blank.
    """
    if not query.split():
        raise Refusal(
            Code.INVALID_SEARCH_QUERY, "The query is blank; give words to search for", query=query
        )


def _projects_to_search(store: Store, given: Given) -> list[Project]:
    if given["all_projects"]:
        return list(Projects(store.disk).all())
    project = found_project(store, given)
    return [project] if project is not None else []


def _result(found: matching.Found, most_chapters: int, *, with_project: bool) -> Answer:
    name, matches = found.read.document.name, matching.best(found.matches, most_chapters)
    return {
        **({"project_id": found.project} if with_project else {}),
        "document": name,
        "file": name,
        "match_count": len(found.matches),
        "metadata": metadata_of(found.read),
        "chapters": [{"title": match.title, "matches": len(match.words)} for match in matches],
        "matching_chapters": [
            {
                "chapter": match.title,
                "keywords_found": list(match.words),
                "match_context": matching.contexts(match.text, match.words),
                "chapter_summary": match.summary,
            }
            for match in matches
        ],
        "revision": found.read.revision,
    }


READS: Mapping[str, Read] = {
    "get_knowledge_file": _get_file,
    "list_chapters": _list_chapters,
    "get_chapter": _get_chapter,
    "get_next_chapter": _get_next_chapter,
}
WRITES: Mapping[str, Write] = {
    "create_knowledge_file": _create,
    "delete_knowledge_file": _delete,
    "update_chapter": _changing(
        "updated",
        "in",
        lambda document, given: knowledge.updated(
            document, given["chapter_title"], given["new_content"]
        ),
    ),
    "remove_chapter": _changing(
        "removed",
        "from",
        lambda document, given: knowledge.without(document, given["chapter_title"]),
    ),
    "add_chapter": _changing(
        "added",
        "to",
        lambda document, given: knowledge.extended(
            document,
            given["chapter_title"],
            given["content"],
            given["position"],
            given.get("reference_chapter"),
        ),
    ),
}
