"""The three MCP resources: a project's main text, its documents, and a document's chapters."""

import json
from collections.abc import Callable, Mapping

from vector_index_mcp.notes.calls import Answer, Store
from vector_index_mcp.notes.document_calls import metadata_of
from vector_index_mcp.notes.quoting import quoted, unquoted
from vector_index_mcp.notes.refusal import Code, Refusal
from vector_index_mcp.notes.texts import knowledge
from vector_index_mcp.notes.texts.projects import Project, Projects, existing

_START = "knowledge://projects/"
MARKDOWN, JSON = "text/markdown", "application/json"


class UnknownResource(Exception):
    """Raised when an address fits none of the templates."""


TEMPLATES: Mapping[str, tuple[str, str, str, str]] = {
    "main": (
        f"{_START}{{project_id}}/main",
        "Project Main Instructions",
        "A project's main.md",
        MARKDOWN,
    ),
    "files": (
        f"{_START}{{project_id}}/files",
        "Knowledge Files",
        "All documents of a project",
        JSON,
    ),
    "chapters": (
        f"{_START}{{project_id}}/chapters/{{filename}}",
        "Document Chapters",
        "The chapters of one document",
        JSON,
    ),
}
"""Address, title, description and MIME type of each template, by name."""


def addresses(store: Store) -> list[tuple[str, str, str]]:
    """Return address, name and MIME type of each resource.

    Raises:
        Refusal: If the projects cannot be listed.
    """
    found = []
    for project in Projects(store.disk).all():
        at = f"{_START}{quoted(project.id)}"
        if store.disk.status(project.main) is not None:
            found.append((f"{at}/main", f"{project.id}: instructions", MARKDOWN))
        if store.shelf.names(project):
            found.append((f"{at}/files", f"{project.id}: documents", JSON))
    return found


LeftOut = Callable[[], str]
"""Says why something of a project may not be found; empty if nothing is known of that."""


def project_in(address: str) -> str:
    """Return the id of the project in a resource's address, which need not fit a template.

    Raises:
        UnknownResource: If no project can have this address.
    """
    return _name_in(address, address.removeprefix(_START).partition("/")[0])


def _name_in(address: str, component: str) -> str:
    try:
        return unquoted(component)
    except ValueError as error:
        raise UnknownResource(address) from error


def read(store: Store, address: str, left_out: LeftOut) -> tuple[str, str]:
    """Return a resource's text and MIME type.

    Args:
        store: The store.
        address: The address of the resource.
        left_out: See `LeftOut`; about the resource's project.

    Raises:
        Refusal: If there is no such project or document, or it cannot be read.
        UnknownResource: If the address fits none of the templates.
    """
    project, _, rest = address.removeprefix(_START).partition("/")
    kind, _, name = rest.partition("/")
    if not address.startswith(_START) or not project or bool(name) != (kind == "chapters"):
        raise UnknownResource(address)
    make = _KINDS.get(kind)
    if make is None:
        raise UnknownResource(address)
    document = _name_in(address, name)
    return make(store, existing(store.disk, project_in(address)), document, left_out)


def _main(store: Store, project: Project, _: str, __: LeftOut) -> tuple[str, str]:
    text = store.disk.read_text(project.main)
    if text is None:
        raise Refusal(Code.DOCUMENT_NOT_FOUND, f"Project {project.id} has no main.md yet")
    return text, MARKDOWN


def _files(store: Store, project: Project, _: str, left_out: LeftOut) -> tuple[str, str]:
    files: list[Answer] = []
    for found in store.shelf.documents(project):
        if not isinstance(found, Refusal):
            name = found.document.name
            files.append({"filename": name, **metadata_of(found), "revision": found.revision})
    answer: Answer = {"files": files, "count": len(files)}
    if words := left_out():
        answer["note"] = words
    return _json(answer)


def _chapters(store: Store, project: Project, name: str, _: LeftOut) -> tuple[str, str]:
    found = store.shelf.document(project, name)
    chapters = [
        {"title": part.title, "level": 2, "summary": knowledge.summary(part)}
        for part in found.document.parts.parts
    ]
    return _json(
        {
            "filename": name,
            "title": found.metadata.title,
            "chapters": chapters,
            "count": len(chapters),
        }
    )


def _json(values: Answer) -> tuple[str, str]:
    return json.dumps(values, indent=2, ensure_ascii=False), JSON


_KINDS: Mapping[str, Callable[[Store, Project, str, LeftOut], tuple[str, str]]] = {
    "main": _main,
    "files": _files,
    "chapters": _chapters,
}
