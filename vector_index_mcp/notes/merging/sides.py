"""The three trees of a merge, before anything in them is compared. Pure."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

Content = bytes | None
Tree = Mapping[str, Content]
"""Files by path; one that is None, or not in it, is not there."""
Files = dict[str, bytes]
"""Those of one side that are there."""


@dataclass
class Sides:
    """What both sides had in common, and what each of them has now.

    What is not the same on both sides is moved apart here, before files are compared.
    """

    base: Files
    ours: Files
    theirs: Files
    unchanged: frozenset[str]
    """The paths of files that are the same on all sides."""

    @classmethod
    def of(cls, base: Tree, ours: Tree, theirs: Tree, unchanged: Collection[str]) -> "Sides":
        """The sides with these files; what both of them have removed is forgotten."""
        mine, other = _present(ours), _present(theirs)
        common = {p: content for p, content in _present(base).items() if p in mine or p in other}
        return cls(common, mine, other, frozenset(unchanged))

    @property
    def changed(self) -> set[str]:
        """The paths of all files that are not the same on all sides."""
        return {*self.ours, *self.theirs}

    def standing(self) -> Iterator[str]:
        """The paths of files that one side or both have now."""
        yield from self.ours
        yield from (path for path in self.theirs if path not in self.ours)
        yield from self.unchanged


def _present(tree: Tree) -> Files:
    return {path: content for path, content in tree.items() if content is not None}
