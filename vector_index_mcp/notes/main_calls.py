"""The calls about a project's main instructions, and about the project itself."""

from collections.abc import Callable, Mapping
from dataclasses import replace

from vector_index_mcp.notes.calls import (
    Answer,
    Given,
    Read,
    Store,
    Write,
    check_revision,
    plan_of,
    project_of,
)
from vector_index_mcp.notes.refusal import Code, Refusal
from vector_index_mcp.notes.store.writer import Plan
from vector_index_mcp.notes.texts import sections, todos
from vector_index_mcp.notes.texts.projects import Projects
from vector_index_mcp.notes.texts.reading import revision_of

_MOST_NAMES = 200


def _get(store: Store, given: Given) -> Answer:
    projects = Projects(store.disk)
    project = projects.find(given["project_id"])
    if project is None:
        similar = projects.similar(given["project_id"])
        return {
            "exists": False,
            "content": "",
            **({"similar_projects": similar} if similar else {}),
        }
    text = store.disk.read_text(project.main)
    others: Answer = {}
    if documents := store.shelf.names(project):
        others["documents"] = documents[:_MOST_NAMES]
    if numbers := todos.numbers(store.disk, project.todos):
        others["todo_numbers"] = numbers[:_MOST_NAMES]
    if text is None:
        return {"exists": False, "content": "", **others}
    return {"exists": True, "content": text, **others, "revision": revision_of(text.encode())}


def _update(store: Store, given: Given) -> Plan:
    project, puts = Projects(store.disk).with_project(given["project_id"])
    # This refuses if the text cannot be read: nobody may replace a text without having read it.
    old = store.disk.read_text(project.main)
    check_revision(store, given, project.main, (old or "").encode())
    data = given["content"].encode()
    return plan_of(
        project,
        "Updated main.md" if old is not None else "Created main.md",
        {project.main: data, **puts},
        {"message": f"Project main updated for {project.id}", "revision": revision_of(data)},
    )


def _changing(done: str, changed: Callable[[str, Given], str]) -> Callable[[Store, Given], Plan]:
    """Return a call that changes a section.

    Args:
        done: A verb and a preposition for the messages, such as "updated in".
        changed: Returns the new main text from the old one and the arguments.
    """

    def plan(store: Store, given: Given) -> Plan:
        project = project_of(store, given)
        old = store.disk.read_text(project.main) or ""
        check_revision(store, given, project.main, old.encode())
        header = given["section_header"]
        data = changed(old, given).encode()
        verb, preposition = done.split(" ")
        message = f'Section "{header}" {verb} {preposition} project {project.id}'
        return plan_of(
            project,
            f"{verb.capitalize()} section '{header}' {preposition} main.md",
            {project.main: data},
            {"message": message, "revision": revision_of(data)},
        )

    return plan


def _delete_project(store: Store, given: Given) -> Plan:
    name = given["project_id"]
    projects = Projects(store.disk)
    project = projects.find(name)
    if project is None:
        raise Refusal(Code.PROJECT_NOT_FOUND, f"Project '{name}' not found")
    puts, message = projects.without_project(name), f"Project '{name}' successfully deleted"
    drops = (project.folder,) if store.disk.is_folder(project.folder) else ()
    if drops and projects.shares_folder(project):
        if not puts:
            raise Refusal(Code.PROJECT_NOT_FOUND, f"Project '{name}' not found")
        drops = ()
        message += f"; {project.folder} stays, because another project has this folder, too"
    plan = plan_of(
        project, "Deleted project", puts, {"project_id": name, "message": message}, *drops
    )
    return replace(plan, places=(project.folder,))


READS: Mapping[str, Read] = {"get_project_main": _get}
WRITES: Mapping[str, Write] = {
    "update_project_main": _update,
    "update_project_section": _changing(
        "updated in",
        lambda text, given: sections.updated(text, given["section_header"], given["new_content"]),
    ),
    "remove_project_section": _changing(
        "removed from", lambda text, given: sections.without(text, given["section_header"])
    ),
    "add_project_section": _changing(
        "added to",
        lambda text, given: sections.extended(
            text,
            given["section_header"],
            given["content"],
            given["position"],
            given.get("reference_header"),
        ),
    ),
    "delete_project": _delete_project,
}
