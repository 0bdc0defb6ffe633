"""Finds the keys of documents from paths on disk, as people write them. Pure."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Places:
    """The folders of the collections, and the folder that relative paths start from."""

    folders: Mapping[str, Path] = field(default_factory=dict)
    """The folder of each collection, by its name; absolute."""
    here: Path | None = None
    """The folder that relative paths start from; None if it is unknown, as for a remote client."""

    def key_at(self, written: str) -> str:
        """Return the key of a path; for the folder of a collection, the collection's name.

        If collections lie in each other, the innermost counts. Links are not followed.

        Args:
            written: An absolute path, a relative one, or one with `~`.

        Returns:
            The key; empty if the path is in no collection, or is not valid.
        """
        path = self._path(written)
        if path is None:
            return ""
        inside = [
            (len(folder.parts), name)
            for name, folder in self.folders.items()
            if path == folder or folder in path.parents
        ]
        if not inside:
            return ""
        _, name = max(inside, key=lambda found: found[0])
        below = path.relative_to(self.folders[name]).as_posix()
        return name if below == "." else f"{name}/{below}"

    def _path(self, written: str) -> Path | None:
        path = Path(written)
        if written.startswith("~"):
            try:
                path = path.expanduser()
            except (RuntimeError, ValueError):  # there is no such user
                return None
        if self.here is not None:
            path = self.here / path
        return Path(os.path.normpath(path)) if path.is_absolute() else None
