"""Reads and checks the `manifest.json` of a dataset."""

import json
import math
import os
import re
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vector_index_mcp.checks import Check, Field, Issues, Object, Pattern, Text, WholeNumber
from vector_index_mcp.datasets.finding import MANIFEST
from vector_index_mcp.datasets.limits import LARGEST_MANIFEST_BYTES
from vector_index_mcp.datasets.refusal import BadDatasetError

NAME = MANIFEST
FACTS = "dataset.json"
"""The file in a table of ours with the facts about it."""
ID = Pattern("^[a-z0-9-]+$", re.compile("[a-z0-9-]+").fullmatch, "Invalid")
_NO_WAITING = getattr(os, "O_NONBLOCK", 0)  # Windows has neither this flag nor named pipes
LONGEST_ID, LONGEST_NAME, LONGEST_DESCRIPTION = 64, 128, 512
_NOT_BLANK = ((lambda text: not text or bool(text.strip()), "String must not be blank"),)


def _text(most: int | None = None, pattern: Pattern | None = None) -> Field:
    return Field(Text(1, most, pattern=pattern, refinements=_NOT_BLANK))


TOP_K: Check = WholeNumber(1, 100)
DEFAULT_TOP_K = 5
_FIELDS = Object(
    {
        "id": _text(LONGEST_ID, ID),
        "name": _text(LONGEST_NAME),
        "description": _text(LONGEST_DESCRIPTION),
        "index": _text(),
        "metadata": _text(),
        "defaultTopK": Field(TOP_K, is_required=False, default=DEFAULT_TOP_K),
        "model": Field(Text(0, 512), is_required=False),
    }
)


@dataclass(frozen=True, slots=True)
class Manifest:
    """A dataset, as its manifest describes it."""

    id: str
    name: str
    description: str
    index: Path
    """The file of the index, or the folder of a table of ours; absolute and resolved."""
    metadata: Path
    """The file of its texts; absolute and resolved."""
    default_top_k: int
    model: str
    """The model that made the vectors; empty if the manifest does not name one."""
    places: tuple[Path, ...] = ()
    """Where its index and its texts were looked for, links not resolved."""


def read(path: Path, root: Path, project: Path) -> Manifest:
    """Read a manifest, and resolve the paths in it.

    Args:
        path: The manifest's path.
        root: The folder of all datasets. The files that a manifest names must lie below it, or
            below the manifest's folder.
        project: The folder that relative paths are relative to; if nothing is there, they are
            relative to the manifest's folder.

    Raises:
        BadDatasetError: If the manifest is not valid, or names files that it must not, or that
            cannot be looked at.
    """
    try:
        return _read(path, root, project)
    except OSError as error:  # such as a folder that nobody may enter
        place = error.filename or path.parent
        raise BadDatasetError(f"{place} cannot be looked at ({error.strerror})") from error


def _read(path: Path, root: Path, project: Path) -> Manifest:
    fields = _checked(_parsed(path))
    index = _resolved(fields["index"], "Index", path, root, project)
    metadata = _resolved(fields["metadata"], "Metadata file", path, root, project)
    if not os.path.isfile(metadata):
        raise BadDatasetError(f"Metadata file is no file: {metadata}")
    return Manifest(
        id=fields["id"],
        name=fields["name"],
        description=fields["description"],
        index=_checked_place(index_in(index), "Index", path, root),
        metadata=metadata,
        default_top_k=fields["defaultTopK"],
        model=fields.get("model", ""),
        places=tuple(
            base / fields[name] for name in ("index", "metadata") for base in (project, path.parent)
        ),
    )


def said_in(path: Path) -> Mapping[str, Any]:
    """Return all fields of a manifest, also those for people, without looking at its files.

    Raises:
        BadDatasetError: If the manifest is not valid.
    """
    found = _parsed(path)
    _checked(found)
    assert isinstance(found, dict)  # it was checked
    return found


def _parsed(path: Path) -> object:
    try:
        # Opening a device may have effects, and a named pipe may take its place: it must not block.
        if not stat.S_ISREG(path.stat().st_mode):
            raise BadDatasetError("the manifest is not a plain file")
        with open(os.open(path, os.O_RDONLY | _NO_WAITING), "rb") as file:  # noqa: PTH123
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise BadDatasetError("the manifest is not a plain file")
            data, size = file.read(LARGEST_MANIFEST_BYTES + 1), status.st_size
    except OSError as error:
        raise BadDatasetError(f"the manifest cannot be read ({error.strerror})") from error
    if len(data) > LARGEST_MANIFEST_BYTES:
        raise BadDatasetError(
            f"Manifest file exceeds maximum size ({size} > {LARGEST_MANIFEST_BYTES} bytes)"
        )
    try:
        return json.loads(data, parse_constant=_refused, parse_float=_finite)
    except (ValueError, RecursionError) as error:
        raise BadDatasetError(f"the manifest is no JSON ({error})") from error


def _refused(constant: str) -> float:
    raise ValueError(f"{constant} is no number")


def _finite(written: str) -> float:
    number = float(written)
    return number if math.isfinite(number) else _refused(written)


def _checked(found: object) -> Mapping[str, Any]:
    issues = Issues()
    fields: Mapping[str, Any] = _FIELDS.check(found, (), issues)
    if issues.found:
        raise BadDatasetError(json.dumps(issues.found, indent=2, ensure_ascii=False))
    return fields


def _resolved(named: str, what: str, manifest: Path, root: Path, project: Path) -> Path:
    beside = manifest.parent
    try:
        places = [Path(os.path.realpath(base / named)) for base in (project, beside)]
        place = next((place for place in places if place.exists()), None)
    except (OSError, ValueError) as error:  # too long, or a NUL in it
        raise BadDatasetError(f"{what} not found: {named!r} is not a valid path") from error
    if place is None:
        raise BadDatasetError(f"{what} not found: {places[-1]}")
    # A project may have a folder `index` of its own, which is not the dataset's.
    meant = (each for each in places if each.exists() and _is_at_home(each, manifest, root))
    return _checked_place(next(meant, place), what, manifest, root)


def _is_at_home(place: Path, manifest: Path, root: Path) -> bool:
    above, beside = (Path(os.path.realpath(home)) for home in (root, manifest.parent))
    return place.is_relative_to(beside) or (place != above and place.is_relative_to(above))


def _checked_place(place: Path, what: str, manifest: Path, root: Path) -> Path:
    if not _is_at_home(place, manifest, root):
        raise BadDatasetError(
            f"{what} lies outside of the folder of the datasets: {place}; move it there"
        )
    return place


def index_in(place: Path) -> Path:
    """Return the index at `place`: a file, the index file in a folder, or the folder of a table.

    Raises:
        BadDatasetError: If there is no index.
    """
    # Not `Path.is_file`, which raises if a folder cannot be entered.
    if os.path.isfile(place) or os.path.isfile(place / FACTS):
        return place
    if not place.exists():
        raise BadDatasetError(f"there is nothing at {place}")
    found = [*sorted(place.glob("*.index")), *sorted(place.glob("*.faiss"))]
    file = next((file for file in found if file.is_file()), None)
    if file is None:
        raise BadDatasetError(f"there is no index (*.index, *.faiss) in {place}")
    return Path(os.path.realpath(file))
