"""Calls about the store itself."""

import shlex
from collections.abc import Iterator
from dataclasses import dataclass

from vector_index_mcp import __version__
from vector_index_mcp.notes.calls import Answer, Store
from vector_index_mcp.notes.layout import PROJECTS
from vector_index_mcp.notes.limits import MOST_SHOWN
from vector_index_mcp.notes.merging import conflicts
from vector_index_mcp.notes.refusal import Refusal
from vector_index_mcp.notes.store.byhand import some
from vector_index_mcp.notes.store.checkout import Checkout
from vector_index_mcp.notes.store.large import about_large
from vector_index_mcp.notes.store.writer import Writer
from vector_index_mcp.notes.texts import todos
from vector_index_mcp.notes.texts.projects import Project, Projects
from vector_index_mcp.notes.texts.slugs import folders_of

NAME = "Knowledge MCP Server"
_NO_REMOTE = "No remote configured"
LAGGING = (
    "a git command holds .git/index.lock, so git's index lacks this change: a `git commit` would "
    "undo it; let that command end, or delete .git/index.lock if none is running"
)
"""The note of an answered change that the index does not have yet."""
CLEAN = "Working tree clean"
"""The status details of a store without problems and uncommitted changes."""


def server_info(store: Store) -> Answer:
    """Return the server's name and version, and the path of the store."""
    return {
        "name": NAME,
        "version": __version__,
        "storage_path": str(store.disk.root),
        "description": f"{NAME} - notes about projects, kept in git and searchable",
    }


@dataclass(frozen=True, slots=True)
class Storage:
    """The state of the store's repository."""

    branch: str
    last_commit: str
    uncommitted: tuple[str, ...]
    """Files that differ from the last commit."""
    problem: str
    """Why the history cannot be written; empty if it can."""
    left_alone: tuple[str, ...] = ()
    """What is wrong with git's index, and which files no tool reads, and why, in sentences."""


def look(writer: Writer) -> Storage:
    """Return the state of the repository. Call it only while nothing changes the store."""
    repository, tree = writer.repository, writer.tree
    last = repository.run("log", "-1", "--format=%h - %s (%cr)", tree.commit)
    return Storage(
        repository.branch().removeprefix("refs/heads/"),
        last.output.decode("utf-8", "replace").strip(),
        tuple(writer.by_hand.edited(tree)),
        "",
        tuple(_left_alone(writer)),
    )


def _left_alone(writer: Writer) -> Iterator[str]:
    if words := writer.index.damage():
        yield (
            f"{words}: no git command works there; `vector-index-mcp notes doctor --repair` "
            "makes it anew"
        )
    elif paths := writer.index.behind():
        yield (
            f"git's index has an older state of {some(paths)}, since somebody holds "
            ".git/index.lock: a `git commit` would undo what is newer; end that git command, or "
            "remove the lock if none is running"
        )
    yield from map(about_large, sorted(writer.by_hand.large))
    yield from (words for _, words in sorted(writer.by_hand.filtered.items()))
    if skipped := writer.by_hand.checkout.left_out(writer.repository):
        yield (
            f"the sparse checkout leaves out {some(skipped)}: no tool reads or changes what it "
            "leaves out; `git sparse-checkout disable` brings it back"
        )


def about_absence(store: Store, checkout: Checkout, name: str) -> str:
    """Say why something of a project is not found although it may be in the store.

    A sparse checkout leaves it out, or `index.json` cannot be parsed. Empty if neither is so.
    """
    try:
        projects = Projects(store.disk)
        project = projects.find(name)
        if project is None and projects.problem:
            return projects.problem
        skipped = checkout.left_out(store.repository)
    except Refusal:  # git is missing, or the project has no valid folder
        return ""
    folders = [project.folder] if project else [f"{PROJECTS}/{each}" for each in folders_of(name)]
    for folder in folders:
        if files := [path for path in skipped or () if path.startswith(f"{folder}/")]:
            what = some(files) if store.disk.is_folder(folder) else folder
            return (
                f"the sparse checkout in {store.disk.root} leaves out {what}; run "
                f"`git sparse-checkout add {shlex.quote(folder)}` there"
            )
    return ""


def status(store: Store, storage: Storage, remote: str, news: list[str]) -> Answer:
    """Return the answer of `get_storage_status`.

    Args:
        store: The store.
        storage: The state of its repository.
        remote: Whether the store and its remote agree, in words; empty if there is no remote.
        news: What the last merges have decided, in sentences.
    """
    problems = [storage.problem] if storage.problem else []
    details = list(
        dict.fromkeys([*problems, *news, *storage.left_alone[:MOST_SHOWN], *troubles(store)])
    )
    if storage.uncommitted:
        shown = list(storage.uncommitted[:MOST_SHOWN])
        details.insert(0, f"Not committed yet: {', '.join(shown)}")
    return {
        "storage_path": str(store.disk.root),
        "has_changes": bool(storage.uncommitted),
        "current_branch": storage.branch,
        "last_commit": storage.last_commit,
        "remote_status": remote or _NO_REMOTE,
        "uncommitted_files": len(storage.uncommitted),
        "status_details": "\n".join(details) or CLEAN,
    }


def _troubles_of(store: Store, project: Project) -> Iterator[str]:
    for name, text in _texts_of(store, project):
        if isinstance(text, Refusal):
            yield str(text)
            continue
        for title in conflicts(text):
            yield (
                f'{project.id}, {name}: "{title}" was changed on two machines; keep what is right, '
                "and remove one version"
            )
    for todo in todos.lists(store.disk, project.todos):
        yield from todo.problems
        yield from todo.conflicts


def _texts_of(store: Store, project: Project) -> "Iterator[tuple[str, str | Refusal]]":
    """Yield the name and text of a project's main text and of each of its documents.

    In place of a text that cannot be read comes the Refusal that says why.

    Raises:
        Refusal: If the documents cannot be listed.
    """
    try:
        yield "main.md", store.disk.read_text(project.main) or ""
    except Refusal as refusal:
        yield "main.md", refusal
    for read in store.shelf.documents(project):
        yield ("", read) if isinstance(read, Refusal) else (read.document.name, read.document.text)


def about_no_folder(project: Project) -> str:
    """Say that a project's folder is not there, and what to do."""
    return (
        f"project {project.id} has no folder ({project.folder}); if the folder was renamed, rename "
        "it back, or correct index.json"
    )


def troubles(store: Store) -> list[str]:
    """Return what cannot be read in the store, and what two machines have both changed."""
    try:
        projects = Projects(store.disk)
        found = [projects.problem] if projects.problem else []
        found += [
            f"the entry of project {name} in index.json is not a valid folder name; correct it"
            for name in projects.unusable
        ]
        found += map(about_no_folder, projects.without_folder())
        for project in projects.all():
            found += _troubles_of(store, project)
    except Refusal as refusal:
        return [str(refusal)]
    return found if len(found) <= MOST_SHOWN else [*found[:MOST_SHOWN], f"… {len(found)} in all"]
