"""Projects of a given number of files, for measuring how cost grows with size."""

import hashlib
import importlib.util
import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from corpora import fetch
from packages import CORPORA

# Where the packages of quality.py do not suffice: large libraries that are installed anyway.
MORE = ("torch", "transformers", "scipy", "sympy", "sklearn", "networkx", "moto")
DEFINITION = re.compile(
    r"^\s*(?:export |public |async )*(?:def|class|function|func|fn|struct|interface)"
    r"\s+([A-Za-z_]\w{9,60})\b",
    re.MULTILINE,
)


@dataclass(frozen=True, slots=True)
class Project:
    """A folder to be indexed."""

    root: Path
    files: int
    size: int
    """Bytes."""


def make(root: Path, packages: Path, files: int) -> Project:
    """Copy `files` files to `root`: always the same ones, mixed over all packages.

    Args:
        root: The folder to make.
        packages: Where the packages of quality.py are kept, or are to be.
        files: How many; beyond what the packages have, sources of installed libraries are taken.
    """
    folders = [fetch(corpus, packages) for corpus in CORPORA]
    chosen = _mixed([(folder.parent, path) for folder in folders for path in folder.rglob("*")])
    if len(chosen) < files:
        chosen += _mixed(
            [(folder.parent, path) for folder in _installed() for path in folder.rglob("*.py")]
        )
    return _copied(root, chosen[:files])


def make_of_installed(root: Path, files: int) -> Project:
    """Copy so many files of installed libraries to `root`: nothing is fetched for that.

    Raises:
        ValueError: If they have fewer files.
    """
    chosen = [(folder.parent, path) for folder in _installed() for path in folder.rglob("*.py")]
    if len(chosen) < files:
        raise ValueError(f"the installed libraries have only {len(chosen)} files")
    return _copied(root, _mixed(chosen)[:files])


def _copied(root: Path, chosen: Sequence[tuple[Path, Path]]) -> Project:
    size = 0
    for base, path in chosen:
        target = root / path.relative_to(base)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target)
        size += target.stat().st_size
    return Project(root, len(chosen), size)


def landmarks(project: Project, count: int) -> dict[str, str]:
    """Names that are defined in one file of `project` and stand nowhere else, with that file."""
    seen: dict[str, set[str]] = {}
    texts = {}
    for path in sorted(project.root.rglob("*")):
        if path.is_file():
            texts[path.relative_to(project.root).as_posix()] = path.read_text("utf-8", "replace")
    for key, text in texts.items():
        for name in set(re.findall(r"\w{10,}", text)):
            seen.setdefault(name, set()).add(key)
    found = {}
    for key in sorted(texts, key=_mix):
        names = [name for name in DEFINITION.findall(texts[key]) if seen.get(name) == {key}]
        if names and len(texts[key]) < 100_000:
            found[names[0]] = key
        if len(found) == count:
            break
    return found


def _installed() -> list[Path]:
    specs = [importlib.util.find_spec(name) for name in MORE]
    return [
        Path(s.submodule_search_locations[0]) for s in specs if s and s.submodule_search_locations
    ]


def _mixed(found: list[tuple[Path, Path]]) -> list[tuple[Path, Path]]:
    files = [(base, path) for base, path in found if path.is_file()]
    return sorted(files, key=lambda pair: _mix(pair[1].relative_to(pair[0]).as_posix()))


def _mix(name: str) -> str:
    return hashlib.sha256(name.encode()).hexdigest()
