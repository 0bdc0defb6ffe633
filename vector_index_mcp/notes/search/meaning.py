"""Builds the answer to a search by meaning from the index's hits.

Beside documents, this search finds the main texts of projects and their to-do lists.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from vector_index_mcp.engine.prose.stems import asked_stems, stems_of
from vector_index_mcp.notes.calls import Answer, Store
from vector_index_mcp.notes.document_calls import metadata_of
from vector_index_mcp.notes.layout import PROJECTS
from vector_index_mcp.notes.refusal import Refusal
from vector_index_mcp.notes.search import matching
from vector_index_mcp.notes.search.index import Nearest
from vector_index_mcp.notes.texts import knowledge, parts, todos
from vector_index_mcp.notes.texts.knowledge import Document
from vector_index_mcp.notes.texts.parts import Parts
from vector_index_mcp.notes.texts.projects import Project, Projects
from vector_index_mcp.notes.texts.reading import revision_of

MOST_RESULTS = 10
_LONGEST_CONTENT_CHARS = 2_000
_MAIN, _KNOWLEDGE = "main.md", "knowledge/"
_TODO = re.compile(r"TODO/(\d+)/(.*)")


@dataclass(slots=True)
class _Result:
    """The result for a document, a main text or a to-do list."""

    project: Project
    name: str
    kind: str
    score: float
    metadata: Answer
    revision: str = ""
    matches: list[Answer] = field(default_factory=list)

    def answer(self, *, with_project: bool) -> Answer:
        """Return the result as JSON: the keys of a search by words, and some more."""
        return {
            **({"project_id": self.project.id} if with_project else {}),
            "document": self.name,
            "file": self.name,
            "kind": self.kind,
            "score": round(self.score, 2),
            "match_count": len(self.matches),
            "metadata": self.metadata,
            "chapters": [
                {"title": match["chapter"], "matches": len(match["keywords_found"])}
                for match in self.matches
            ],
            "matching_chapters": self.matches,
            **({"revision": self.revision} if self.revision else {}),
        }


def results(
    store: Store, found: Sequence[Nearest], query: str, *, with_project: bool
) -> list[Answer]:
    """Return the results as JSON, best first, without files that are gone or unreadable by now.

    Args:
        store: The store that was searched.
        found: The index's hits, best first.
        query: The query.
        with_project: Whether each result names its project.

    Raises:
        Refusal: If the projects cannot be listed.
    """
    projects = _by_folder(store)
    stems = frozenset(asked_stems(query))
    words = [word for word in matching.words_of(query) if not stems.isdisjoint(stems_of(word))]
    merged: dict[tuple[str, str, str], _Result] = {}
    for each in found:
        folder, _, path = each.path.partition("/")
        if (project := projects.get(folder)) is None:
            continue
        try:
            result = _result(store, project, path, each, words)
        except Refusal:  # the file is gone, or can no longer be read
            continue
        if result is None:
            continue
        # Hits of one to-do list become one result: each of its tasks is a file of its own.
        first = merged.setdefault((project.id, result.kind, result.name), result)
        if first is not result:
            first.matches += result.matches
    return [result.answer(with_project=with_project) for result in merged.values()]


def doubt(results: Sequence[Answer]) -> str:
    """Say that results have no word of the query; empty if one has, or there are none."""
    matches = [chapter["matches"] for result in results for chapter in result["chapters"]]
    if not results or any(matches):
        return ""
    return "No word of the query stands in these notes; they are the nearest by meaning"


def _by_folder(store: Store) -> Mapping[str, Project]:
    start = len(PROJECTS) + 1
    return {project.folder[start:]: project for project in Projects(store.disk).all()}


def _result(
    store: Store, project: Project, path: str, found: Nearest, words: list[str]
) -> _Result | None:
    """Return the result for a hit; None if its file is one that no tool reads."""
    if todo := _TODO.fullmatch(path):
        return _of_todo(store, project, int(todo[1]), f"{project.folder}/{path}", found, words)
    if path.startswith(_KNOWLEDGE):
        read = store.shelf.document(project, path.removeprefix(_KNOWLEDGE))
        data, document = metadata_of(read), read.document
        result = _Result(project, document.name, "knowledge", found.score, data, read.revision)
    elif path == _MAIN:
        text = store.disk.read_text(project.main) or ""
        document = Document(path, "", parts.split(text))
        data = {"title": project.id}
        result = _Result(project, path, "main", found.score, data, revision_of(text.encode()))
    else:
        return None
    result.matches += _matches(document, found, words)
    return result


def _of_todo(
    store: Store, project: Project, number: int, path: str, found: Nearest, words: list[str]
) -> _Result:
    todo = todos.one(store.disk, project.todos, number)
    head = {"title": todo.description, "number": number, "completed": todo.completed}
    result = _Result(project, f"TODO #{number}", "todo", found.score, head)
    task = next((task for task in todo.tasks if task.path == path), None)
    if task is None:
        result.matches.append(_matched(todo.description, "", todo.description, words))
    else:
        state = "done" if task.completed else "open"
        text = f"{task.title}\n{task.content}".strip()
        result.matches.append(_matched(f"Task #{task.number} ({state})", task.title, text, words))
    return result


def _matches(document: Document, found: Nearest, words: list[str]) -> list[Answer]:
    """Return the chapters that the hit's chunk covers, with its lines in each.

    Those with most of the words come first.
    """
    first, last = found.chunk.start_line, found.chunk.end_line
    before = document.front.count("\n")
    covered = _between(document.parts, first - before, last - before)
    covered.sort(key=lambda each: -sum(word in each.text.lower() for word in words))
    if found.is_stale:  # line numbers may have changed: show the text as it was indexed
        covered = [replace(covered[0], text=found.chunk.text)]
    shown = []
    left = _LONGEST_CONTENT_CHARS
    for each in covered:
        if left > 0:
            shown.append(_matched(each.title, each.summary, each.text[:left], words))
            left -= len(each.text)
    return shown


@dataclass(frozen=True, slots=True)
class _Covered:
    """The lines of a chapter that a chunk covers."""

    title: str
    text: str
    summary: str


def _between(found: Parts, first: int, last: int) -> list[_Covered]:
    """Return what lies from line `first` to `last`, counted from 1, by chapter; at least one."""
    pieces = [_Covered(matching.INTRODUCTION, found.head, "")]
    pieces += [_Covered(part.title, part.text, knowledge.first_line(part)) for part in found.parts]
    met, at = [], 1
    for piece in pieces:
        lines = piece.text.split("\n")  # the last is empty if the text ends with a line end
        end = at + len(lines) - (not lines[-1])
        if at <= last and end > first and piece.text.strip():
            covered = lines[max(0, first - at) : last + 1 - at]
            met.append(replace(piece, text="\n".join(covered)))
        at = end
    return met or pieces[-1:]


def _matched(title: str, summary: str, content: str, words: list[str]) -> Answer:
    text = content if title == matching.INTRODUCTION else f"{title}\n{content}"
    contexts = matching.contexts(text, words)
    return {
        "chapter": title,
        "keywords_found": list(contexts),
        "match_context": contexts,
        "chapter_summary": summary,
        "content": content.strip(),
    }
