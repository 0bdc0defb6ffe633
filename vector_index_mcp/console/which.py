"""Finds the project that a command is about."""

import argparse
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from vector_index_mcp.codebase.project import enclosing, indexed_above, resolve_project
from vector_index_mcp.console.terminal import write
from vector_index_mcp.foreign import visible

if TYPE_CHECKING:  # imports pydantic
    from vector_index_mcp.settings import Settings


def project(parsed: argparse.Namespace, configured: "Settings") -> Path:
    """Return the folder of the project that a command is about; correct the paths in `parsed`.

    Without a typed path, this is the project that contains the working directory. A typed folder
    inside a project that has an index means that project, since a second index would hold the same
    files again. Standard error then names the project, and a search is limited to the typed folder.

    Afterwards, `parsed.path` is as it was typed, or a relative path to the project.

    Raises:
        ProjectError: If the path is not a folder, or too broad to be indexed as a whole.
    """
    typed, uri = parsed.path, configured.lancedb_uri
    folder = resolve_project(typed or ".", allow_broad=typed is None or configured.allow_broad_path)
    found = indexed_above(folder, uri) if typed else enclosing(folder, uri)
    meant = resolve_project(str(found or folder), allow_broad=configured.allow_broad_path)
    if typed is None:
        parsed.path = os.path.relpath(meant, folder)
    elif meant != folder:
        parsed.path = os.path.relpath(meant)
        limit = ""
        if getattr(parsed, "glob", None) == "":
            parsed.glob = folder.relative_to(meant).as_posix()
            limit = f"; only {visible(parsed.glob)}/ is searched"
        used = f"{visible(typed)} lies in {visible(str(meant))}, whose index is used{limit}"
        write(used, sys.stderr)
    if getattr(parsed, "similar_to", ""):
        parsed.similar_to = _counted_from(meant, parsed.similar_to)
    return meant


def _counted_from(project: Path, place: str) -> str:
    """Return `path:line` with the path made relative to the project.

    People type paths relative to the working directory: printed results and the shell's completion
    are relative to it.
    """
    path, colon, line = place.strip().partition(":")
    with suppress(OSError, ValueError):  # it is not a valid path
        file = Path(os.path.realpath(path))
        if not Path(path).is_absolute() and file.is_file() and file.is_relative_to(project):
            return f"{file.relative_to(project).as_posix()}{colon}{line}"
    return place
