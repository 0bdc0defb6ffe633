"""Scans the folder of all datasets: which manifests it has, and in which state their files are."""

import contextlib
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from vector_index_mcp.datasets import finding, manifest
from vector_index_mcp.datasets.finding import Stamp
from vector_index_mcp.datasets.manifest import Manifest
from vector_index_mcp.datasets.refusal import BadDatasetError


@dataclass(frozen=True, slots=True)
class Found:
    """A manifest that a scan has found, with the state of its dataset on disk."""

    path: Path
    stamp: Stamp
    """The stamp of the manifest and of the files that it names; empty if it is no manifest."""


class Scanner:
    """Scans one folder again and again. `seen`, `stamp_of` and `read` are called in threads."""

    def __init__(self, root: Path, project: Path) -> None:
        """Set up the scanner; nothing is read yet.

        Args:
            root: The folder of all datasets.
            project: The folder that relative paths in manifests are relative to.
        """
        self._root, self.project = root, project
        self._described: dict[Path, tuple[Stamp, Manifest | None]] = {}
        """The parsed manifests by path, each with what was looked at before; None for a bad one."""
        self.has_folder = True
        """Whether the last scan found the folder of all datasets."""
        self.is_whole = False
        """Whether the last scan saw all there is: the folder, and what each manifest names."""

    def seen(self) -> list[Found]:
        """Return all manifests, each with the stamp of its files.

        If the scan could not look at everything, the last one is none, and has no stamp.
        """
        self.has_folder = os.path.isdir(self._root)  # `Path.is_dir` may raise
        walk = finding.find(self._root)
        found = [Found(path, self.stamp_of(path)) for path in walk.paths]
        self._described = {each.path: self._described[each.path] for each in found}
        are_there = [_is_there(self._described[each.path][1], each.stamp) for each in found]
        self.is_whole = self.has_folder and walk.is_whole and all(are_there)
        if not walk.is_whole:
            found.append(Found(self._root / "…" / manifest.NAME, ()))
        return found

    def stamp_of(self, path: Path) -> Stamp:
        """Return the stamp of a manifest and of the files that it names."""
        own = finding.stamp_of([path])
        before, described = self._described.get(path, ((), None))
        # A manifest is parsed twice: only then is it known that no place changed meanwhile.
        looked = own + finding.leads_of(described.places if described is not None else ())
        if described is None or before != looked:
            described = None
            with contextlib.suppress(BadDatasetError):  # whoever loads the dataset reports it
                described = self.read(path)
            self._described[path] = looked, described
        if described is None:
            return own
        return own + finding.stamp_of([described.index, described.metadata])

    def read(self, path: Path) -> Manifest:
        """Read a manifest; see `manifest.read`.

        Raises:
            BadDatasetError: If it is not valid.
        """
        return manifest.read(path, self._root, self.project)

    def ids_of(self, paths: Iterable[Path]) -> set[str]:
        """Return the ids of the datasets that some of the manifests describe."""
        known = self._described  # a scan, in its thread, may put another one in its place
        found = (known.get(path, ((), None))[1] for path in paths)
        return {each.id for each in found if each is not None}


def _is_there(described: Manifest | None, stamp: Stamp) -> bool:
    """Whether a manifest could be read, and what it names was there: its drive may be away."""
    if described is None:
        return False
    missing = {path for path, size, *_ in stamp if size < 0}
    return missing.isdisjoint(map(str, (described.index, described.metadata)))
