"""Finds how a drive that ignores case spells a path: `Handler.py` opens `handler.py` there, too."""

import os
from pathlib import Path

from vector_index_mcp.files import beneath


class Spelling:
    """How names below one folder are spelled on disk; make one for each look, as names change."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._ignores_case: bool | None = None  # None until a path with letters was looked at
        # Of each folder, the names in it, and the same by what the drive compares.
        self._listed: dict[str, tuple[frozenset[str], dict[str, str]]] = {}

    def on_disk(self, path: str, status: os.stat_result) -> str:
        """Return a path as the disk spells it; on most drives that is the path itself.

        Args:
            path: A path below the folder, under which something is there.
            status: The status of what is there.

        Raises:
            OSError: If a folder on the way cannot be listed.
        """
        if self._ignores_case is None and path.swapcase() != path:
            self._ignores_case = self._is_same(path, status)
        if not self._ignores_case:
            return path
        spelled = ""
        for name in path.split("/"):
            names, by_folded = self._names_in(spelled)
            found = name if name in names else by_folded.get(name.casefold(), name)
            spelled = f"{spelled}/{found}" if spelled else found
        return spelled

    def _is_same(self, path: str, status: os.stat_result) -> bool:
        """Return whether the path with the other case of all letters leads to the same."""
        try:
            other = beneath.status(self._root, path.swapcase())
        except OSError:
            return False
        return os.path.samestat(status, other)

    def _names_in(self, folder: str) -> tuple[frozenset[str], dict[str, str]]:
        if folder not in self._listed:
            with beneath.entries(self._root, folder) as entries:
                names = [entry.name for entry in entries]
            self._listed[folder] = frozenset(names), {name.casefold(): name for name in names}
        return self._listed[folder]
