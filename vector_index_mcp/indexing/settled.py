"""Finds the touched paths that are up to date already, so that they do not count as changes.

An event may arrive after a walk has already indexed its file.
"""

from collections.abc import Iterable
from contextlib import suppress
from functools import partial

from vector_index_mcp.files import read
from vector_index_mcp.files.scan import UNKNOWN
from vector_index_mcp.indexing.ledger import Ledger
from vector_index_mcp.indexing.looking.looks import Looks
from vector_index_mcp.indexing.looking.outlook import View
from vector_index_mcp.indexing.writing.indexer import Indexer

_MOST_LOOKED_AT = 20  # waiting paths that are compared with the disk, which takes 0.3 ms


async def note_settled(indexer: Indexer, looks: Looks) -> None:
    """Compare the touched paths with the disk, if they are few, and note which are up to date.

    If the disk does not answer, none is.
    """
    queue, settled = indexer.queue, list[str]()
    touched, touch_count = queue.touched, queue.touch_count
    if len(touched) <= _MOST_LOOKED_AT:
        for view in indexer.outlook.views:
            keys = [key for key in touched if indexer.outlook.view_of(key) is view]
            if keys:
                find = partial(_settled, view, indexer.live.ledger, keys)
                with suppress(TimeoutError):
                    settled += await looks.at(view.folder.path, find)
    queue.note_settled(settled, touch_count)


def _settled(view: View, ledger: Ledger, keys: Iterable[str]) -> list[str]:
    return [key for key in keys if _is_settled(view, ledger, key)]


def _is_settled(view: View, ledger: Ledger, key: str) -> bool:
    record = ledger.get(key)
    if record is not None:
        return record.stamp == read.stamp_now(view.folder, key) != UNKNOWN
    path = view.folder.path_of(key)
    return path != "" and view.ignore.is_ignored(path, is_folder=False)
