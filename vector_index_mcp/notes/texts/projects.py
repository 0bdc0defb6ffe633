"""Knows which projects a store has, and in which folder each lies.

`index.json` maps projects to folders. A folder that it does not name counts as a project with the
folder's name. So a folder that a person copies into the store is a project at once, and so is one
whose creation a kill has interrupted.
"""

import difflib
import json
import os
import re
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice

from vector_index_mcp.notes.layout import INDEX, PROJECTS
from vector_index_mcp.notes.names import is_keepable
from vector_index_mcp.notes.refusal import Code, Refusal
from vector_index_mcp.notes.store.disk import Disk
from vector_index_mcp.notes.texts.slugs import folders_of, slug

_LONGEST_NAME_BYTES = 255
_MOST_SIMILAR, _SIMILARITY = 3, 0.8  # of all letters and digits: "tide-pools" is like "Tidepool"
_MOST_COMPARED = 200  # characters of a name, and projects


@dataclass(frozen=True, slots=True)
class Project:
    """A project of the store."""

    id: str
    folder: str
    """The project's folder; this and all other paths are relative to the store's folder."""

    @property
    def main(self) -> str:
        """The path of the main instructions."""
        return f"{self.folder}/main.md"

    @property
    def knowledge(self) -> str:
        """The folder of the documents."""
        return f"{self.folder}/knowledge"

    @property
    def todos(self) -> str:
        """The folder of the to-do lists."""
        return f"{self.folder}/TODO"

    def document(self, name: str) -> str:
        """Return the path of a document."""
        return f"{self.knowledge}/{name}"


class Projects:
    """The mapping of projects to folders, from `index.json`."""

    def __init__(self, disk: Disk) -> None:
        """Read `index.json`.

        Raises:
            Refusal: If the file cannot be opened.
        """
        self._disk = disk
        self.problem = ""
        """Why `index.json` cannot be parsed; empty if it can."""
        self._all: dict[str, object] = {}
        self._named: Mapping[str, object] = {}
        """The entries as they are written."""
        self.entries: dict[str, str] = {}
        """The folder's name by project id; empty if the entry is no text."""
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
            raise ValueError('it is no JSON object with "projects"')
        self._all, self._named = found, projects
        self.entries = {k: v if isinstance(v, str) else "" for k, v in projects.items()}

    @property
    def unusable(self) -> list[str]:
        """The projects whose entry is not a valid folder name."""
        return [project for project, name in self.entries.items() if not _is_usable(name)]

    def without_folder(self) -> list[Project]:
        """Return the projects that `index.json` names and whose folder is not there.

        Raises:
            Refusal: If the disk cannot be read.
        """
        usable = (each for each in self.entries.items() if _is_usable(each[1]))
        projects = (Project(project, f"{PROJECTS}/{name}") for project, name in usable)
        return [each for each in projects if not self._disk.is_folder(each.folder)]

    def folders(self) -> list[str]:
        """Return the names of all project folders.

        Raises:
            Refusal: If they cannot be listed.
        """
        return [
            name
            for name, status in self._disk.entries(PROJECTS)
            if not name.startswith(".") and _is_usable(name) and stat.S_ISDIR(status.st_mode)
        ]

    def find(self, project: str) -> Project | None:
        """Return the project called `project`; None if there is none.

        Raises:
            Refusal: If its entry in `index.json` is not a valid folder name, or the folders cannot
                be listed.
        """
        name = self.entries.get(project)
        if name is not None:
            if not _is_usable(name):
                raise Refusal(
                    Code.INVALID_PROJECT_ID,
                    f"{INDEX} gives project {project} the folder {name!r}, which is not a valid "
                    "folder name; correct it",
                    project_id=project,
                )
            return Project(project, f"{PROJECTS}/{name}")
        # A folder that only opens by this name may be another one, where case does not count.
        free = set(self.folders()).difference(self.entries.values())
        for name in self._unnamed(project):
            if name in free:
                return Project(project, f"{PROJECTS}/{name}")
        return None

    def _unnamed(self, project: str) -> tuple[str, ...]:
        """Return the folders that may be the project's without an entry."""
        if not self.problem:
            return folders_of(project)
        # A slug may be that of another project. If there are several of them, so may the name.
        return () if self._has_others(project) else (project,)

    def _has_others(self, name: str) -> bool:
        start = f"{name}-"
        return any(
            other.startswith(start) and other.removeprefix(start).isdecimal()
            for other in self.folders()
        )

    def all(self) -> Iterator[Project]:
        """Yield all projects; those that `index.json` names come first.

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
        """Return the ids of projects with names similar to `project`, most similar first.

        Raises:
            Refusal: If they cannot be listed.
        """
        names = {_plain(each.id): each.id for each in islice(self.all(), _MOST_COMPARED)}
        near = difflib.get_close_matches(_plain(project), names, _MOST_SIMILAR, _SIMILARITY)
        return [names[name] for name in near]

    # -- changes ---------------------------------------------------------------------------

    def check(self) -> None:
        """Check that it is known which folder belongs to which project.

        Raises:
            Refusal: If `index.json` cannot be parsed.
        """
        if self.problem:
            raise Refusal(Code.FILE_SYSTEM_ERROR, f"{self.problem}; nothing was changed")

    def with_project(self, project: str) -> tuple[Project, dict[str, bytes]]:
        """Return a project, and the files to write so that it exists.

        Raises:
            Refusal: If `index.json` cannot be parsed.
        """
        self.check()
        found = self.find(project)
        if found is not None and project in self.entries:
            return found, {}
        folder = found.folder if found is not None else f"{PROJECTS}/{self._new_name(project)}"
        new = Project(project, folder)
        return new, self.with_entry(new)

    def shares_folder(self, project: Project) -> bool:
        """Return whether another project has the folder of `project`, too.

        A folder can have several names where the case or the Unicode form does not count.

        Raises:
            Refusal: If the system refuses to read it.
        """
        status = self._disk.status(project.folder)
        for other, name in self.entries.items():
            folder = f"{PROJECTS}/{name}"
            if other == project.id or not _is_usable(name):
                continue
            if folder == project.folder:
                return True
            found = self._disk.status(folder)
            if status is not None and found is not None and os.path.samestat(status, found):
                return True
        return False

    def with_entry(self, project: Project) -> dict[str, bytes]:
        """Return the files to write so that `index.json` names `project`.

        Raises:
            Refusal: If `index.json` cannot be parsed.
        """
        self.check()
        name = project.folder.removeprefix(f"{PROJECTS}/")
        return self._written({**self._named, project.id: name})

    def without_project(self, project: str) -> dict[str, bytes]:
        """Return the files to write so that `index.json` no longer names `project`."""
        if project not in self.entries or self.problem:
            return {}
        return self._written({k: v for k, v in self._named.items() if k != project})

    def _new_name(self, project: str) -> str:
        taken = {*self.entries.values(), *self.folders()}
        name = first = slug(project)
        number = 0
        while name in taken or self._disk.status(f"{PROJECTS}/{name}") is not None:
            number += 1
            name = f"{first}-{number}"
        return name

    def _written(self, named: Mapping[str, object]) -> dict[str, bytes]:
        return {INDEX: written({**self._all, "projects": named})}


def written(index: Mapping[str, object]) -> bytes:
    """Return the bytes of an `index.json` with these values."""
    # Halves of surrogate pairs, which UTF-8 cannot encode, are escaped in JSON as in Python.
    return json.dumps(index, indent=2, ensure_ascii=False).encode("utf-8", "backslashreplace")


def _is_usable(name: str) -> bool:
    """Return whether `name` is a valid folder name, and not a path to somewhere else."""
    return (
        is_keepable(name)
        and not any(c in "/\\\0\n" for c in name)
        and len(name.encode("utf-8", "replace")) <= _LONGEST_NAME_BYTES
    )


def _plain(name: str) -> str:
    return re.sub(r"[\W_]", "", name[:_MOST_COMPARED].casefold())


def existing(disk: Disk, project: str) -> Project:
    """Return the project called `project`.

    Raises:
        Refusal: If there is no such project.
    """
    projects = Projects(disk)
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
