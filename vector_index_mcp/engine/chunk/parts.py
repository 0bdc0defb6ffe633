"""What an outline is made of."""

from collections.abc import Iterator
from dataclasses import dataclass, field


@dataclass(slots=True)
class Part:
    """A definition or a section, as whole lines."""

    name: str
    kind: str
    """What a person would call it: `class`, `function`, `section`, …"""
    start: int
    """0-based line of its first character."""
    end: int
    """0-based line of its last character."""
    named_at: int
    """0-based line on which its name stands."""
    is_symbol: bool = True
    """Whether this is where people expect its name to lead: not so for headings and keys."""
    parts: list["Part"] = field(default_factory=list)
    """What lies inside, in order of their first lines."""

    @property
    def label(self) -> str:
        """What it is called among the enclosing definitions of a chunk."""
        return f"{self.kind} {self.name}".strip()


def flat(parts: list[Part]) -> Iterator[Part]:
    """`parts` and all that lie inside them, each before what it holds."""
    for part in parts:
        yield part
        yield from flat(part.parts)
