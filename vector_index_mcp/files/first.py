"""Keeps the first of many entries of a folder."""

import os
from collections.abc import Sequence


class First:
    """Keeps the first `most` entries by name, in bounded memory."""

    _SLACK = 1_000

    def __init__(self, most: int) -> None:
        self.left_out = 0
        self._most = most
        self._entries: list[os.DirEntry[str]] = []

    def add(self, entry: os.DirEntry[str]) -> None:
        """Add an entry; in any order."""
        self._entries.append(entry)
        if len(self._entries) > 2 * self._most + self._SLACK:
            self.sorted()

    def sorted(self) -> Sequence[os.DirEntry[str]]:
        """Return the first of the added entries."""
        self._entries.sort(key=lambda entry: entry.name)
        self.left_out += max(0, len(self._entries) - self._most)
        del self._entries[self._most :]
        return self._entries
