"""The three sets of files of a merge: the common base, ours and theirs. Pure."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

Content = bytes | None
Tree = Mapping[str, Content]
"""Contents by path; a file that is None or missing does not exist."""
Files = dict[str, bytes]
"""The contents of one side's existing files, by path."""


@dataclass
class Sides:
    """The files that both sides had in common, and those that each side has now.

    Before files are compared, those that are at the same path but are different things, such as two
    new to-do lists of the same number, are moved apart here.
    """

    base: Files
    ours: Files
    theirs: Files
    unchanged: frozenset[str]
    """The paths of files that are the same on all sides."""

    @classmethod
    def of(cls, base: Tree, ours: Tree, theirs: Tree, unchanged: Collection[str]) -> "Sides":
        """Return the sides with these files; files that both have removed are dropped."""
        mine, other = _present(ours), _present(theirs)
        common = {p: content for p, content in _present(base).items() if p in mine or p in other}
        return cls(common, mine, other, frozenset(unchanged))

    @property
    def changed(self) -> set[str]:
        """The paths of all files that are not the same on all sides."""
        return {*self.ours, *self.theirs}

    def standing(self) -> Iterator[str]:
        """Yield the paths of files that one side or both have now."""
        yield from self.ours
        yield from (path for path in self.theirs if path not in self.ours)
        yield from self.unchanged


def _present(tree: Tree) -> Files:
    return {path: content for path, content in tree.items() if content is not None}
