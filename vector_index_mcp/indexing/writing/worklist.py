"""The list of files that scans found to be read or forgotten, and that nobody has taken yet."""

from collections.abc import Collection
from dataclasses import dataclass, field
from itertools import islice

from vector_index_mcp.files.scan import Changes


@dataclass(slots=True)
class Worklist:
    """Files to read and files to forget, each once, in the order in which they were found."""

    _dirty: dict[str, None] = field(default_factory=dict)
    _gone: dict[str, None] = field(default_factory=dict)

    def add(self, changes: Changes) -> None:
        """Add files to read and files to forget."""
        self._dirty.update(dict.fromkeys(changes.dirty))
        self._gone.update(dict.fromkeys(changes.gone))

    def take(self, limit: int) -> Changes:
        """Take at most `limit` files to read, and all files to forget."""
        dirty = list(islice(self._dirty, limit))
        for key in dirty:
            del self._dirty[key]
        gone, self._gone = list(self._gone), {}
        return Changes(dirty, gone)

    def settle(self, changes: Changes) -> None:
        """Drop the files in `changes`: they were looked at again since the scan."""
        for key in (*changes.dirty, *changes.gone):
            self._dirty.pop(key, None)
            self._gone.pop(key, None)

    def drop(self, names: Collection[str]) -> None:
        """Drop the files in the folders with these names."""
        for found in (self._dirty, self._gone):
            for key in [key for key in found if key.partition("/")[0] in names]:
                del found[key]

    def clear(self) -> None:
        """Drop everything."""
        self._dirty.clear()
        self._gone.clear()

    @property
    def dirty(self) -> Collection[str]:
        """The files to read."""
        return self._dirty.keys()

    def __len__(self) -> int:
        return len(self._dirty) + len(self._gone)
