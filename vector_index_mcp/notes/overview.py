"""What a store contains, in numbers, and when it was last changed. Needs no running service."""

from collections.abc import Mapping
from dataclasses import dataclass

from vector_index_mcp.notes import store_calls
from vector_index_mcp.notes.calls import Answer, Store
from vector_index_mcp.notes.layout import INDEX, PROJECTS
from vector_index_mcp.notes.past.history import head_of, last_changes
from vector_index_mcp.notes.past.states import tree_of
from vector_index_mcp.notes.refusal import Refusal
from vector_index_mcp.notes.store import place
from vector_index_mcp.notes.store.byhand import ByHand
from vector_index_mcp.notes.store.disk import GIT, Disk
from vector_index_mcp.notes.store.remote import Remote
from vector_index_mcp.notes.store.writer import Writer
from vector_index_mcp.notes.syncing import Syncing
from vector_index_mcp.notes.texts import todos
from vector_index_mcp.notes.texts.projects import Project, Projects
from vector_index_mcp.notes.texts.todos import Todo

NOTHING = "Nobody has written a note yet"


@dataclass(frozen=True, slots=True)
class Row:
    """A project in numbers."""

    project: str
    documents: int
    todos: int
    open: int
    """How many tasks are not done yet."""
    tasks: int
    changed: int
    """When it was last changed, in seconds since 1970; 0 if that is not known."""


@dataclass(frozen=True, slots=True)
class Document:
    """A document in a list."""

    name: str
    title: str
    chapters: int
    changed: int
    problem: str = ""
    """Why the document cannot be read; empty if it can."""


@dataclass(frozen=True, slots=True)
class Contents:
    """What a project contains."""

    main_chars: int | None
    """The length of the main text; None if there is none."""
    documents: tuple[Document, ...]
    todos: tuple[Todo, ...]
    changed: Mapping[str, int]
    """When the main text and each to-do list were last changed, by path in the project's folder."""


def has_notes(disk: Disk) -> bool:
    """Return whether somebody has ever written a note here.

    Raises:
        Refusal: If the folder cannot be read.
    """
    return any(disk.status(path) is not None for path in (f"{GIT}/HEAD", INDEX, PROJECTS))


class Times:
    """When files were last changed: by the history, or by the disk if they are not committed."""

    def __init__(self, store: Store, folder: str) -> None:
        """Read the times of all files below `folder`."""
        self.problem = ""
        """Why the times are not known; empty if they are."""
        self._times: dict[str, int] = {}
        try:
            head = head_of(store)
            committed = last_changes(store, head, folder)
            edited = ByHand(store.disk).edited(tree_of(store.repository, head))
        except Refusal as refusal:
            self.problem = str(refusal)
            return
        for path, when in committed.items():
            self._enter(path, when)
        for path in edited:
            status = store.disk.status(path)
            if status is not None and path.startswith(f"{folder}/"):
                self._enter(path, int(status.st_mtime))

    def _enter(self, path: str, when: int) -> None:
        """Record the time of a file's change, for the file and for each folder that contains it."""
        while path:
            self._times[path] = max(when, self._times.get(path, 0))
            path = path.rpartition("/")[0]

    def of(self, place: str) -> int:
        """Return the last change of a file, or of anything in a folder; 0 if it is not known."""
        return self._times.get(place, 0)


def rows(store: Store, times: Times) -> list[Row]:
    """Return a row for each project whose folder is there, sorted by id.

    Args:
        store: The store.
        times: When its files were changed.

    Raises:
        Refusal: If the projects cannot be listed.
    """
    known = Projects(store.disk)
    gone = known.without_folder()
    projects = sorted((each for each in known.all() if each not in gone), key=lambda p: p.id)
    return [_row(store, project, times) for project in projects]


def _row(store: Store, project: Project, times: Times) -> Row:
    lists = list(todos.lists(store.disk, project.todos))
    tasks = sum(len(todo.tasks) for todo in lists)
    done = sum(todo.completed_count for todo in lists)
    documents = len(store.shelf.names(project))
    when = times.of(project.folder)
    return Row(project.id, documents, len(lists), tasks - done, tasks, when)


def contents_of(store: Store, project: Project, times: Times) -> Contents:
    """Return what a project contains.

    Args:
        store: The store.
        project: The project.
        times: When its files were changed.

    Raises:
        Refusal: If the project cannot be listed.
    """
    main = store.disk.read(project.main)
    lists = tuple(todos.lists(store.disk, project.todos))
    documents = []
    for name in store.shelf.names(project):
        when = times.of(project.document(name))
        try:
            read = store.shelf.listed(project, name)
        except Refusal as refusal:
            documents.append(Document(name, "", 0, when, str(refusal)))
            continue
        chapters = len(read.document.parts.parts)
        documents.append(Document(name, read.metadata.title, chapters, when))
    places = [project.main, *(todo.folder for todo in lists)]
    return Contents(
        None if main is None else len(main.decode("utf-8", "replace")),
        tuple(documents),
        lists,
        {place.removeprefix(f"{project.folder}/"): times.of(place) for place in places},
    )


def status(store: Store) -> Answer:
    """Return the answer of `get_storage_status` without a running service.

    Raises:
        Refusal: If the store cannot be read.
    """
    writer = Writer(store.disk, store.repository)
    try:
        place.check(store.disk)
        if not has_notes(store.disk):
            return store_calls.status(store, _without_history(NOTHING), "", [])
        storage = _looked_at(store, writer)
    except Refusal as refusal:
        storage = _without_history(str(refusal))
    remote = Syncing(writer, Remote(store.disk, store.repository)).status()
    return store_calls.status(store, storage, remote, [])


def _looked_at(store: Store, writer: Writer) -> store_calls.Storage:
    head = head_of(store)
    if head:
        writer.tree.follow(head)
        return store_calls.look(writer)
    return _without_history("", tuple(writer.by_hand.edited(writer.tree)))


def _without_history(problem: str, uncommitted: tuple[str, ...] = ()) -> store_calls.Storage:
    return store_calls.Storage("", "", uncommitted, problem)
