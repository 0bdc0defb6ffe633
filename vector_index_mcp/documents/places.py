"""Paths as people write them, and the keys of what lies there. Pure."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Places:
    """Where the collections lie, and where somebody is who writes a path."""

    folders: Mapping[str, Path] = field(default_factory=dict)
    """The folder of each collection, by its name; absolute."""
    here: Path | None = None
    """Where relative paths start; None if nobody knows, as of a client of a server."""

    def key_at(self, written: str) -> str:
        """The key of what lies at a path, which is a collection's name alone for its folder.

        Of collections in each other, the innermost counts. Links are not followed.

        Args:
            written: Absolute, relative, or with `~`.

        Returns:
            Empty if it is in no collection, or no path at all.
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
            except (RuntimeError, ValueError):  # nobody has that name, or can have it
                return None
        if self.here is not None:
            path = self.here / path
        return Path(os.path.normpath(path)) if path.is_absolute() else None
