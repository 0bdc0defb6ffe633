"""The errors for a search or a dataset that fails, with the contract's messages."""

from collections.abc import Iterable
from enum import StrEnum


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
