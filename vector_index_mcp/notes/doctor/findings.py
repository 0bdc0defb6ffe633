"""What the checks of a store find."""

from dataclasses import dataclass
from enum import StrEnum

REPAIR = "`vector-index-mcp notes doctor --repair`"


class Verdict(StrEnum):
    """The result of a check; the values are shown to people."""

    OK = "ok"
    WARNING = "warning"
    FAILURE = "failure"


@dataclass(frozen=True, slots=True)
class Finding:
    """A result of a check."""

    name: str
    """The check's name."""
    verdict: Verdict
    words: str
    remedy: str = ""
    """What to do; empty if all is well."""


Problem = tuple[Verdict, str, str]
"""Verdict, words and remedy."""


def failed(words: str, remedy: str) -> Problem:
    """Return a problem that keeps the notes from working."""
    return Verdict.FAILURE, words, remedy


def warned(words: str, remedy: str) -> Problem:
    """Return a problem beside which the notes work."""
    return Verdict.WARNING, words, remedy
