"""The commands `install` and `uninstall`: plan the changes, show them, ask, and write."""

import argparse
import difflib
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from vector_index_mcp.clients import configs, places, plan, screen
from vector_index_mcp.clients.catalog import CLIENTS
from vector_index_mcp.clients.client import SCOPES, USER, Client
from vector_index_mcp.clients.launch import Launch, this_program
from vector_index_mcp.clients.plan import Step
from vector_index_mcp.clients.served import Collections, Project, Served, Shelf, Store
from vector_index_mcp.codebase.project import resolve_project
from vector_index_mcp.documents.home import check_name
from vector_index_mcp.errors import ConfigFileError, SettingsError
from vector_index_mcp.serving.names import CODEBASE, DATASETS, DOCUMENTS, NOTES

_NONE = {
    CODEBASE: "no client has an entry for this project",
    DOCUMENTS: "no client has an entry for these documents",
    NOTES: "no client has an entry for these notes",
    DATASETS: "no client has an entry for these datasets",
}
_BY_NAME = {name: client for client in CLIENTS for name in (client.name, *client.also)}
_NAMES = " ".join(client.name for client in CLIENTS)
_NEAR = 0.6  # the similarity, as difflib measures it, at which a name may be a typing error

Plan = Callable[[], list[Step]]


def install(parsed: argparse.Namespace, *, allow_broad: bool) -> int:
    """Add an entry to the configurations of clients; returns the exit status.

    Raises:
        ProjectError: If there is no such project.
        SettingsError: If a named client is unknown, or the options do not go together.
    """
    path, names = _path_and_names(parsed)
    served = _served(parsed, path, allow_broad=allow_broad)
    project = _folder(path)
    here = places.here(project)
    clients = _named(names, parsed.scope) if names else _found(here, parsed)
    if not clients:
        screen.say("nothing was written")
        return 1
    options = ("--env-file", str(Path(parsed.env_file).absolute())) if parsed.env_file else ()
    launch = Launch(served, this_program(sys.argv[0]), options)
    if launch.lies_in_a_cache:
        screen.complain(
            f"{launch.program[0]} lies in a cache, which may be emptied; install the program "
            "permanently (`uv tool install`, `pipx install` or pip) and run `install` again"
        )
    plans: list[Plan] = [
        partial(
            plan.install,
            client,
            _scope(client, parsed),
            here,
            launch,
            is_chosen=parsed.scope is not None,
        )
        for client in clients
    ]
    if parsed.agents_md:
        documents = plan.documents(project, clients)
        plans += [partial(plan.install_guide, project, document) for document in documents]
    return _carry_out(plans, parsed)


def uninstall(parsed: argparse.Namespace) -> int:
    """Remove our entries from the configurations of clients.

    Returns:
        The exit status.

    Raises:
        SettingsError: If a named client is unknown, or has no such scope.
    """
    path, names = _path_and_names(parsed)
    project = _folder(path)  # the folder need not exist: entries outlive a deleted project
    served: Served = Project(project) if parsed.set == CODEBASE else _of_user(parsed, path)
    here = places.here(project)
    clients = _named(names, parsed.scope) if names else CLIENTS
    scopes = [parsed.scope] if parsed.scope else SCOPES
    files = {  # several scopes may lead to one file
        (client.name, path): partial(plan.uninstall, client, scopes, path, here, served)
        for client in clients
        for scope in scopes
        for path in client.paths(scope, here)
    }
    plans: list[Plan] = [*files.values()]
    if parsed.set == CODEBASE:
        plans += [
            partial(plan.uninstall_guide, project, document, is_wanted=parsed.agents_md)
            for document in plan.every_document(project)
        ]
    return _carry_out(plans, parsed)


def _carry_out(plans: Sequence[Plan], parsed: argparse.Namespace) -> int:
    """Show what the plans would change, ask, and change it; returns the exit status.

    A reader of the output who leaves early stops no change halfway: either every change is made or
    none.
    """
    steps, failures = _decided(plans)
    changing = [step for step in steps if step.change is not None]
    with screen.unread(is_fine=parsed.yes or parsed.dry_run):
        _show(steps, failures, _NONE[parsed.set])
    if not changing or parsed.dry_run:
        return 1 if failures else 0
    if not parsed.yes:
        if not sys.stdin.isatty():
            screen.complain("nothing was written; give --yes to write without being asked")
            return 2
        changes = "this change" if len(changing) == 1 else f"these {len(changing)} changes"
        if not screen.confirms(f"Write {changes}?"):
            screen.say("nothing was written")
            return 1
    return 1 if not _written(changing) or failures else 0


def _decided(plans: Sequence[Plan]) -> tuple[list[Step], list[str]]:
    """Return the steps of all plans, and the errors of those that failed.

    A broken file stops only the plan of its client.
    """
    steps: list[Step] = []
    failures: list[str] = []
    for decide in plans:
        try:
            steps += decide()
        except ConfigFileError as error:
            failures.append(str(error))
    return steps, failures


def _show(steps: Sequence[Step], failures: Sequence[str], none: str) -> None:
    """Print the steps and the failures; print `none` if there are neither."""
    for failure in failures:
        screen.complain(failure)
    for step in steps:
        if step.change is None:
            screen.say(f"{step.title}: {step.remark}")
        else:
            screen.show(step.title, step.change, step.warning)
    if not steps and not failures:
        screen.say(none)


def _written(steps: Sequence[Step]) -> bool:
    """Write every change, then report; return whether all could be written."""
    done, failures = [""], []
    for step in steps:
        assert step.change is not None
        try:
            backup = configs.apply(step.change)
        except ConfigFileError as error:
            failures.append(str(error))
            continue
        did = "restored" if step.change.restores else "wrote"
        did = "removed" if step.change.after is None else did
        kept = f" (backup: {backup.name})" if backup else ""
        done.append(f"{step.title}: {did} {step.change.path}{kept}")
        if step.then:
            done.append(f"  next: {step.then}")
    with screen.unread():
        for failure in failures:
            screen.complain(failure)
        for line in done:
            screen.say(line)
    return not failures


def _served(parsed: argparse.Namespace, path: str, *, allow_broad: bool) -> Served:
    """Return what the entries should serve.

    Raises:
        ProjectError: If there is no such project.
        SettingsError: If the options do not go together.
    """
    if parsed.set == CODEBASE:
        first, *others = [resolve_project(p, allow_broad=allow_broad) for p in (path, *parsed.also)]
        return Project(first, tuple(other for other in dict.fromkeys(others) if other != first))
    if parsed.also:
        raise SettingsError(f"--also names projects, but --set {parsed.set} serves no project")
    if parsed.agents_md:
        raise SettingsError(
            f"--agents-md adds when to search this project, but --set {parsed.set} serves no "
            "project; leave it out, the tools explain themselves"
        )
    return _of_user(parsed, path)


def _of_user(parsed: argparse.Namespace, path: str) -> Served:
    """Return what belongs to no project: documents, notes, or datasets."""
    if parsed.set == DATASETS:
        return Shelf(_folder(path))
    if parsed.set == NOTES:
        return Store(_folder(parsed.home) if parsed.home else None)
    check_name(parsed.index)
    return Collections(parsed.index)


def _folder(path: str) -> Path:
    # pathlib would raise an error if a home folder is unknown.
    return Path(os.path.realpath(os.path.expanduser(path)))  # noqa: PTH111


def _scope(client: Client, parsed: argparse.Namespace) -> str:
    """Return the scope of an entry; by default, entries for no project go into the user's file."""
    if parsed.scope:
        return str(parsed.scope)
    return USER if parsed.set != CODEBASE and USER in client.files else client.scope


def _path_and_names(parsed: argparse.Namespace) -> tuple[str, list[str]]:
    """Return the project's path and the clients' names.

    `--client` takes all words after it. So in `install --client cursor .` its last word is the
    path.
    """
    names: list[str] = [name for word in parsed.client for name in word.split(",") if name]
    path: str | None = parsed.path
    if path is None and len(names) > 1 and names[-1] not in _BY_NAME and Path(names[-1]).is_dir():
        path = names.pop()
    return path or ".", list(dict.fromkeys(names))


def _named(names: Sequence[str], scope: str | None) -> list[Client]:
    """Return the clients with these names.

    Raises:
        SettingsError: If a name is unknown, or its client has no such scope.
    """
    for name in names:
        if name not in _BY_NAME:
            near = difflib.get_close_matches(name.lower(), _BY_NAME, 1, _NEAR)
            meant = f"; did you mean {near[0]}?" if near else ""
            raise SettingsError(
                f"{name!r} is not a client this program knows{meant}; clients: {_NAMES}"
            )
        client = _BY_NAME[name]
        if scope and scope not in client.files:
            raise SettingsError(
                f"{client.title} has no configuration for --scope {scope}; leave --scope out"
            )
    return list({_BY_NAME[name].name: _BY_NAME[name] for name in names}.values())


def _found(here: Mapping[str, Path], parsed: argparse.Namespace) -> list[Client]:
    """Return the clients on this machine; on a terminal, let the person choose among them.

    Raises:
        SettingsError: If no client is found.
    """
    clients = [
        client
        for client in CLIENTS
        if client.is_installed(here) and _scope(client, parsed) in client.files
    ]
    if not clients:
        raise SettingsError(
            f"no client was found on this machine; name one with --client ({_NAMES}), or copy the "
            "entry that `vector-index-mcp --help` shows into the configuration of another one"
        )
    is_asked = sys.stdin.isatty() and not (parsed.yes or parsed.dry_run) and len(clients) > 1
    return screen.choice(clients) if is_asked else clients
