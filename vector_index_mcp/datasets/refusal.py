"""The errors for a search or a dataset that fails, with the contract's messages."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from pathlib import Path


class Code(StrEnum):
    """The contract's error codes."""

    DATASET_NOT_FOUND = "DATASET_NOT_FOUND"
    PYTHON_BRIDGE_ERROR = "PYTHON_BRIDGE_ERROR"
    SEARCH_TIMEOUT = "SEARCH_TIMEOUT"


class Refusal(Exception):
    """Raised for a search that cannot be answered; its message goes to the client."""

    def __init__(self, code: Code, words: str) -> None:
        super().__init__(words)
        self.code = code


class BadDatasetError(Exception):
    """Raised for a dataset that cannot be served; its message says why, and what to do."""


@dataclass(frozen=True, slots=True)
class LoadError:
    """Why a dataset is not served."""

    path: Path
    """The path of the dataset's manifest."""
    error: str
    when: datetime

    @property
    def id(self) -> str:
        """The folder's name, since the manifest's own id cannot be trusted."""
        return self.path.parent.name


def not_found(dataset: str, ids: Iterable[str], why: str = "", lack: str = "") -> Refusal:
    """Return the Refusal that no dataset with this id is served.

    Args:
        dataset: The id that was asked for.
        ids: Those that are served.
        why: Why it is not served, if it is there.
        lack: Why others may be there which are not served yet; empty if there are none.
    """
    words = f"Dataset '{dataset}' not found. Available datasets: {', '.join(ids)}"
    because = f". It is there, but cannot be served: {why}" if why else ""
    return Refusal(Code.DATASET_NOT_FOUND, words + (because or f"{'. ' if lack else ''}{lack}"))


def failed(reason: str) -> Refusal:
    """Return the Refusal that a search failed."""
    return Refusal(Code.PYTHON_BRIDGE_ERROR, f"Failed to execute search: {reason}")


def timed_out(seconds: float) -> Refusal:
    """Return the Refusal that a search took too long."""
    return Refusal(Code.SEARCH_TIMEOUT, f"Search exceeded maximum timeout of {seconds:.0f} seconds")
