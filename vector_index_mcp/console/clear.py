"""The command `clear`: shows what there is to remove, asks, ends the services, and removes it."""

import sys
from collections.abc import Sequence
from pathlib import Path

from vector_index_mcp.background import contact
from vector_index_mcp.background.endpoint import Endpoint
from vector_index_mcp.console import belongings
from vector_index_mcp.console.belongings import Belongings
from vector_index_mcp.console.terminal import confirmed, write
from vector_index_mcp.errors import BackgroundError, counted
from vector_index_mcp.files.removal import Left
from vector_index_mcp.foreign import visible
from vector_index_mcp.settings import Settings
from vector_index_mcp.sharing.place import TOOL_SET

_KILOBYTE, _MEGABYTE = 1_000, 1_000_000
_KEPT = """\
Not touched: notes (~/.knowledge-mcp), the configuration of collections (~/.config/qmd), datasets,
the entries of MCP clients, which `vector-index-mcp uninstall` removes, and what libraries have
cached (models, grammars)."""


def of_project(project: Path, settings: Settings, *, is_agreed: bool, is_shown_only: bool) -> int:
    """Remove the index of a project; returns the exit status.

    Args:
        project: The project's folder.
        settings: They say where the index lies.
        is_agreed: Remove without asking.
        is_shown_only: Only show what would be removed.

    Raises:
        SettingsError: If standard input is not a terminal, so that nobody can be asked.
    """
    found = belongings.of_project(project, settings)
    _show(found, f"{project} has no index of this program")
    return _clear(found, is_agreed=is_agreed, is_shown_only=is_shown_only)


def of_user(settings: Settings, *, is_agreed: bool, is_shown_only: bool) -> int:
    """Remove all that this program has written for its user; otherwise like `of_project`."""
    found = belongings.of_user(settings)
    _show(found, "this program has left nothing")
    write(_KEPT)
    return _clear(found, is_agreed=is_agreed, is_shown_only=is_shown_only)


def _show(found: Belongings, nothing: str) -> None:
    for endpoint in found.services:
        write(f"ends    {visible(_service_of(endpoint))}")
    for thing in found.things:
        description = f"{visible(thing.description)}, {_bytes(thing.size)}"
        write(f"removes {visible(str(thing.path))} ({description})")
    for left in found.left:
        write(f"leaves  {visible(left.path)}: {visible(left.why)}")
    if not found.things:
        write(f"nothing to remove: {visible(nothing)}")


def _clear(found: Belongings, *, is_agreed: bool, is_shown_only: bool) -> int:
    if is_shown_only or not found.things:
        return 0
    if not is_agreed and not _is_confirmed(found):
        write("nothing was removed")
        return 1
    failed = [left for endpoint in found.services for left in _ended(endpoint)]
    removed = 0
    for thing in found.things:
        left = thing.remove()
        removed += 0 if left else thing.size
        failed += left
    found.tidy()
    for each in failed:
        write(
            f"vector-index-mcp: not removed: {visible(each.path)}: {visible(each.why)}", sys.stderr
        )
    write(f"removed {_bytes(removed)}" + (f"; {_some(failed)} left" if failed else ""))
    return 1 if failed else 0


def _bytes(size: int) -> str:
    if size >= _MEGABYTE:
        return f"{size / 1e6:,.1f} MB"
    return f"{size / 1e3:,.1f} KB" if size >= _KILOBYTE else f"{size} B"


def _some(failed: Sequence[Left]) -> str:
    return f"{counted(len(failed), 'thing')} {'is' if len(failed) == 1 else 'are'}"


def _is_confirmed(found: Belongings) -> bool:
    total = sum(thing.size for thing in found.things)
    unasked = "nothing was removed; give --yes to remove it without being asked"
    return confirmed(f"Remove this ({_bytes(total)})?", unasked)


def _ended(endpoint: Endpoint) -> list[Left]:
    """End a service; returns why it could not be ended, or nothing."""
    try:
        contact.stop(endpoint)
    except BackgroundError as error:
        return [Left(_name_of(endpoint), str(error))]
    return []


def _service_of(endpoint: Endpoint) -> str:
    if endpoint.tool_set == TOOL_SET:
        return "the embedding worker that all services share"
    return f"the background service of {_name_of(endpoint)}"


def _name_of(endpoint: Endpoint) -> str:
    return str(endpoint.read_record().get("project", endpoint.place))
