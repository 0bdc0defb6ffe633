"""Writing the files of a project, as tests and as editors do."""

from collections.abc import Mapping
from pathlib import Path


def write(root: Path, files: Mapping[str, str]) -> Path:
    """Write `files`, given as texts by path, below `root`; returns `root`."""
    for path, text in files.items():
        put(root, path, text)
    return root


def put(root: Path, path: str, text: str = "x") -> None:
    """Write one file below `root`."""
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")


def replace_at_once(path: Path, text: str) -> None:
    """Replace a file as editors do: written beside it, then renamed over it."""
    beside = path.with_name(path.name + "~")
    beside.write_text(text, encoding="utf-8")
    beside.replace(path)
