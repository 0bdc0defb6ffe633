"""Turns collections into folders of the index, and recognises renamed collections."""

import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from vector_index_mcp.documents.configuration import Collection
from vector_index_mcp.files.folder import Folder, Reading, Selection

if TYPE_CHECKING:  # it imports more than the doctor needs
    from vector_index_mcp.indexing.looking.looks import Looks

_LARGEST_DOCUMENT_BYTES = 10_000_000  # large enough for a book


def folder_of(collection: Collection) -> Folder:
    """Return a collection as a folder of the index."""
    pattern = collection.pattern
    # A glob without a slash matches files in the collection's own folder, not in its subfolders.
    mask = pattern if "/" in pattern else f"/{pattern}"
    return Folder(
        path=_resolved(collection.path),
        name=collection.name,
        selection=Selection(patterns=collection.ignore, mask=mask),
        reading=Reading(_LARGEST_DOCUMENT_BYTES, skips_minified=False, converts=True),
    )


def _resolved(path: Path) -> Path:
    try:
        return path.resolve()
    except (OSError, RuntimeError):  # the links form a circle
        return path


async def linked_now(
    known: Mapping[str, Folder], collections: Iterable[Collection], looks: "Looks"
) -> dict[str, Folder]:
    """Return folders by name, with what links lead to now: a collection's path may be one.

    Args:
        known: The folders so far, by name.
        collections: The collections.
        looks: Looks at folders whose drives may hang or fail; these stay as they are.
    """
    now = dict(known)
    for each in collections:
        folder = known.get(each.name)
        if folder is None or folder.path == each.path:
            continue
        with suppress(OSError):
            linked = await looks.at(folder.path, partial(folder_of, each))
            # While a link is being replaced, it leads nowhere. `Path.is_dir` raises if the place
            # cannot be looked at.
            if await looks.at(folder.path, partial(os.path.isdir, linked.path)):
                now[each.name] = linked
    return now


def renamed(known: dict[str, Folder], wanted: dict[str, Folder]) -> dict[str, str]:
    """Return the collections that have only been renamed: the new names by the old ones."""
    left = {n: f for n, f in known.items() if n not in wanted}
    found: dict[str, str] = {}
    for new, folder in wanted.items():
        same = (n for n, f in left.items() if _without_name(f) == _without_name(folder))
        if new not in known and (name := next(same, None)) is not None:
            found[name] = new
            del left[name]
    return found


def dropped(known: dict[str, Folder], wanted: dict[str, Folder]) -> set[str]:
    """Return the names of those that are neither wanted as they are, nor only renamed."""
    others = {name for name, folder in known.items() if wanted.get(name) != folder}
    return others - renamed(known, wanted).keys()


def _without_name(folder: Folder) -> tuple[object, ...]:
    return folder.path, folder.selection, folder.reading
