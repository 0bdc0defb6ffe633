"""Exports a project as a folder of Markdown, and imports such a folder as a project.

    main.md               the main text
    knowledge/*.md        the documents, byte for byte
    todo-1.md             a to-do list, as `checklists` writes it

A folder to import may come from somebody else: links in it are not followed, and a folder that is
too large is refused.
"""

import os
import stat
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from vector_index_mcp.checks import Issues
from vector_index_mcp.errors import SettingsError, UnknownError, counted
from vector_index_mcp.notes import checklists
from vector_index_mcp.notes.arguments import TOOLS
from vector_index_mcp.notes.calls import Store
from vector_index_mcp.notes.checklists import Checklist
from vector_index_mcp.notes.past.pieces import KNOWLEDGE, MAIN
from vector_index_mcp.notes.refusal import Code, Refusal
from vector_index_mcp.notes.store.disk import Change, Disk
from vector_index_mcp.notes.store.writer import Plan
from vector_index_mcp.notes.texts import todos
from vector_index_mcp.notes.texts.projects import Project, Projects
from vector_index_mcp.notes.texts.slugs import filename

_MAIN_TEXTS = ("main.md", "claude.md", "agents.md", "readme.md")
"""File names, in lower case, that are taken for the main text; the first one present wins."""
_ENDING = ".md"
_MOST_FILES = 2_000
_MOST_ENTRIES = 200_000  # files and folders of any kind
_DEEPEST = 30
_LARGEST_BYTES = 10_000_000  # of one file
_MOST_BYTES = 200_000_000  # of all files together, which are in memory at once
_MOST_NAMED = 5


# -- out -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Exported:
    """An exported project."""

    files: Mapping[str, bytes]
    """Contents by path below the folder."""
    left_out: tuple[str, ...]
    """Which files cannot be read, and why."""


def exported(store: Store, project: str) -> Exported:
    """Return the files of a project's export.

    Raises:
        Refusal: If the project cannot be listed.
        UnknownError: If there is no such project.
    """
    found = Projects(store.disk).find(project)
    if found is None:
        raise UnknownError(
            f"there is no project {project}; `vector-index-mcp notes list` lists all projects"
        )
    files: dict[str, bytes] = {}
    left_out: list[str] = []
    sources = {MAIN: found.main}
    sources |= {f"{KNOWLEDGE}/{name}": found.document(name) for name in store.shelf.names(found)}
    for name, path in sources.items():
        try:
            data = store.disk.read(path)
        except Refusal as refusal:
            left_out.append(str(refusal))
            continue
        if data is not None:
            files[name] = data
    for todo in todos.lists(store.disk, found.todos):
        text = checklists.written(checklists.checklist_of(todo))
        files[checklists.name_of(todo.number)] = text.encode("utf-8", "replace")
        left_out += todo.problems
    return Exported(files, tuple(left_out))


def write(files: Mapping[str, bytes], folder: Path) -> None:
    """Write files into an empty folder, or into a new one.

    Raises:
        SettingsError: If the folder is not empty, or is no folder.
        OSError: If the files cannot be written.
    """
    if folder.is_dir():
        if any(folder.iterdir()):
            raise SettingsError(f"{folder} is not empty; name an empty folder, or a new one")
    elif os.path.lexists(folder):
        raise SettingsError(f"{folder} is no folder; name an empty folder, or a new one")
    folder.mkdir(parents=True, exist_ok=True)
    for path, data in files.items():
        (folder / path).parent.mkdir(exist_ok=True)
        with (folder / path).open("xb") as file:
            file.write(data)


# -- in --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Folder:
    """The texts of a folder that can be imported."""

    main: bytes | None = None
    documents: Mapping[str, bytes] = field(default_factory=dict)
    """Contents by the names that the documents get in the store."""
    lists: Mapping[int, Checklist] = field(default_factory=dict)
    """The to-do lists by number."""
    skipped: tuple[str, ...] = ()
    """Which files cannot be imported, and why."""

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to import."""
        return self.main is None and not self.documents and not self.lists


def folder_of(path: Path) -> Folder:
    """Read the texts of a folder that can be imported.

    Raises:
        Refusal: If the folder cannot be listed.
        SettingsError: If it is no folder, holds no Markdown, or is too large.
    """
    if not path.is_dir():
        raise SettingsError(f"{path} is no folder; name a folder of Markdown files")
    disk = Disk(Path(os.path.realpath(path)))
    texts, skipped = _texts(disk, list(_markdown(disk, str(path))), str(path))
    if not texts and not skipped:
        raise SettingsError(f"{path} holds no Markdown (*.md); name a folder that does")
    return replace(_sorted_out(texts), skipped=tuple(skipped))


def _markdown(disk: Disk, shown: str) -> Iterator[tuple[str, int]]:
    """Yield path and size of each Markdown file; hidden ones count only directly in `knowledge`."""
    pending, seen, count = [("", 0)], 0, 0
    while pending:
        folder, depth = pending.pop()
        for name, status in disk.entries(folder):
            seen += 1
            path = f"{folder}/{name}" if folder else name
            if name.startswith(".") and folder != KNOWLEDGE:
                continue
            if stat.S_ISDIR(status.st_mode):
                if depth == _DEEPEST:
                    raise SettingsError(
                        f"{shown} nests folders more than {_DEEPEST} deep; import a part of it"
                    )
                pending.append((path, depth + 1))
            elif stat.S_ISREG(status.st_mode) and name.lower().endswith(_ENDING):
                count += 1
                yield path, status.st_size
        if count > _MOST_FILES or seen > _MOST_ENTRIES:
            raise SettingsError(
                f"{shown} holds more than {_MOST_FILES:,} Markdown files, or more than "
                f"{_MOST_ENTRIES:,} files and folders; import a part of it"
            )


def _texts(
    disk: Disk, found: Sequence[tuple[str, int]], shown: str
) -> tuple[dict[str, bytes], list[str]]:
    """Return the contents of the files by path, and which files are left out and why."""
    texts: dict[str, bytes] = {}
    skipped: list[str] = []
    total = 0
    for path, size in sorted(found):
        reason, data = "", b""
        if size > _LARGEST_BYTES:
            reason = f"it has more than {_LARGEST_BYTES // 1_000_000} MB"
        else:
            try:
                data = disk.read(path) or b""
                data.decode()
                reason = "it holds null bytes" if b"\0" in data else ""
            except UnicodeDecodeError:
                reason = "it is not in UTF-8"
            except Refusal as refusal:
                reason = str(refusal)
        total += len(data)
        if total > _MOST_BYTES:
            raise SettingsError(
                f"{shown} holds more than {_MOST_BYTES // 1_000_000} MB of Markdown; "
                "import a part of it"
            )
        if reason:
            skipped.append(f"{path}: {reason}")
        else:
            texts[path] = data
    return texts, skipped


def _sorted_out(texts: Mapping[str, bytes]) -> Folder:
    """Decide which file is the main text, a document or a to-do list."""
    main = _main_of(texts)
    documents: dict[str, bytes] = {}
    lists: dict[int, Checklist] = {}
    numbers: Counter[str] = Counter()
    # Files that are named as in a store come first, so that each of them keeps its name.
    for path in sorted(texts, key=lambda path: not _is_named_as_stored(path)):
        if path == main:
            continue
        number = checklists.number_of(path)
        found = checklists.read(texts[path].decode()) if number is not None else None
        if number is not None and found is not None:
            lists[number] = found
        else:
            documents[_document_name(path, documents, numbers)] = texts[path]
    return Folder(texts[main] if main else None, documents, lists)


def _main_of(paths: Mapping[str, bytes]) -> str:
    """Return the path of the main text; empty if there is none."""
    found = [path for path in sorted(paths) if path.lower() in _MAIN_TEXTS]
    return min(found, key=lambda path: _MAIN_TEXTS.index(path.lower()), default="")


def _is_named_as_stored(path: str) -> bool:
    folder, _, name = path.rpartition("/")
    return folder == KNOWLEDGE and name.endswith(_ENDING) and not _issue("filename", name)


def _document_name(path: str, taken: Mapping[str, bytes], numbers: "Counter[str]") -> str:
    """Return a name that is not taken; `numbers` holds the last number tried for each name."""
    if _is_named_as_stored(path):
        return path.rpartition("/")[2]
    bare = path.removeprefix(f"{KNOWLEDGE}/")[: -len(_ENDING)].replace("/", " ")
    first = name = filename(bare)
    while name in taken:
        numbers[first] += 1
        name = f"{first.removesuffix(_ENDING)}-{numbers[first]}{_ENDING}"
    return name


def _issue(argument: str, value: str) -> str:
    """Return the contract's message about a wrong argument; empty if it is valid."""
    issues = Issues()
    TOOLS["get_knowledge_file"].check(
        {"project_id": "x", "filename": "x", argument: value}, (), issues
    )
    return str(issues.found[0]["message"]) if issues.found else ""


def check_project(project: str) -> None:
    """Check a project's name.

    Raises:
        SettingsError: If no project may have this name.
    """
    issue = _issue("project_id", project)
    if not issue and not project.isprintable():
        issue = "it has characters that cannot be shown"
    if issue:
        raise SettingsError(f"no project can be called {project!r} ({issue}); use --project NAME")


def importing(store: Store, project: str, folder: Folder, *, replaces: bool) -> Plan:
    """Return the plan to import a folder. The writer calls this.

    Args:
        store: The store to import into.
        project: The project's id; the project need not exist yet.
        folder: The texts to import.
        replaces: Whether texts and lists with the same names are replaced.

    Raises:
        Refusal: If a text or list with the same name exists and `replaces` is false.
    """
    found, entry = Projects(store.disk).with_project(project)
    texts = {found.document(name): data for name, data in folder.documents.items()}
    if folder.main is not None:
        texts[found.main] = folder.main
    lists = {f"{found.todos}/{number}": each for number, each in folder.lists.items()}
    taken = [p for p in sorted({*texts, *lists}) if store.disk.status(p) is not None]
    if taken and not replaces:
        raise _taken(found, taken)
    puts = dict(texts)
    for number, checklist in folder.lists.items():
        puts |= _files_of(found, number, checklist)
    old = [path for place in lists for path in store.disk.files(place)]
    drops = tuple(path for path in old if path not in puts)
    counts = f"{counted(len(texts), 'text')} and {counted(len(lists), 'to-do list')}"
    message = f"Update knowledge for {found.id}: Imported {counts}"
    return Plan(Change({**puts, **entry}, drops), message, len(taken))


def _taken(project: Project, paths: Sequence[str]) -> Refusal:
    names = [path.removeprefix(f"{project.folder}/") for path in paths]
    shown = ", ".join(names[:_MOST_NAMED]) + (", …" if len(names) > _MOST_NAMED else "")
    return Refusal(
        Code.FILE_ALREADY_EXISTS,
        f"project {project.id} has this already: {shown}; --replace replaces it; nothing was "
        "changed",
    )


def _files_of(project: Project, number: int, checklist: Checklist) -> dict[str, bytes]:
    """Return the files of a to-do list, by path."""
    files = todos.new_list(
        project.todos, number, checklist.description, [], created=checklist.created
    )
    for item in checklist.items:
        files |= todos.new_task(
            f"{project.todos}/{number}",
            item.number,
            item.title,
            item.content,
            is_completed=item.completed,
        )
    return files
