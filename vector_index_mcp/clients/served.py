"""What an entry of a client's configuration serves: a project, documents, notes, or datasets."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from vector_index_mcp.console.documents import arguments
from vector_index_mcp.documents.home import DEFAULT_NAME
from vector_index_mcp.serving.sets import DATASETS, DOCUMENTS, NOTES

# What clients call the project's folder, with what is used where it is not known.
_PROJECT_VARIABLE = re.compile(r"\$\{(?:workspaceFolder|CLAUDE_PROJECT_DIR)(?::-[^}]{0,1000})?\}")
_ENV_FILE = "--env-file"
_SERVE, _HOME = "serve", "--home"


class Served(Protocol):
    """What an entry serves."""

    @property
    def name(self) -> str:
        """What an entry for it is called, as far as a client allows that."""

    @property
    def words(self) -> tuple[str, ...]:
        """What follows the program and its options on the command line."""

    def lacking(self, words: Sequence[str], project: Path | None) -> tuple[str, ...]:
        """The words that a command line lacks which serves it, but not all that goes with it.

        Args:
            words: What follows the program.
            project: Where relative paths begin, if the entry stands in a file of a project.
        """

    def is_served_by(self, words: Sequence[str], project: Path | None) -> bool:
        """Whether it is what a command line of ours serves.

        Args:
            words: What follows the program.
            project: Where relative paths begin, if the entry stands in a file of a project.
        """


@dataclass(frozen=True, slots=True)
class Project:
    """A software project, and those that are searched with it."""

    folder: Path
    """With links resolved."""
    others: tuple[Path, ...] = ()
    """Likewise."""

    @property
    def name(self) -> str:
        """The folder's name."""
        return self.folder.name

    @property
    def words(self) -> tuple[str, ...]:
        """The folders."""
        return (str(self.folder), *map(str, self.others))

    def lacking(self, words: Sequence[str], project: Path | None) -> tuple[str, ...]:
        """The other folders to which none of the words leads."""
        others = [o for o in self.others if not any(_leads_to(word, o, project) for word in words)]
        return tuple(map(str, others))

    def is_served_by(self, words: Sequence[str], project: Path | None) -> bool:
        """Whether the first path among the words leads to the folder."""
        left = _without_env_file(words)
        if left[:1] in ([DOCUMENTS], [NOTES], [DATASETS]):
            return False
        paths = [word for word in left if word != _SERVE and not word.startswith("-")]
        return bool(paths) and _leads_to(paths[0], self.folder, project)


@dataclass(frozen=True, slots=True)
class Collections:
    """The user's collections of documents."""

    index: str = DEFAULT_NAME
    """Which of several sets of collections."""

    @property
    def name(self) -> str:
        """The tool set's name, and which collections if there are others."""
        return DOCUMENTS if self.index == DEFAULT_NAME else f"{DOCUMENTS}-{self.index}"

    @property
    def words(self) -> tuple[str, ...]:
        """The command that serves them."""
        chosen = () if self.index == DEFAULT_NAME else ("--index", self.index)
        return (DOCUMENTS, "mcp", *chosen)

    def lacking(self, words: Sequence[str], project: Path | None) -> tuple[str, ...]:
        """Nothing: a command line that serves it has all."""
        return ()

    def is_served_by(self, words: Sequence[str], project: Path | None) -> bool:
        """Whether the command serves the same collections."""
        name, *rest = _without_env_file(words) or [""]
        if name != DOCUMENTS:
            return False
        try:
            line = arguments.parse(rest)
        except arguments.UsageError:
            return False
        return line.command in arguments.RELAYS and line.index == self.index


@dataclass(frozen=True, slots=True)
class Store:
    """The notes in one folder."""

    home: Path | None = None
    """Absolute; None for the usual one."""

    @property
    def name(self) -> str:
        """The tool set's name, and the folder's if it is not the usual one."""
        return NOTES if self.home is None else f"{NOTES}-{self.home.name.lstrip('.')}"

    @property
    def words(self) -> tuple[str, ...]:
        """The command that serves them."""
        chosen = () if self.home is None else (_HOME, str(self.home))
        return (NOTES, _SERVE, *chosen)

    def lacking(self, words: Sequence[str], project: Path | None) -> tuple[str, ...]:
        """Nothing: a command line that serves it has all."""
        return ()

    def is_served_by(self, words: Sequence[str], project: Path | None) -> bool:
        """Whether the command serves the notes in the same folder."""
        name, *rest = _without_env_file(words) or [""]
        if name != NOTES or _SERVE not in rest:
            return False
        homes = [word.removeprefix(f"{_HOME}=") for word in rest if word.startswith(f"{_HOME}=")]
        if _HOME in rest[:-1]:
            homes.append(rest[rest.index(_HOME) + 1])
        if self.home is None or not homes:
            return self.home is None and not homes
        return _leads_to(homes[0], self.home, project)


@dataclass(frozen=True, slots=True)
class Shelf:
    """The datasets in one folder."""

    folder: Path
    """Absolute."""

    @property
    def name(self) -> str:
        """The tool set's name, and the folder's if it says more."""
        name = self.folder.name.lstrip(".")
        return DATASETS if name in {DATASETS, ""} else f"{DATASETS}-{name}"

    @property
    def words(self) -> tuple[str, ...]:
        """The command that serves them."""
        return (DATASETS, _SERVE, str(self.folder))

    def lacking(self, words: Sequence[str], project: Path | None) -> tuple[str, ...]:
        """Nothing: a command line that serves it has all."""
        return ()

    def is_served_by(self, words: Sequence[str], project: Path | None) -> bool:
        """Whether the command serves the datasets in the same folder."""
        name, *rest = _without_env_file(words) or [""]
        if name != DATASETS or rest[:1] != [_SERVE]:
            return False
        return [_leads_to(word, self.folder, project) for word in rest[1:]] == [True]


def _without_env_file(words: Sequence[str]) -> list[str]:
    """What follows the options that stand before a command."""
    left = [*words]
    while left and left[0].startswith(_ENV_FILE):
        del left[: 2 if left[0] == _ENV_FILE else 1]
    return left


def _leads_to(word: str, folder: Path, project: Path | None) -> bool:
    """Whether a word of a command line is a path to `folder`."""
    if project is not None:
        word = _PROJECT_VARIABLE.sub(lambda _: str(project), word)
    path = Path(word)
    if project is None and not path.is_absolute():
        return False
    try:
        return ((project or folder) / path).resolve() == folder
    except (OSError, RuntimeError, ValueError):  # a word that is no path at all
        return False
