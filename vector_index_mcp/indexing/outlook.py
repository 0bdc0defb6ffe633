"""Looks at the folders of an index: reads their rules, and finds which files changed."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Protocol

import anyio.to_thread

from vector_index_mcp.errors import ProjectError
from vector_index_mcp.files.folder import Folder, Folders
from vector_index_mcp.files.ignore import RULES, Ignore, concerns_rules
from vector_index_mcp.files.scan import Changes, Known, Tree, look, walk


class Watches(Protocol):
    """The watches that report changes in the folders as events."""

    async def settle(self, everywhere: bool) -> list[str]:
        """Watch the folders that exist and are not ignored, so that later changes cause events.

        Args:
            everywhere: Whether to check all folders, because rules changed or events were lost;
                otherwise only those that events reported.

        Returns:
            The keys of folders that were replaced by other ones since the last time.
        """


@dataclass(slots=True, eq=False)
class View:
    """What the last look found in one folder of the index."""

    folder: Folder
    ignore: Ignore
    """The folder's rules at that time."""
    problem: ProjectError | None = None
    """Why the folder is out of reach; the index keeps its files meanwhile."""
    unreadable: list[str] = field(default_factory=list)
    """Keys of folders in it that cannot be read."""
    left_out: int = 0
    """How many files are over the limit of files; exact after a walk."""
    linked: set[str] = field(default_factory=set)
    """Files that have further names (hard links)."""


class Outlook:
    """Looks at the folders of one index."""

    def __init__(
        self, folders: Folders, make_ignore: Callable[[Folder], Ignore], watches: Watches
    ) -> None:
        """Read the rules of all folders.

        Args:
            folders: The folders of the index; some may be added or removed later.
            make_ignore: Reads the rules of a folder as they are on disk now.
            watches: Reports changes in the folders.
        """
        self._folders = folders
        self._make_ignore = make_ignore
        self._watches = watches
        self._views: dict[str, View] = {}
        self._others: list[str] = []  # keys of folders that were replaced since the last look
        self._views = self._followed()

    async def _follow(self) -> None:
        """Add views of new folders, and drop those of removed ones."""
        if [view.folder for view in self.views] != list(self._folders):
            self._views = await anyio.to_thread.run_sync(self._followed)  # may start git

    def _followed(self) -> dict[str, View]:
        views = {}
        for folder in self._folders:
            view = self._views.get(folder.name)
            if view is None or view.folder != folder:
                view = View(folder, self._make_ignore(folder))
            views[folder.name] = view
        return views

    @property
    def views(self) -> list[View]:
        """What was found in each folder."""
        return [*self._views.values()]

    def view_of(self, key: str) -> View | None:
        """The view of the folder in which `key` lies; None if it lies in none."""
        folder = self._folders.of(key)
        return self._views.get(folder.name) if folder is not None else None

    def is_ignored_folder(self, folder: Folder, path: str) -> bool:
        """Whether the folder at `path` in `folder` needs no watch. May be called in any thread."""
        view = self._views.get(folder.name)
        return view is not None and view.ignore.is_ignored(path, True)

    @property
    def sources(self) -> list[Path]:
        """The files with rules that lie outside of the walked folders; some may not exist."""
        return [path for view in self.views for path in view.ignore.sources()]

    @property
    def repositories(self) -> frozenset[tuple[str, str]]:
        """The git repositories found inside of folders: (name of the folder, path in it)."""
        return frozenset((v.folder.name, at) for v in self.views for at in v.ignore.repositories)

    @property
    def readings(self) -> dict[str, str]:
        """The version of how each named folder is read, by the folder's name."""
        return {f.name: f.reading.version for f in self._folders if f.name}

    @property
    def problems(self) -> dict[str, str]:
        """The folders that are out of reach, by name, and why."""
        return {v.folder.name: str(v.problem) for v in self.views if v.problem is not None}

    @property
    def unreadable(self) -> list[str]:
        """Keys of folders inside of the index's that cannot be read."""
        return [key for view in self.views for key in view.unreadable]

    @property
    def left_out(self) -> int:
        """How many files are over the limit of files."""
        return sum(view.left_out for view in self.views)

    # -- looking ---------------------------------------------------------------------------

    async def look(self, touched: list[str], known: Known) -> Changes:
        """Find what has to be done about the dirty keys `touched`; see `files.scan.look`.

        Of a folder that is out of reach, only the problem is noted.

        Raises:
            ProjectError: If all folders are out of reach.
        """
        touched, others = await self._before_look(touched)
        found = Changes()
        for view in self.views:
            holds = view.folder.holds
            keys = [key for key in touched if holds(key)]
            if not keys:
                continue
            # The last argument: read touched files even if their stamp is the same, since a write
            # through a memory map does not change it.
            others_here = [key for key in others if holds(key)]
            looking = partial(
                look, view.folder, view.ignore, keys, known, view.linked, others_here, keys
            )
            try:
                changes = await anyio.to_thread.run_sync(looking)
            except ProjectError as error:
                view.problem = error
                continue
            view.problem = None
            view.left_out = max(view.left_out, changes.left_out)
            found.dirty += changes.dirty
            found.gone += changes.gone
        self._raise_if_all_are_absent()
        found.gone += self._of_no_folder(touched, known)
        await self._settle(False)  # watch the rules of repositories that the look found
        return found

    async def walk(self, *, may_have_missed: bool) -> Tree:
        """Find all files, by key; `unreadable` also names folders out of reach.

        Args:
            may_have_missed: Whether events were lost, so that all watches are set anew.

        Raises:
            ProjectError: If all folders are out of reach.
        """
        await self._follow()
        outdated = await self._renewed(self.views, in_repositories=True)
        await self._watches.settle(bool(outdated) or may_have_missed)
        whole = Tree()
        for view in self.views:
            try:
                tree = await anyio.to_thread.run_sync(walk, view.folder, view.ignore)
            except ProjectError as error:
                view.problem = error
                whole.unreadable.append(f"{view.folder.top}/")
                continue
            view.problem, view.linked = None, tree.linked
            view.unreadable, view.left_out = tree.unreadable, tree.left_out
            whole.files.update(tree.files)
            whole.unreadable += tree.unreadable
        self._raise_if_all_are_absent()
        await self._settle(False)
        return whole

    def _raise_if_all_are_absent(self) -> None:
        problems = [view.problem for view in self.views]
        if problems and all(problems):
            raise ProjectError(str(problems[0]))

    def _of_no_folder(self, touched: Iterable[str], known: Known) -> list[str]:
        """Files that the index still holds of folders that were removed from it."""
        lost = [key for key in touched if self._folders.of(key) is None]
        return [each for key in lost for each in known.below(key)]

    async def _before_look(self, touched: list[str]) -> tuple[list[str], list[str]]:
        """Set the watches, and find out where to look because something happened at `touched`.

        Returns:
            The keys to look at, and those of them whose folder was replaced. Files in a replaced
            folder may have changed although their stamps are the same.
        """
        await self._follow()
        keys = [key for key in touched if key not in {RULES, ""}]
        if "" in touched:
            keys += [view.folder.top for view in self.views]
        concerned = [v for v in self.views if RULES in touched or any(map(v.folder.holds, keys))]
        # Files that are no longer ignored may lie in folders that were not watched.
        outdated = await self._renewed(concerned, in_repositories=RULES in touched)
        keys += [view.folder.top for view in outdated]
        tops = {view.folder.top for view in self.views}
        await self._settle(not tops.isdisjoint(keys) or any(map(concerns_rules, keys)))
        others, self._others = self._others, []
        return [*keys, *others], others

    def is_outdated(self) -> bool:
        """Whether rules from outside of the folders have changed. Blocks; changes nothing."""
        return any(
            view.ignore.is_outdated_by(self._make_ignore(view.folder), in_repositories=True)
            for view in self.views
        )

    async def _settle(self, everywhere: bool) -> None:
        self._others += await self._watches.settle(everywhere)

    async def _renewed(self, views: Iterable[View], *, in_repositories: bool) -> list[View]:
        """Read rules again; returns the views whose rules from outside of the folder changed."""

        def renew() -> list[View]:  # may start git
            outdated = []
            for view in views:
                newer = self._make_ignore(view.folder)
                if view.ignore.is_outdated_by(newer, in_repositories=in_repositories):
                    outdated.append(view)
                view.ignore = newer
            return outdated

        return await anyio.to_thread.run_sync(renew)
