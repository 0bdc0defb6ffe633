"""The commands that make a dataset: from a folder, or from what is already indexed here."""

import argparse
import json
import os
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from vector_index_mcp.console import progress
from vector_index_mcp.console.awaiting import awaited
from vector_index_mcp.console.terminal import write
from vector_index_mcp.console.typed import resolved
from vector_index_mcp.datasets import making, workshop
from vector_index_mcp.datasets.making import About, Made
from vector_index_mcp.datasets.workshop import Order
from vector_index_mcp.errors import SettingsError, UnknownError, VectorIndexError, counted
from vector_index_mcp.processes import git
from vector_index_mcp.serving import loading

if TYPE_CHECKING:
    from vector_index_mcp.indexing.service import LiveIndex
    from vector_index_mcp.settings import Settings


def index(line: argparse.Namespace, settings: "Settings") -> int:
    """Make a dataset from a folder, or add to a dataset; print the result or an error as JSON.

    Returns:
        The exit status.
    """
    root = resolved(line.output)
    try:
        source = workshop.folder_of(
            str(resolved(line.source)), allow_broad=settings.allow_broad_path
        )
        revision = git.revision_of(source)
        about = _about(line, line.source, revision, is_appended=line.append)
        order = Order(
            source, about, line.file_types, line.model, line.chunk_size, is_appended=line.append
        )
        index_of = partial(loading.index_of_texts, settings=settings)
        with progress.shown() as bar:
            found = awaited(partial(workshop.made, index_of, order, root, bar))
    except VectorIndexError as error:
        write(json.dumps({"error": str(error)}), sys.stderr)
        return 1
    return _print(found)


def export(line: argparse.Namespace, settings: "Settings") -> int:
    """Make a dataset from an index and print the result as JSON; returns the exit status.

    Raises:
        VectorIndexError: If the dataset cannot be made.
    """
    folder = making.place_of(resolved(line.output), line.dataset_id)
    live, below, source, revision = _KINDS[line.kind](line.what, settings)
    about = _about(line, source, revision)
    with progress.shown() as bar:
        return _print(awaited(partial(workshop.of_index, live, below, about, folder, bar)))


def _print(made: Made) -> int:
    if made.left_out:
        have = "has no vector and is" if made.left_out == 1 else "have no vector and are"
        write(f"{counted(made.left_out, 'chunk')} {have} left out", sys.stderr)
    write(json.dumps(making.facts_about(made), indent=2))
    return 0


def _about(
    line: argparse.Namespace, source: str, revision: str, *, is_appended: bool = False
) -> About:
    return About.of(
        line.dataset_id,
        source,
        revision,
        name=line.name,
        description=line.description,
        license_=line.license,
        is_appended=is_appended,
    )


# -- what is indexed -------------------------------------------------------------------------


def _of_codebase(what: str, settings: "Settings") -> "tuple[LiveIndex, str, str, str]":
    from vector_index_mcp.codebase.project import resolve_project

    project = resolve_project(what, allow_broad=settings.allow_broad_path)
    codebase = loading.load_codebase(project, settings)
    return codebase.index, "", project.name, git.revision_of(project)


def _of_documents(what: str, settings: "Settings") -> "tuple[LiveIndex, str, str, str]":
    from vector_index_mcp.documents import home
    from vector_index_mcp.documents.home import DEFAULT_NAME

    documents = loading.load_documents(home.home_of(DEFAULT_NAME, os.environ, Path.cwd()), settings)
    try:
        collection = documents.configuration.named(what)
    except UnknownError as error:
        raise SettingsError(
            f"there is no collection {what!r}; `vector-index-mcp documents collection list` lists "
            "the collections"
        ) from error
    return documents.index, what, f"collection {what}", git.revision_of(collection.path)


def _of_notes(what: str, settings: "Settings") -> "tuple[LiveIndex, str, str, str]":
    from vector_index_mcp.notes.home import home_of
    from vector_index_mcp.notes.store.disk import Disk
    from vector_index_mcp.notes.texts.projects import existing

    home = home_of("", os.environ, Path.cwd())
    project = existing(Disk(home), what)
    below = project.folder.partition("/")[2]
    return loading.index_of_notes(home, settings), below, f"notes on {what}", git.revision_of(home)


_KINDS: "dict[str, Callable[[str, Settings], tuple[LiveIndex, str, str, str]]]" = {
    "codebase": _of_codebase,
    "documents": _of_documents,
    "notes": _of_notes,
}
"""By kind, the function that returns the index, the prefix of its keys, its name and revision."""
