"""Counts what an update has changed in each collection, and runs `git pull` before it."""

import contextlib
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import anyio
import anyio.abc
import anyio.to_thread

from vector_index_mcp.documents.catalog import entry_at, keys_of
from vector_index_mcp.documents.configuration import Collection
from vector_index_mcp.files import repository
from vector_index_mcp.indexing.ledger import Ledger
from vector_index_mcp.processes import children, git

_PULL = ("git", "-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-C")
_ONLY_FORWARD = ("pull", "--ff-only", "--no-rebase", "--no-autostash")
_PULL_SECONDS = 300.0
_LONGEST_ANSWER_CHARS = 2_000
_LONGEST_ANSWER_BYTES = 4 * _LONGEST_ANSWER_CHARS


@dataclass(frozen=True, slots=True)
class Update:
    """What an update has changed in one collection, in numbers of documents."""

    collection: Collection
    new: int
    updated: int
    unchanged: int
    removed: int
    pulled: str
    """The output of `git pull`; empty if it did not run."""


def seen(ledger: Ledger, name: str = "") -> dict[str, str]:
    """Return the content hashes of all documents, or of one collection, in the index, by key."""
    found = ((key, entry_at(ledger, key)) for key in keys_of(ledger, name))
    return {key: entry.record.content_hash for key, entry in found if entry is not None}


def update_of(
    collection: Collection, before: Mapping[str, str], ledger: Ledger, pulled: str
) -> Update:
    """Return what has changed in a collection since `seen` returned `before`."""
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
    """Run `git pull` in `folder`; return its output, or nothing if there is no repository.

    It only fast-forwards: it merges, moves and stashes nothing of the user's, runs no hooks, and
    asks nobody for a password.
    """
    if await anyio.to_thread.run_sync(repository.top_of, folder) is None:
        return ""
    try:
        with anyio.fail_after(_PULL_SECONDS):
            output = await _output_of([*_PULL, str(folder), *_ONLY_FORWARD])
    except FileNotFoundError:
        return "git is not installed; install it, or update without --pull"
    except TimeoutError:
        return f"git pull was stopped after {_PULL_SECONDS:.0f} s"
    except OSError as error:
        return f"git pull failed ({error})"
    return output.decode("utf-8", "replace").strip()[:_LONGEST_ANSWER_CHARS]


async def _output_of(command: Sequence[str]) -> bytes:
    """Run git and return the start of its output; if cancelled, end all that it has started.

    Raises:
        OSError: If the system starts no process.
    """
    # It leads a session of its own: without a terminal, git cannot ask for a password.
    process = await children.started(
        command, git.environment(), stdin=subprocess.DEVNULL, stderr=subprocess.STDOUT
    )
    async with process:
        assert process.stdout is not None
        try:
            said = b""
            async for piece in process.stdout:  # a remote may send any amount
                said = (said + piece)[:_LONGEST_ANSWER_BYTES]
            await process.wait()
        except BaseException:
            _end_group_of(process)
            raise
    return said


def _end_group_of(process: anyio.abc.Process) -> None:
    if os.name != "posix":
        return  # closing it ends it, alone
    # macOS forbids it if nothing of the group runs any more.
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
