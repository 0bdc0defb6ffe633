"""Turns collections into folders of the index, and recognises renamed collections."""

from pathlib import Path

from vector_index_mcp.documents.configuration import Collection
from vector_index_mcp.files.folder import Folder, Reading, Selection

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


def _without_name(folder: Folder) -> tuple[object, ...]:
    return folder.path, folder.selection, folder.reading
