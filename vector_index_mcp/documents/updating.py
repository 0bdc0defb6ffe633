"""What an update has found in each collection, and the git repositories pulled before it."""

import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio.to_thread

from vector_index_mcp.documents.catalog import entry_at, keys_of
from vector_index_mcp.documents.configuration import Collection
from vector_index_mcp.indexing.ledger import Ledger

Change = Callable[..., Any]
"""A function of `editing`."""

_PULL_SECONDS = 300.0
_LONGEST_ANSWER_CHARS = 2_000


@dataclass(frozen=True, slots=True)
class Update:
    """What became of one collection."""

    collection: Collection
    new: int
    updated: int
    unchanged: int
    removed: int
    pulled: str
    """What git said; empty if it was not asked."""


def seen(ledger: Ledger, name: str = "") -> dict[str, str]:
    """The documents of all collections, or of one, as the index holds them now: hashes by key."""
    found = ((key, entry_at(ledger, key)) for key in keys_of(ledger, name))
    return {key: entry.record.content_hash for key, entry in found if entry is not None}


def update_of(
    collection: Collection, before: Mapping[str, str], ledger: Ledger, pulled: str
) -> Update:
    """What has changed in a collection since all were `seen`."""
    now = seen(ledger, collection.name)
    top = f"{collection.name}/"
    before = {key: content for key, content in before.items() if key.startswith(top)}
    both = now.keys() & before.keys()
    updated = sum(now[key] != before[key] for key in both)
    return Update(
        collection,
        new=len(now.keys() - before.keys()),
        updated=updated,
        unchanged=len(both) - updated,
        removed=len(before.keys() - now.keys()),
        pulled=pulled,
    )


async def pull(folder: Path) -> str:
    """Bring the repository at `folder` up to date; what git says, nothing if it is no repository.

    Only fast-forwards: nothing of the user's is merged or moved, and no hook of theirs is run.
    """
    return await anyio.to_thread.run_sync(_pull, folder)


def _pull(folder: Path) -> str:
    if not any((parent / ".git").exists() for parent in (folder, *folder.parents)):
        return ""
    command = ["git", "-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false"]
    try:
        done = subprocess.run(
            [*command, "-C", str(folder), "pull", "--ff-only"],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_PULL_SECONDS,
            check=False,
            stdin=subprocess.DEVNULL,
        )
    except FileNotFoundError:
        return "git is not installed; install it, or update without --pull"
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"git pull did not end well ({error})"
    return (done.stdout + done.stderr).strip()[:_LONGEST_ANSWER_CHARS]
