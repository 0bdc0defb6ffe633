"""What is seen of the folders: their rules, what the last looks found, and looking again."""

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
    """What reports changes of the folders as they happen."""

    async def settle(self, everywhere: bool) -> list[str]:
        """Make the watches match the folders there are, so that what changes later is an event.

        Args:
            everywhere: Whether other folders may have become ignored than before, or events were
                lost; otherwise only where events reported folders.

        Returns:
            The keys at which other folders are than at the last time.
        """


@dataclass(slots=True, eq=False)
class View:
    """What was found when one folder was looked at last."""

    folder: Folder
    ignore: Ignore
    """Its rules as they were then."""
    problem: ProjectError | None = None
    """Why it is out of reach; the index keeps what it holds of it."""
    unreadable: list[str] = field(default_factory=list)
    """Folders in it of which nothing is known."""
    left_out: int = 0
    """Files in it for which there is no room; exact after a walk."""
    linked: set[str] = field(default_factory=set)
    """Files with other names."""


class Outlook:
    """Looks at the folders of one index."""

    def __init__(
        self, folders: Folders, make_ignore: Callable[[Folder], Ignore], watches: Watches
    ) -> None:
        """Read the rules of all folders.

        Args:
            folders: Those of the index; it follows when some come or go.
            make_ignore: Reads the rules of a folder as they are on disk now.
            watches: What reports changes of the folders.
        """
        self._folders = folders
        self._make_ignore = make_ignore
        self._watches = watches
        self._views: dict[str, View] = {}
        self._others: list[str] = []  # where other folders are than at the last look
        self._views = self._followed()

    async def _follow(self) -> None:
        """Have a view of each folder, and of no other."""
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
        """The files outside of what is walked that rules come from, there or not."""
        return [path for view in self.views for path in view.ignore.sources()]

    @property
    def repositories(self) -> frozenset[tuple[str, str]]:
        """The repositories inside of folders that were met: the folder's name and the path."""
        return frozenset((v.folder.name, at) for v in self.views for at in v.ignore.repositories)

    @property
    def readings(self) -> dict[str, str]:
        """By the name of each folder that has one, the version of how it is read."""
        return {f.name: f.reading.version for f in self._folders if f.name}

    @property
    def problems(self) -> dict[str, str]:
        """The folders that are out of reach, by name, and why."""
        return {v.folder.name: str(v.problem) for v in self.views if v.problem is not None}

    @property
    def unreadable(self) -> list[str]:
        """Folders inside of ours of which nothing is known."""
        return [key for view in self.views for key in view.unreadable]

    @property
    def left_out(self) -> int:
        """Files for which there is no room."""
        return sum(view.left_out for view in self.views)

    # -- looking ---------------------------------------------------------------------------

    async def look(self, touched: list[str], known: Known) -> Changes:
        """What has to be done about the dirty keys `touched`; see `files.scan.look`.

        A folder that is out of reach is left as it was, and noted.

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
            # A file that is named is read: a write through a memory map leaves its stamp.
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
        await self._settle(False)  # watch the rules of repositories that were met
        return found

    async def walk(self, *, may_have_missed: bool) -> Tree:
        """All files that are there, by key; `unreadable` also names folders out of reach.

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
        """What the index still holds of folders that it has no more."""
        lost = [key for key in touched if self._folders.of(key) is None]
        return [each for key in lost for each in known.below(key)]

    async def _before_look(self, touched: list[str]) -> tuple[list[str], list[str]]:
        """Where to look because something happened at `touched`, once the watches are set.

        Returns:
            The keys, and those of them at which other folders are than before. Files in these may
            be others, too, although their stamps are the same.
        """
        await self._follow()
        keys = [key for key in touched if key not in {RULES, ""}]
        if "" in touched:
            keys += [view.folder.top for view in self.views]
        concerned = [v for v in self.views if RULES in touched or any(map(v.folder.holds, keys))]
        # What is tracked or not ignored now may lie in folders that were not watched.
        outdated = await self._renewed(concerned, in_repositories=RULES in touched)
        keys += [view.folder.top for view in outdated]
        tops = {view.folder.top for view in self.views}
        await self._settle(not tops.isdisjoint(keys) or any(map(concerns_rules, keys)))
        others, self._others = self._others, []
        return [*keys, *others], others

    def is_outdated(self) -> bool:
        """Whether rules from outside of the folders are others now. Blocks; changes nothing."""
        return any(
            view.ignore.is_outdated_by(self._make_ignore(view.folder), in_repositories=True)
            for view in self.views
        )

    async def _settle(self, everywhere: bool) -> None:
        self._others += await self._watches.settle(everywhere)

    async def _renewed(self, views: Iterable[View], *, in_repositories: bool) -> list[View]:
        """Read rules again; returns the folders where those from outside of it are others now."""

        def renew() -> list[View]:  # may start git
            outdated = []
            for view in views:
                newer = self._make_ignore(view.folder)
                if view.ignore.is_outdated_by(newer, in_repositories=in_repositories):
                    outdated.append(view)
                view.ignore = newer
            return outdated

        return await anyio.to_thread.run_sync(renew)
