"""Finds the project that a command is about."""

import argparse
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from vector_index_mcp.codebase.project import (
    enclosing,
    indexed_above,
    lies_elsewhere,
    repository_around,
    resolve_project,
)
from vector_index_mcp.console.terminal import write
from vector_index_mcp.foreign import visible

if TYPE_CHECKING:  # imports pydantic
    from vector_index_mcp.settings import Settings

_NO_PROJECT = (
    "{} has no repository, no project file such as package.json and no index yet; all files in it "
    "are indexed. If you mean another folder, name it: vector-index-mcp search PATH QUERY"
)


def project(parsed: argparse.Namespace, configured: "Settings") -> Path:
    """Return the folder of the project that a command is about; correct the paths in `parsed`.

    Without a typed path, this is the project that contains the working directory. A typed folder
    inside a project that has an index means that project, since a second index would hold the same
    files again. Standard error then names the project, and a search is limited to the typed folder.
    It also names the project if that lies around the repository that one stands in, and warns if a
    search is about to index a folder that nobody has named and that does not look like a project.

    Afterwards, `parsed.path` is as it was typed, or a relative path to the project.

    Raises:
        ProjectError: If the path is not a folder, or too broad to be indexed as a whole.
    """
    typed, uri = parsed.path, configured.lancedb_uri
    folder = resolve_project(typed or ".", allow_broad=typed is None or configured.allow_broad_path)
    from vector_index_mcp.serving.folders import state_folder  # imports pydantic

    find = indexed_above if typed else enclosing
    found = find(folder, uri, state_folder())
    meant = resolve_project(str(found or folder), allow_broad=configured.allow_broad_path)
    if typed is None:
        parsed.path = os.path.relpath(meant, folder)
        own = repository_around(folder)
        if own is not None and meant in own.parents:
            write(_used(str(own), meant), sys.stderr)
        # Of an index that lies elsewhere, a look at the folder does not tell whether there is one.
        if found is None and parsed.command == "search" and not lies_elsewhere(uri):
            write(_NO_PROJECT.format(visible(str(folder))), sys.stderr)
    elif meant != folder:
        parsed.path = os.path.relpath(meant)
        limit = ""
        if getattr(parsed, "glob", None) == "":  # only a search has one
            parsed.glob = folder.relative_to(meant).as_posix()
            limit = f"; only {visible(parsed.glob)}/ is searched"
        write(f"{_used(typed, meant)}{limit}", sys.stderr)
    if getattr(parsed, "similar_to", ""):
        path, colon, line = parsed.similar_to.strip().partition(":")
        parsed.similar_to = f"{_counted_from(meant, path)}{colon}{line}"
    if getattr(parsed, "glob", ""):
        parsed.glob = _glob_from(meant, parsed.glob)
    return meant


def _used(folder: str, project: Path) -> str:
    return f"{visible(folder)} lies in {visible(str(project))}, whose index is used"


def _glob_from(project: Path, glob: str) -> str:
    """Return a glob whose beginning, up to the first wildcard, is relative to the project."""
    from vector_index_mcp.files.glob import first_wild  # and pathspec, which few commands need

    parts = glob.split("/")
    wild = first_wild(parts)
    beginning = "/".join(parts[:wild])
    # What lies in the project by this path is relative to it already.
    is_in_project = not {".", ".."} & set(parts[:wild]) and os.path.lexists(project / beginning)
    counted = _counted_from(project, beginning)
    if is_in_project or counted == beginning:
        return glob
    return "/".join(filter(None, ("" if counted == "." else counted, *parts[wild:])))


def _counted_from(project: Path, path: str) -> str:
    """Return a path made relative to the project, if it exists in there.

    People type paths relative to the working directory: printed results and the shell's completion
    are relative to it.
    """
    with suppress(OSError, ValueError):  # it is not a valid path
        place = Path(os.path.realpath(path))
        if path and not Path(path).is_absolute() and place.exists():
            return place.relative_to(project).as_posix()
    return path
