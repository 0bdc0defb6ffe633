"""The commands that make a dataset: of a folder, or of what is already indexed here."""

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from vector_index_mcp.console import progress
from vector_index_mcp.console.commands import awaited
from vector_index_mcp.console.datasets.arguments import resolved
from vector_index_mcp.console.terminal import write
from vector_index_mcp.datasets import making, manifest
from vector_index_mcp.datasets.making import About, Made
from vector_index_mcp.errors import SettingsError, VectorIndexError, sentence
from vector_index_mcp.indexing.keeper import Role
from vector_index_mcp.processes import git
from vector_index_mcp.serving import loading

if TYPE_CHECKING:
    from vector_index_mcp.indexing.service import LiveIndex
    from vector_index_mcp.settings import Settings

_GIT_SECONDS = 10.0
_CHARS_PER_WORD = 6


def index(line: argparse.Namespace, settings: "Settings") -> int:
    """Make a dataset of a folder; prints what was made, or an error, as JSON."""
    try:
        folder = _place_of(line)
        source = _folder_of(line.source)
        changed = {"embedding_model": line.model} if line.model else {}
        if line.chunk_size:
            changed["chunk_max_chars"] = line.chunk_size * _CHARS_PER_WORD
        chosen = settings.model_copy(update=changed)
        live = loading.index_of_texts(source, line.file_types, chosen)
        about = _about(line, line.source, _revision_of(source))
        made = awaited(partial(_made, live, "", about, folder))
    except VectorIndexError as error:
        write(json.dumps({"error": str(error)}), sys.stderr)
        return 1
    shutil.rmtree(live.uri, ignore_errors=True)
    return _said(made)


def export(line: argparse.Namespace, settings: "Settings") -> int:
    """Make a dataset of what is indexed already; prints what was made as JSON.

    Raises:
        VectorIndexError: If it cannot be made.
    """
    folder = _place_of(line)
    live, below, source, revision = _KINDS[line.kind](line.what, settings)
    about = _about(line, source, revision)
    return _said(awaited(partial(_made, live, below, about, folder)))


def _said(made: Made) -> int:
    if made.left_out:
        write(f"{made.left_out} chunks have no vector and are left out", sys.stderr)
    write(json.dumps(making.facts_about(made), indent=2))
    return 0


def _about(line: argparse.Namespace, source: str, revision: str) -> About:
    name = (line.name or line.dataset_id)[: manifest.LONGEST_NAME]
    description = line.description or f"Dataset created from {source}"
    # Whoever gets the dataset need not know where on this machine the source lies.
    known = Path(source).name or source
    description = description[: manifest.LONGEST_DESCRIPTION]
    return About(line.dataset_id, name, description, known, revision, line.license)


def _place_of(line: argparse.Namespace) -> Path:
    """Where the dataset appears; looked at before hours of work.

    Raises:
        SettingsError: If something is there.
    """
    making.check_id(line.dataset_id)
    folder = resolved(line.output) / str(line.dataset_id)
    if folder.exists():
        raise SettingsError(f"Dataset '{line.dataset_id}' already exists")
    return folder


async def _made(live: "LiveIndex", below: str, about: About, folder: Path) -> Made:
    began = time.monotonic()
    async with live.running(Role.VISITOR):
        if not await live.is_kept_elsewhere():
            run = await live.trigger(force_reindex=False)
            with progress.shown() as bar:
                await progress.follow_text(bar, run)
                await progress.follow_vectors(bar, live)
            if live.progress.chunks:
                await live.embed()
        async with live.reading() as (found, _):
            made = await making.make(found, below, about, folder)
    return replace(made, took=time.monotonic() - began)


# -- what is indexed -------------------------------------------------------------------------


def _of_codebase(what: str, settings: "Settings") -> "tuple[LiveIndex, str, str, str]":
    from vector_index_mcp.codebase.project import resolve_project

    project = resolve_project(what, allow_broad=settings.allow_broad_path)
    codebase = loading.load_codebase(project, settings)
    return codebase.index, "", project.name, _revision_of(project)


def _of_documents(what: str, settings: "Settings") -> "tuple[LiveIndex, str, str, str]":
    from vector_index_mcp.documents import home
    from vector_index_mcp.documents.home import DEFAULT_NAME

    documents = loading.load_documents(home.home_of(DEFAULT_NAME, os.environ, Path.cwd()), settings)
    collection = documents.configuration.named(what)
    return documents.index, what, f"collection {what}", _revision_of(collection.path)


def _of_notes(what: str, settings: "Settings") -> "tuple[LiveIndex, str, str, str]":
    from vector_index_mcp.notes.home import home_of
    from vector_index_mcp.notes.store.disk import Disk
    from vector_index_mcp.notes.texts.projects import existing

    home = home_of("", os.environ, Path.cwd())
    project = existing(Disk(home), what)
    below = project.folder.partition("/")[2]
    return loading.index_of_notes(home, settings), below, f"notes on {what}", _revision_of(home)


_KINDS: "dict[str, Callable[[str, Settings], tuple[LiveIndex, str, str, str]]]" = {
    "codebase": _of_codebase,
    "documents": _of_documents,
    "notes": _of_notes,
}
"""By what is exported: its index, what the keys of its files begin with, its name and revision."""


def _folder_of(written: str) -> Path:
    folder = resolved(written)
    if not folder.is_dir():
        raise SettingsError(f"{written} is no folder; name one that holds texts")
    return folder


def _revision_of(folder: Path) -> str:
    """The commit that a folder is at; empty if it is in no repository, or there is no git."""
    command = ["git", "-C", str(folder), "rev-parse", "HEAD"]
    try:
        said = subprocess.run(
            command,
            env=git.without_settings(),
            capture_output=True,
            timeout=_GIT_SECONDS,
            check=False,
        )
    except (OSError, subprocess.SubprocessError) as error:
        write(f"the revision of the source is not known: {sentence(error)}", sys.stderr)
        return ""
    return said.stdout.decode("ascii", "replace").strip() if not said.returncode else ""
