"""What a check examines, and what it finds."""

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from vector_index_mcp.doctor.subject import Subject
from vector_index_mcp.errors import VectorIndexError
from vector_index_mcp.indexing.remedies import Remedies
from vector_index_mcp.settings import Settings


class Verdict(StrEnum):
    """The result of a check; the values are printed."""

    OK = "ok"
    WARNING = "warning"
    FAILED = "FAILED"
    NOT_TRIED = "-"


@dataclass(frozen=True, slots=True)
class Case:
    """What is examined."""

    subject: Subject
    settings: Settings
    origins: dict[str, str]
    """Where each setting that is not at its default comes from, by field."""
    cache_folder: Path
    state_folder: Path
    mistyped: tuple[str, ...] = ()
    """A sentence for each variable that is named as a setting is, and is none."""

    @property
    def index_folder(self) -> Path | None:
        """Where the index lies; None if that is no folder of this machine."""
        return None if "://" in self.subject.place.uri else Path(self.subject.place.uri)


@dataclass(frozen=True, slots=True)
class Finding:
    """The outcome of one check."""

    verdict: Verdict
    words: str
    remedy: str = ""
    """What to do; empty only if all is well or nothing was tried."""
    details: tuple[str, ...] = ()


def ok(words: str, *details: str) -> Finding:
    """All is well."""
    return Finding(Verdict.OK, words, "", details)


def warning(words: str, remedy: str) -> Finding:
    """It works, but not as well as it could."""
    return Finding(Verdict.WARNING, words, remedy)


def failed(words: str, remedy: str) -> Finding:
    """Something does not work."""
    return Finding(Verdict.FAILED, words, remedy)


def not_tried(words: str) -> Finding:
    """The check could not run, `words` says why."""
    return Finding(Verdict.NOT_TRIED, words)


def failed_by(error: VectorIndexError, remedies: Remedies) -> Finding:
    """An error of ours, whose message ends with what to do."""
    words, separator, remedy = remedies.message(error).partition("; ")
    return failed(words, remedy if separator else f"look at {remedies.log}")
