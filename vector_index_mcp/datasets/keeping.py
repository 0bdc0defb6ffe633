"""Finds the manifest of a dataset, and deletes datasets.

A manifest is foreign, and its folder may contain a person's own files. So only the dataset's parts
are deleted, and a folder only if it is empty then.
"""

import contextlib
import os
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from vector_index_mcp.datasets import finding, manifest, table
from vector_index_mcp.datasets.manifest import FACTS, Manifest
from vector_index_mcp.datasets.refusal import BadDatasetError
from vector_index_mcp.errors import SettingsError, UnknownError

_OF_A_TABLE = re.compile(r"(?:chunks|files)(?:_[0-9]+)?\.lance|manifest\.lance")
_TABLE = re.compile(r"index(?:-[0-9]+)?|\.index-[0-9]+\.[0-9]+\.part")
_BESIDE_A_TABLE = frozenset({FACTS, ".gitignore"})


def manifests(root: Path) -> Mapping[str, Mapping[str, Any]]:
    """Return all fields of the manifests below the folder of all datasets, also those for people.

    They are listed by id; the first of equal ids counts.
    """
    return {id_: found[0][1] for id_, found in _by_id(root).items()}


def _by_id(root: Path) -> Mapping[str, Sequence[tuple[Path, Mapping[str, Any]]]]:
    found: dict[str, list[tuple[Path, Mapping[str, Any]]]] = {}
    for path in finding.find(root).paths:
        with contextlib.suppress(BadDatasetError):
            fields = manifest.said_in(path)
            found.setdefault(fields["id"], []).append((path, fields))
    return found


def manifest_of(root: Path, id_: str) -> Path:
    """Return the manifest of the dataset with this id.

    Raises:
        SettingsError: If several folders have a dataset with it: one is served, perhaps another one
            than is meant.
        UnknownError: If there is no such dataset.
    """
    paths = [path for path, _ in _by_id(root).get(id_, [])]
    if not paths:
        raise UnknownError(f"Dataset '{id_}' does not exist")
    if len(paths) > 1:
        folders = " and ".join(str(path.parent) for path in paths)
        raise SettingsError(
            f"several folders have a dataset '{id_}': {folders}; change the id in the manifest of "
            "one, or remove its folder"
        )
    return paths[0]


def unreadable(root: Path, name: str) -> tuple[Path, str] | None:
    """Return the manifest in a folder of this name, and why it cannot be read; None if it can be.

    None as well if there is no such manifest.
    """
    for path in finding.find(root).paths:
        if path.parent.name == name:
            try:
                manifest.said_in(path)
            except BadDatasetError as error:
                return path, str(error)
    return None


def delete(path: Path, root: Path, project: Path) -> Path | None:
    """Delete the dataset that a manifest describes.

    Args:
        path: The path of the manifest.
        root: The folder of all datasets.
        project: The folder that relative paths in manifests are relative to.

    Returns:
        The dataset's folder if it still contains other files; otherwise None.

    Raises:
        OSError: If the dataset cannot be deleted.
    """
    if path.parent.is_symlink():  # the dataset lies elsewhere: remove only the link to it
        path.parent.unlink()
        return None
    described = None
    with contextlib.suppress(BadDatasetError):
        described = manifest.read(path, root, project)
    folder = Path(os.path.realpath(path.parent))
    path.unlink()  # from here on it is no dataset
    remove(_parts(described, folder) if described is not None else left_overs(folder), folder)
    _remove_empty(folder, folder)
    return folder if folder.exists() and folder != root else None


def remove(places: Iterable[Path], folder: Path) -> None:
    """Remove parts of a dataset, and the folders below `folder` that are empty then."""
    for place in [*places]:
        if place.is_dir():
            shutil.rmtree(place)
        else:
            place.unlink(missing_ok=True)
        _remove_empty(place.parent, folder)


def _parts(described: Manifest, folder: Path) -> Iterator[Path]:
    """Yield the parts of a dataset that lie in its own folder."""
    places = [described.metadata]
    if table.is_ours(described.index):
        places += _parts_of_table(described.index)
    else:
        places.append(described.index)
    for place in places:
        if place.parent.is_relative_to(folder) and not _is_of_another(place, folder):
            yield place
    yield from left_overs(folder)


def left_overs(folder: Path, kept: Path | None = None) -> Iterator[Path]:
    """Yield the parts of our tables that interrupted runs have left beside a manifest.

    Args:
        folder: The dataset's folder.
        kept: The table that the manifest names, which is not yielded, nor is a table that another
            process may be writing.
    """
    with contextlib.suppress(OSError):
        for place in folder.iterdir():
            is_meant = _TABLE.fullmatch(place.name) and not place.is_symlink() and place != kept
            is_part = place.name.endswith(table.PART)
            if is_part and kept is not None and not table.is_left(place):
                continue
            if is_meant and (is_part or table.is_ours(place)):
                yield from _parts_of_table(place)


def _parts_of_table(place: Path) -> Iterator[Path]:
    inside = [*place.iterdir()]
    yield from (p for p in inside if p.is_dir() and _OF_A_TABLE.fullmatch(p.name))
    yield from (p for p in inside if p.name in _BESIDE_A_TABLE)


def _is_of_another(place: Path, folder: Path) -> bool:
    """Return whether a file is a link, or lies in another dataset nested in the folder."""
    between = (each for each in place.parents if each != folder and each.is_relative_to(folder))
    return place.is_symlink() or any((each / manifest.NAME).exists() for each in between)


def _remove_empty(place: Path, folder: Path) -> None:
    """Remove an empty folder, and the empty folders above it up to `folder`."""
    while place.is_relative_to(folder):
        try:
            place.rmdir()
        except OSError:  # it is not empty
            return
        place = place.parent
