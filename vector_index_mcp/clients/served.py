"""What an entry in a client's configuration serves: a project, documents, notes, or datasets."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from vector_index_mcp.console.documents import arguments
from vector_index_mcp.documents.home import DEFAULT_NAME
from vector_index_mcp.serving.names import DATASETS, DOCUMENTS, NOTES

# The variables by which clients name the project's folder, with an optional default value.
_PROJECT_VARIABLE = re.compile(r"\$\{(?:workspaceFolder|CLAUDE_PROJECT_DIR)(?::-[^}]{0,1000})?\}")
_ENV_FILE = "--env-file"
_SERVE, _HOME = "serve", "--home"


class Served(Protocol):
    """What an entry serves."""

    @property
    def name(self) -> str:
        """The name for an entry; a client may need it changed."""

    @property
    def words(self) -> tuple[str, ...]:
        """The words after the program and its options on the command line."""

    def lacking(self, words: Sequence[str], project: Path | None) -> tuple[str, ...]:
        """Return the words that are missing in a command line to serve all of this.

        Args:
            words: The words after the program, for which `is_served_by` is true.
            project: The folder that relative paths start from, if the entry is in a file of a
                project; otherwise None.
        """

    def is_served_by(self, words: Sequence[str], project: Path | None) -> bool:
        """Whether a command line of ours serves this.

        Args:
            words: The words after the program.
            project: The folder that relative paths start from, if the entry is in a file of a
                project; otherwise None.
        """


@dataclass(frozen=True, slots=True)
class Project:
    """A software project, and the projects that are searched together with it."""

    folder: Path
    """The project's folder, with links resolved."""
    others: tuple[Path, ...] = ()
    """The folders of the other projects, with links resolved."""

    @property
    def name(self) -> str:
        """The folder's name."""
        return self.folder.name

    @property
    def words(self) -> tuple[str, ...]:
        """The folders."""
        return (str(self.folder), *map(str, self.others))

    def lacking(self, words: Sequence[str], project: Path | None) -> tuple[str, ...]:
        """Return the folders of other projects that none of the words leads to."""
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
    """The name of the set of collections."""

    @property
    def name(self) -> str:
        """The tool set's name, with the name of the set of collections if it is not the default."""
        return DOCUMENTS if self.index == DEFAULT_NAME else f"{DOCUMENTS}-{self.index}"

    @property
    def words(self) -> tuple[str, ...]:
        """The command that serves them."""
        chosen = () if self.index == DEFAULT_NAME else ("--index", self.index)
        return (DOCUMENTS, "mcp", *chosen)

    def lacking(self, words: Sequence[str], project: Path | None) -> tuple[str, ...]:
        """Return nothing: a command line that serves documents serves all of them."""
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
    """The folder's absolute path; None for the default folder."""

    @property
    def name(self) -> str:
        """The tool set's name, with the folder's name if it is not the default folder."""
        return NOTES if self.home is None else f"{NOTES}-{self.home.name.lstrip('.')}"

    @property
    def words(self) -> tuple[str, ...]:
        """The command that serves them."""
        chosen = () if self.home is None else (_HOME, str(self.home))
        return (NOTES, _SERVE, *chosen)

    def lacking(self, words: Sequence[str], project: Path | None) -> tuple[str, ...]:
        """Return nothing: a command line that serves notes serves all of them."""
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
    """The folder's absolute path."""

    @property
    def name(self) -> str:
        """The tool set's name, with the folder's name if that is different."""
        name = self.folder.name.lstrip(".")
        return DATASETS if name in {DATASETS, ""} else f"{DATASETS}-{name}"

    @property
    def words(self) -> tuple[str, ...]:
        """The command that serves them."""
        return (DATASETS, _SERVE, str(self.folder))

    def lacking(self, words: Sequence[str], project: Path | None) -> tuple[str, ...]:
        """Return nothing: a command line that serves datasets serves all of them."""
        return ()

    def is_served_by(self, words: Sequence[str], project: Path | None) -> bool:
        """Whether the command serves the datasets in the same folder."""
        name, *rest = _without_env_file(words) or [""]
        if name != DATASETS or rest[:1] != [_SERVE]:
            return False
        return [_leads_to(word, self.folder, project) for word in rest[1:]] == [True]


def _without_env_file(words: Sequence[str]) -> list[str]:
    """Return the words without `--env-file FILE` at their beginning."""
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
    except (OSError, RuntimeError, ValueError):  # the word is not a valid path
        return False
