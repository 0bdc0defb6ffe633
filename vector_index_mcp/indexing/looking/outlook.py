"""Looks at the folders of an index: reads their rules, and finds which files changed."""

from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Protocol, Self

from vector_index_mcp.errors import ProjectError
from vector_index_mcp.files.folder import Folder, Folders
from vector_index_mcp.files.ignore import RULES, concerns_rules
from vector_index_mcp.files.scan import Changes, Known, Tree, lies_in
from vector_index_mcp.indexing.looking.deep import IgnoreNotingDepth, look, walk
from vector_index_mcp.indexing.looking.looks import Looks


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
    ignore: IgnoreNotingDepth
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
        self,
        folders: Folders,
        make_ignore: Callable[[Folder], IgnoreNotingDepth],
        watches: Watches,
        looks: Looks,
    ) -> None:
        """Prepare; see `of`."""
        self._folders = folders
        self._make_ignore = make_ignore
        self._watches = watches
        self._looks = looks
        self._views: dict[str, View] = {}
        # The folders whose rules could not be read yet, by name, and why; they have no view.
        self._unread: dict[str, ProjectError] = {}
        self._others: list[str] = []  # keys of folders that were replaced since the last look

    @classmethod
    async def of(
        cls,
        folders: Folders,
        make_ignore: Callable[[Folder], IgnoreNotingDepth],
        watches: Watches,
        looks: Looks,
    ) -> Self:
        """Make one, and read the rules of all folders.

        Args:
            folders: The folders of the index; some may be added or removed later.
            make_ignore: Reads the rules of a folder as they are on disk now.
            watches: Reports changes in the folders.
            looks: Looks at folders, whose drives may hang.
        """
        outlook = cls(folders, make_ignore, watches, looks)
        await outlook._follow()
        return outlook

    async def _follow(self) -> None:
        """Add views of new folders, and drop those of removed ones."""
        if [view.folder for view in self.views] == list(self._folders):
            return
        views, unread = {}, {}
        for folder in list(self._folders):
            view = self._views.get(folder.name)
            if view is None or view.folder != folder:
                try:
                    ignore = await self._looks.work_in(folder, partial(self._make_ignore, folder))
                except ProjectError as error:
                    unread[folder.name] = error
                    continue
                # Until somebody looks at all of it, it is as if it were still out of reach.
                view = View(folder, ignore, self._unread.get(folder.name))
            views[folder.name] = view
        self._views, self._unread = views, unread

    @property
    def views(self) -> list[View]:
        """What was found in each folder whose rules could be read."""
        return [*self._views.values()]

    def view_of(self, key: str) -> View | None:
        """The view of the folder in which `key` lies; None if there is none."""
        folder = self._folders.of(key)
        return self._views.get(folder.name) if folder is not None else None

    def is_ignored_folder(self, folder: Folder, path: str) -> bool:
        """Whether the folder at `path` in `folder` needs no watch. May be called in any thread."""
        view = self._views.get(folder.name)
        return folder.name in self._unread if view is None else view.ignore.is_ignored(path, True)

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
        found = {v.folder.name: v.problem for v in self.views if v.problem is not None}
        return {name: str(problem) for name, problem in (found | self._unread).items()}

    @property
    def unreadable(self) -> list[str]:
        """Keys of folders inside of the index's that cannot be read."""
        return [key for view in self.views for key in view.unreadable]

    @property
    def disobeyed(self) -> dict[str, str]:
        """Keys of ignore files that git obeys and this does not, and why."""
        found = ((v.folder, v.ignore.disobeyed.copy()) for v in self.views)
        return {folder.key_of(path): why for folder, each in found for path, why in each.items()}

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
            linked = set(view.linked)  # a copy: the look may go on when nobody waits for it
            others_here = [key for key in others if holds(key)]
            looking = partial(look, view.folder, view.ignore, keys, known, linked, others_here)
            try:
                changes = await self._looks.work_in(view.folder, looking)
            except ProjectError as error:
                view.problem = error
                continue
            view.problem, view.linked = None, linked
            view.left_out = max(view.left_out, changes.left_out)
            left = [key for key in view.unreadable if not lies_in(key, changes.walked)]
            view.unreadable = [*left, *changes.unreadable]
            found.dirty += changes.dirty
            found.gone += changes.gone
        self._raise_if_all_are_absent()
        found.gone += self._of_no_folder(touched, known)
        await self._settle(False)  # watch the rules of repositories that the look found
        return found

    async def walk(self, *, may_have_missed: bool) -> Tree:
        """Find all files, by key; `unreadable` also names folders out of reach.

        Args:
            may_have_missed: Whether events were lost, so that all watches are set again.

        Raises:
            ProjectError: If all folders are out of reach.
        """
        await self._follow()
        outdated = await self._renewed(self.views, in_repositories=True)
        await self._settle(bool(outdated) or may_have_missed)
        replaced, self._others = frozenset(self._others), []
        whole = Tree(unreadable=[f"{name}/" for name in self._unread], replaced=replaced)
        for view in self.views:
            walking = partial(walk, view.folder, view.ignore)
            try:
                tree = await self._looks.work_in(view.folder, walking)
            except ProjectError as error:
                view.problem = error
                whole.unreadable.append(f"{view.folder.top}/")
                continue
            view.problem, view.linked = None, tree.linked
            view.unreadable, view.left_out = tree.unreadable, tree.left_out
            whole.files.update(tree.files)
            whole.linked |= tree.linked
            whole.unreadable += tree.unreadable
        self._raise_if_all_are_absent()
        await self._settle(False)
        return whole

    def _raise_if_all_are_absent(self) -> None:
        if (problems := self.problems) and len(problems) == len(self._folders):
            raise ProjectError(next(iter(problems.values())))

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

    async def is_outdated(self) -> bool:
        """Whether rules from outside of the folders have changed. Changes nothing."""
        for view in self.views:
            with suppress(ProjectError):
                if (await self._looks.work_in(view.folder, partial(self._newer, view, True)))[1]:
                    return True
        return False

    async def _settle(self, everywhere: bool) -> None:
        self._others += await self._watches.settle(everywhere)

    async def _renewed(self, views: Iterable[View], *, in_repositories: bool) -> list[View]:
        """Read rules again; returns the views whose rules from outside of the folder changed."""
        outdated = []
        for view in views:
            try:
                newer, is_outdated = await self._looks.work_in(
                    view.folder, partial(self._newer, view, in_repositories)
                )
            except ProjectError as error:
                view.problem = error
                continue
            view.ignore = newer
            if is_outdated:
                outdated.append(view)
        return outdated

    def _newer(self, view: View, in_repositories: bool) -> tuple[IgnoreNotingDepth, bool]:
        """The rules of a folder as they are now, and whether those from outside changed."""
        newer = self._make_ignore(view.folder)  # may start git
        return newer, view.ignore.is_outdated_by(newer, in_repositories=in_repositories)
