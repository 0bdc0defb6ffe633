"""Checks the folders that the program reads and writes, and the settings."""

import os
import stat
import tempfile
from dataclasses import replace
from pathlib import Path

from vector_index_mcp.doctor.finding import Case, Finding, Verdict, failed, failed_by, ok, warning
from vector_index_mcp.doctor.machine import existing
from vector_index_mcp.errors import ProjectError, quoted, split_remedy
from vector_index_mcp.files.folder import absence_of
from vector_index_mcp.files.ignore import rule_files
from vector_index_mcp.files.repository import told, top_of
from vector_index_mcp.files.secrets import masked
from vector_index_mcp.files.users import is_of_another_user
from vector_index_mcp.settings import PREFIX, SECRETS, Settings

_HIDDEN = "***"
_OURS = (".", "index.")  # how our files in an index's folder begin, besides its tables


def git_rules(case: Case) -> Finding:
    """Check whether the ignore files that apply to the whole project can be read."""
    files: dict[Path, bool] = {}
    for folder in case.subject.folders():
        files |= rule_files(folder.path)
        if fault := told(top_of(folder.path) or folder.path).fault:
            return warning(
                f"git does not tell its settings: {fault}",
                "correct them; until then, files that your core.excludesFile excludes may be "
                "indexed",
            )
    unread = [str(path) for path, is_read in files.items() if not is_read]
    if unread:
        return warning(
            f"not read: {', '.join(unread)}",
            "make each a plain file of at most 1 MB that you may read; until then, files that it "
            "excludes are indexed",
        )
    names = ", ".join(map(str, files))
    return ok(f"read: {names}" if names else "no ignore files: only the built-in list applies")


def collections(case: Case) -> Finding:
    """Check whether every folder of documents exists."""
    folders = case.subject.folders()
    absent = [f"{f.name}: {problem}" for f in folders if (problem := absence_of(f)) is not None]
    if absent:
        return warning(
            "; ".join(absent),
            "plug in the disk, correct the path in the configuration, or remove the collection; "
            "until then, its indexed documents are kept",
        )
    if not folders:
        return warning(
            "there are no collections",
            "vector-index-mcp documents collection add FOLDER --name NAME",
        )
    return ok(f"{len(folders)}, all there", *(f"{f.name}: {f.path}" for f in folders))


def index_folder(case: Case) -> Finding:
    """Check whether the index can be written."""
    if case.index_folder is None:
        return ok(f"{masked(case.subject.place.uri)[0]} is not on this machine")
    if _is_left_alone(case.index_folder, case.subject.place.home):
        return ok(f"{case.index_folder} belongs to another user; yours is in the state folder")
    finding = _writable(case.index_folder, case.subject.remedies.place)
    name = _other_file_in(case.index_folder, case.subject.place.home)
    if not name or finding.verdict is not Verdict.OK:
        return finding
    return warning(
        f"{case.index_folder} holds {quoted(name)}, too; nothing that lies there is indexed",
        f"give the index a folder of its own by {case.subject.remedies.place}",
    )


def _other_file_in(folder: Path, home: Path | None) -> str:
    """What the folder of an index in a project has besides the index; empty for nothing.

    Names that begin with a dot are not shown by most programs, and may be those of our files.
    """
    if home is None or home not in folder.parents or not os.path.isdir(folder):
        return ""
    names = sorted(entry.name for entry in folder.iterdir())
    return next((n for n in names if not (n.startswith(_OURS) or n.endswith(".lance"))), "")


def _is_left_alone(folder: Path, home: Path | None) -> bool:
    """Whether a folder in a project has the index of another user, so that it gets none of ours."""
    is_inside = home is not None and folder.is_relative_to(home)
    if not is_inside or not os.path.lexists(folder) or os.access(folder, os.W_OK | os.X_OK):
        return False
    has_something = not os.access(folder, os.R_OK) or any(folder.iterdir())
    return is_of_another_user(folder) and has_something


def cache_folder(case: Case) -> Finding:
    """Check whether the embedding cache can be written."""
    return _writable(case.cache_folder, f"{PREFIX}EMBEDDING_CACHE_DIR")


def state_folder(case: Case) -> Finding:
    """Check whether the locks and records of indexes can be written."""
    return _writable(case.state_folder, "XDG_STATE_HOME")


def temporary_files(_: Case) -> Finding:
    """Check whether there is a folder for temporary files."""
    named = os.environ.get("TMPDIR", "")
    remedy = "set TMPDIR to a folder that exists and that you can write"
    try:
        used = Path(tempfile.gettempdir())
    except FileNotFoundError:
        return failed("no folder for temporary files can be written", remedy)
    if named and Path(named).resolve() != used.resolve():
        return warning(f"TMPDIR is {named}, which cannot be written; {used} is used", remedy)
    return ok(str(used))


def _writable(folder: Path, setting: str) -> Finding:
    remedy = f"set {setting} to a folder of your own"
    place = existing(folder)
    if not os.path.isdir(place):
        return failed(f"{place} is not a folder", remedy)
    if not os.access(place, os.W_OK | os.X_OK):
        return failed(f"{place} cannot be written", f"give yourself permission, or {remedy}")
    if os.name == "posix" and place.stat().st_mode & (stat.S_IWOTH | stat.S_ISVTX) == stat.S_IWOTH:
        return warning(f"{place} can be written by every user", f"chmod o-w {place}")
    return ok(f"{folder}" if place == folder else f"{folder} will be made when it is needed")


def runtime_folder(case: Case) -> Finding:
    """Check whether there is a private folder for the sockets of services, with room for them."""
    try:
        endpoint = case.subject.endpoint()
    except ProjectError as error:
        return failed_by(error, case.subject.remedies)
    if lack := endpoint.lack_of_space:
        return failed(*split_remedy(lack))
    return ok(f"{endpoint.folder}; only you can read it")


def settings(case: Case) -> Finding:
    """List the given settings with their sources, and warn of variables that are no settings."""
    lines = []
    for field in (field for field in Settings.model_fields if field in case.origins):
        value = getattr(case.settings, field)
        shown = ",".join(value) if isinstance(value, tuple) else str(value)
        if field in SECRETS and value:
            shown = _HIDDEN
        line, _ = masked(f"{PREFIX}{field.upper()}={shown}")  # people paste this into reports
        lines.append(f"{line} ({case.origins[field]})")
    words = f"{len(lines)} set; all others are default" if lines else "all are default"
    if case.mistyped:
        words = "; ".join((words, *case.mistyped))
        return replace(warning(words, "correct the name, or unset it"), details=tuple(lines))
    return ok(words, *lines)
