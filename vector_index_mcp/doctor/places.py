"""Checks of the folders that the program reads and writes."""

import os
import stat
from pathlib import Path

from vector_index_mcp.background.endpoint import endpoint_of
from vector_index_mcp.doctor.finding import Case, Finding, failed, failed_by, ok, warning
from vector_index_mcp.doctor.machine import existing
from vector_index_mcp.errors import ProjectError
from vector_index_mcp.files.ignore import rule_files
from vector_index_mcp.files.secrets import masked
from vector_index_mcp.serving.sets import CODEBASE
from vector_index_mcp.settings import PREFIX, Settings


def git_rules(case: Case) -> Finding:
    """Whether the ignore files that apply to the whole project can be read."""
    files = rule_files(case.project)
    unread = [str(path) for path, is_read in files.items() if not is_read]
    if unread:
        return warning(
            f"not read: {', '.join(unread)}",
            "make each a plain file of at most 1 MB that you may read; what it excludes is indexed",
        )
    names = ", ".join(map(str, files))
    return ok(f"read: {names}" if names else "no ignore files: only the built-in list applies")


def index_folder(case: Case) -> Finding:
    """Whether the index can be written."""
    if case.index_folder is None:
        return ok(f"{masked(case.uri)[0]} is not on this machine")
    return _writable(case.index_folder, "lancedb_uri")


def cache_folder(case: Case) -> Finding:
    """Whether the embedding cache can be written."""
    return _writable(case.cache_folder, "embedding_cache_dir")


def _writable(folder: Path, field: str) -> Finding:
    remedy = f"set {PREFIX}{field.upper()} to a folder of your own"
    place = existing(folder)
    if not os.path.isdir(place):
        return failed(f"{place} is not a folder", remedy)
    if not os.access(place, os.W_OK | os.X_OK):
        return failed(f"{place} cannot be written", f"give yourself permission, or {remedy}")
    if os.name == "posix" and place.stat().st_mode & (stat.S_IWOTH | stat.S_ISVTX) == stat.S_IWOTH:
        return warning(f"{place} can be written by every user", f"chmod o-w {place}")
    return ok(f"{folder}" if place == folder else f"{folder} will be made when it is needed")


def runtime_folder(case: Case) -> Finding:
    """Whether there is a folder for the sockets of services that only the user can enter."""
    try:
        endpoint = endpoint_of(CODEBASE, case.project)
    except ProjectError as error:
        return failed_by(error)
    return ok(f"{endpoint.folder}; only you can read it")


def settings(case: Case) -> Finding:
    """The settings, and where each comes from. This check never fails."""
    lines = []
    for field in Settings.model_fields:
        value = getattr(case.settings, field)
        shown = ",".join(value) if isinstance(value, tuple) else str(value)
        line, _ = masked(f"{PREFIX}{field.upper()}={shown}")  # people paste this into reports
        lines.append(f"{line} ({case.origins.get(field, 'default')})")
    count = len(case.origins)
    return ok(f"{count or 'none'} of {len(lines)} set, the rest are defaults", *lines)
