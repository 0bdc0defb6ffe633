"""How an index notices changes, as its status shows it."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Noticing:
    """How changes are noticed."""

    mode: str
    """`events`, `polling` or `off`."""
    problem: str = ""
    """Why the mode is `polling`, and what to do about it; empty in other modes."""
    blind_spot: str = ""
    """Which changes events do not report, and how soon they are found; empty without events."""
