"""The parts of an outline."""

from collections.abc import Iterator
from dataclasses import dataclass, field


@dataclass(slots=True)
class Part:
    """A definition or a section, as whole lines."""

    name: str
    kind: str
    """`class`, `function`, `section`, …"""
    start: int
    """0-based line of its first character."""
    end: int
    """0-based line of its last character."""
    named_at: int
    """0-based line on which its name stands."""
    is_symbol: bool = True
    """Whether this is the definition of its name; false for headings and keys of data."""
    parts: list["Part"] = field(default_factory=list)
    """The parts inside it, in the order of their first lines."""

    @property
    def label(self) -> str:
        """Its kind and name, as they appear in the scope of a chunk."""
        return f"{self.kind} {self.name}".strip()


def flat(parts: list[Part]) -> Iterator[Part]:
    """Yield `parts` and all parts inside them, each before the parts that it contains."""
    for part in parts:
        yield part
        yield from flat(part.parts)
