"""The input of a check, and its finding."""

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from vector_index_mcp.doctor.subject import Subject
from vector_index_mcp.errors import VectorIndexError, is_of_machine, sentence, split_remedy
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
    """What the checks examine."""

    subject: Subject
    settings: Settings
    origins: dict[str, str]
    """The source of each given setting, by field."""
    cache_folder: Path
    state_folder: Path
    mistyped: tuple[str, ...] = ()
    """A sentence for each variable that has our prefix but is no setting."""

    @property
    def index_folder(self) -> Path | None:
        """The folder of the index; None if the index does not lie on this machine."""
        return None if "://" in self.subject.place.uri else Path(self.subject.place.uri)


@dataclass(frozen=True, slots=True)
class Finding:
    """The outcome of one check."""

    verdict: Verdict
    words: str
    remedy: str = ""
    """What to do; empty only if the verdict is OK or NOT_TRIED."""
    details: tuple[str, ...] = ()


def ok(words: str, *details: str) -> Finding:
    """The finding if all is well."""
    return Finding(Verdict.OK, words, "", details)


def warning(words: str, remedy: str) -> Finding:
    """The finding if something works, but not as well as it could."""
    return Finding(Verdict.WARNING, words, remedy)


def failed(words: str, remedy: str) -> Finding:
    """The finding if something does not work."""
    return Finding(Verdict.FAILED, words, remedy)


def not_tried(words: str) -> Finding:
    """The finding if the check could not run; `words` says why."""
    return Finding(Verdict.NOT_TRIED, words)


def failed_by(error: VectorIndexError, remedies: Remedies) -> Finding:
    """The finding for an error of ours, whose message says what is wrong and what to do."""
    words, remedy = remedies.split(remedies.message(error))
    return failed(words, remedy or f"look at {remedies.log}")


def failed_unexpectedly(error: Exception) -> Finding:
    """The finding for an error that the check does not expect."""
    if is_of_machine(error):
        words, remedy = split_remedy(sentence(error))
        return failed(f"cannot be examined: {words}", remedy)
    if isinstance(error, OSError):
        return failed(f"cannot be examined: {error}", "examine the disk")
    words = f"the check itself failed: {type(error).__name__}: {error}"
    return failed(words, "please report this, it is a bug")
