"""Commits edits made by hand soon after they are saved, in the name of the person who edits.

An event only says where to look. Once a minute, all files are compared, which finds edits that no
event has reported. The service's own writes cause events too, but they are committed by then, so
nothing happens.
"""

import logging
from collections.abc import Iterable

import anyio
import anyio.to_thread

from vector_index_mcp.errors import ProjectError
from vector_index_mcp.files.folder import Folder, Folders
from vector_index_mcp.files.watch import Watch
from vector_index_mcp.indexing.writing.queue import DirtyQueue
from vector_index_mcp.notes.refusal import as_refusal
from vector_index_mcp.notes.store.disk import GIT
from vector_index_mcp.notes.store.writer import Writer, awaited

_log = logging.getLogger(__name__)

# Debounce: editors save often, and a commit for each save would clutter the history.
_QUIET_SECONDS, _LONGEST_SECONDS = 2.0, 15.0
_LOOK_SECONDS = 60.0  # between two comparisons of all files


class Watching:
    """Watches one store, for as long as `run` runs."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer

    async def run(self) -> None:
        """Watch the store, whose folder exists, until cancelled."""
        queue = DirtyQueue(_QUIET_SECONDS, _LONGEST_SECONDS)
        folders = Folders([Folder(self._writer.disk.root)])
        watch = Watch(folders, _is_gits, queue.touch_from_thread, lambda _: None)
        try:
            await anyio.to_thread.run_sync(self._start, watch)
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._look_forever, watch)
                while True:
                    await queue.wait()
                    if touched := queue.take_touched():
                        await anyio.to_thread.run_sync(watch.settle)
                        await self._commit(touched)
        finally:
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(watch.stop)

    def _start(self, watch: Watch) -> None:
        try:
            watch.start()
        except ProjectError as error:
            _log.warning("%s", error)

    async def _look_forever(self, watch: Watch) -> None:
        while True:
            await anyio.sleep(_LOOK_SECONDS)
            await anyio.to_thread.run_sync(lambda: watch.settle(everywhere=True))
            await self._commit(None)

    async def _commit(self, places: Iterable[str] | None) -> None:
        def commit() -> None:
            writer = self._writer
            paths = None if places is None else writer.by_hand.kept(writer.tree, places)
            writer.take_over_by_hand(paths)

        try:
            await awaited(self._writer.alone(commit))
        except Exception as error:  # noqa: BLE001 - the next comparison of all files tries again
            refusal = as_refusal(error, "committing edits made by hand")
            _log.info("edits made by hand are not committed yet: %s", refusal)


def _is_gits(_: Folder, path: str) -> bool:
    return path == GIT or path.startswith(f"{GIT}/")
