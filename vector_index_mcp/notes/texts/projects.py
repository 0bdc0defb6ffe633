"""Which projects there are, and in which folder of the store each lies.

`index.json` says it; a folder that it does not name is a project of its own name. So what a person
copies into the store is there, and a creation that a kill has cut off is taken up again.
"""

import difflib
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from vector_index_mcp.notes.refusal import Code, Refusal
from vector_index_mcp.notes.store.disk import Disk
from vector_index_mcp.notes.store.opening import INDEX, PROJECTS
from vector_index_mcp.notes.texts.slugs import slug

_UNUSABLE = frozenset({"", ".", ".."})
_LONGEST_NAME_BYTES = 255
_MOST_SIMILAR, _SIMILARITY = 3, 0.8  # of all letters and digits: "tide-pools" is like "Tidepool"
_MOST_COMPARED = 200  # characters, and projects


@dataclass(frozen=True, slots=True)
class Project:
    """A project of the store."""

    id: str
    folder: str
    """Below the store's."""

    @property
    def main(self) -> str:
        """The file of its instructions."""
        return f"{self.folder}/main.md"

    @property
    def knowledge(self) -> str:
        """The folder of its documents."""
        return f"{self.folder}/knowledge"

    @property
    def todos(self) -> str:
        """The folder of its to-do lists."""
        return f"{self.folder}/TODO"

    def document(self, name: str) -> str:
        """The file of a document."""
        return f"{self.knowledge}/{name}"


class Mapping:
    """What `index.json` says, as it is now."""

    def __init__(self, disk: Disk) -> None:
        """Read it.

        Raises:
            Refusal: If the file cannot be opened.
        """
        self._disk = disk
        self.problem = ""
        """Why it cannot be understood; empty if it can."""
        self._all: dict[str, object] = {}
        self.entries: dict[str, str] = {}
        """Names of folders by project."""
        try:
            text = disk.read_text(INDEX)
            self._understand({} if text is None else json.loads(text))
        except (ValueError, RecursionError) as error:
            self.problem = f"{INDEX} cannot be read ({error}); correct it"
        except Refusal as refusal:
            if refusal.code is not Code.INVALID_CONTENT:
                raise
            self.problem = str(refusal)

    def _understand(self, found: object) -> None:
        projects = found.get("projects", {}) if isinstance(found, dict) else None
        if not isinstance(found, dict) or not isinstance(projects, dict):
            raise ValueError('it is no object with "projects"')
        self._all = found
        self.entries = {k: v if isinstance(v, str) else "" for k, v in projects.items()}

    @property
    def unusable(self) -> list[str]:
        """Projects whose entry names no folder that could be in the store."""
        return [project for project, name in self.entries.items() if not _is_usable(name)]

    def folders(self) -> list[str]:
        """The names of all folders of projects.

        Raises:
            Refusal: If they cannot be listed.
        """
        return [
            name
            for name, _ in self._disk.entries(PROJECTS)
            if not name.startswith(".") and self._disk.is_folder(f"{PROJECTS}/{name}")
        ]

    def find(self, project: str) -> Project | None:
        """The project called `project`; None if there is none.

        Raises:
            Refusal: If it is named in a way that cannot be followed.
        """
        name = self.entries.get(project)
        if name is not None:
            if not _is_usable(name):
                raise Refusal(
                    Code.INVALID_PROJECT_ID,
                    f"{INDEX} gives project {project} the folder {name!r}, which is no name of a "
                    "folder; correct it",
                    project_id=project,
                )
            return Project(project, f"{PROJECTS}/{name}")
        taken = set(self.entries.values())
        for name in (project, slug(project)):
            if name not in taken and self._is_there(name):
                # Nobody knows whose it is when the file cannot be read and others have that slug.
                if self.problem and name != project and self._has_others(name):
                    return None
                return Project(project, f"{PROJECTS}/{name}")
        return None

    def _has_others(self, name: str) -> bool:
        start = f"{name}-"
        return any(
            other.startswith(start) and other.removeprefix(start).isdecimal()
            for other in self.folders()
        )

    def _is_there(self, name: str) -> bool:
        return _is_usable(name) and self._disk.is_folder(f"{PROJECTS}/{name}")

    def all(self) -> Iterator[Project]:
        """All projects, those that `index.json` names first.

        Raises:
            Refusal: If they cannot be listed.
        """
        for project, name in self.entries.items():
            if _is_usable(name):
                yield Project(project, f"{PROJECTS}/{name}")
        taken = set(self.entries.values())
        for name in self.folders():
            if name not in taken:
                yield Project(name, f"{PROJECTS}/{name}")

    def similar(self, project: str) -> list[str]:
        """Projects with names that are easily taken for `project`, the most alike first.

        Raises:
            Refusal: If they cannot be listed.
        """
        names = {_plain(each.id): each.id for each in islice(self.all(), _MOST_COMPARED)}
        near = difflib.get_close_matches(_plain(project), names, _MOST_SIMILAR, _SIMILARITY)
        return [names[name] for name in near]

    # -- changes ---------------------------------------------------------------------------

    def with_project(self, project: str) -> tuple[Project, dict[str, bytes]]:
        """A project, and what has to be written so that there is one.

        Raises:
            Refusal: If it is new and cannot be entered.
        """
        found = self.find(project)
        if found is not None and (project in self.entries or self.problem):
            return found, {}
        if self.problem:
            raise Refusal(Code.FILE_SYSTEM_ERROR, f"{self.problem}; nothing was changed")
        name = found.folder.rpartition("/")[2] if found is not None else self._new_name(project)
        return Project(project, f"{PROJECTS}/{name}"), self._written(
            {**self.entries, project: name}
        )

    def without_project(self, project: str) -> dict[str, bytes]:
        """What has to be written so that `project` is named no more."""
        if project not in self.entries or self.problem:
            return {}
        return self._written({k: v for k, v in self.entries.items() if k != project})

    def _new_name(self, project: str) -> str:
        taken = {*self.entries.values(), *self.folders()}
        name = first = slug(project)
        number = 0
        while name in taken:
            number += 1
            name = f"{first}-{number}"
        return name

    def _written(self, entries: dict[str, str]) -> dict[str, bytes]:
        text = json.dumps({**self._all, "projects": entries}, indent=2, ensure_ascii=False)
        return {INDEX: text.encode("utf-8", "replace")}


def _is_usable(name: str) -> bool:
    """Whether `name` can be that of a folder in the store, and leads nowhere else."""
    return (
        name not in _UNUSABLE
        and not any(c in "/\\\0\n" for c in name)
        and len(name.encode("utf-8", "replace")) <= _LONGEST_NAME_BYTES
    )


def _plain(name: str) -> str:
    return re.sub(r"[\W_]", "", name[:_MOST_COMPARED].casefold())


def existing(disk: Disk, project: str) -> Project:
    """The project called `project`.

    Raises:
        Refusal: If there is none.
    """
    projects = Mapping(disk)
    found = projects.find(project)
    if found is None:
        similar = projects.similar(project)
        raise Refusal(
            Code.PROJECT_NOT_FOUND,
            f"Project {project} not found",
            project_id=project,
            **({"similar_projects": similar} if similar else {}),
        )
    return found
