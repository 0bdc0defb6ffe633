"""What of the project is looked at: the ignore rules in force, and watches that match them."""

from collections.abc import Awaitable, Callable

import anyio.to_thread

from vector_index_mcp.files.ignore import RULES, Ignore, concerns_rules


class Outlook:
    """The rules as they were when the disk was looked at last."""

    def __init__(self, make_ignore: Callable[[], Ignore]) -> None:
        """Read the rules.

        Args:
            make_ignore: The ignore rules as they are on disk now.
        """
        self.make_ignore = make_ignore
        self.ignore = make_ignore()
        self.settle: Callable[[bool], Awaitable[list[str]]] = _nothing
        """Lets watches match the folders there are, so that what changes later is an event; with
        True if other folders may have become ignored than before, or events were lost. Returns
        where there are other folders than at the last time."""
        self._others: list[str] = []

    async def before_look(self, touched: list[str]) -> tuple[list[str], list[str]]:
        """Where to look because something happened at `touched`, once the watches are set.

        Returns:
            The paths, and those of them at which other folders are than before. Files in these
            may be others, too, although their stamps are the same.
        """
        is_outdated = await self._renew(in_repositories=RULES in touched)
        # What is tracked or not ignored now may lie in folders that were not watched.
        paths = [""] if is_outdated else [path for path in touched if path != RULES]
        await self._settle("" in paths or any(map(concerns_rules, paths)))
        others, self._others = self._others, []
        return [*paths, *others], others

    async def before_walk(self, *, may_have_missed: bool) -> None:
        """Read the rules and set the watches again; all of them if events may have been lost."""
        is_outdated = await self._renew(in_repositories=True)
        await self.settle(is_outdated or may_have_missed)

    async def after_look(self) -> None:
        """Watch the rules of repositories that were met, too."""
        await self._settle(False)

    async def _settle(self, everywhere: bool) -> None:
        self._others += await self.settle(everywhere)

    async def _renew(self, *, in_repositories: bool) -> bool:
        """Read the rules again; whether those from outside of the project are others now."""
        former = self.ignore

        def renew() -> tuple[Ignore, bool]:  # may start git
            newer = self.make_ignore()
            return newer, former.is_outdated_by(newer, in_repositories=in_repositories)

        self.ignore, is_outdated = await anyio.to_thread.run_sync(renew)
        return is_outdated


async def _nothing(everywhere: bool) -> list[str]:
    return []
