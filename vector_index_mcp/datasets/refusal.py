"""What the contract says when a search or a dataset will not do."""

from collections.abc import Iterable
from enum import StrEnum


class Code(StrEnum):
    """The codes of the contract."""

    DATASET_NOT_FOUND = "DATASET_NOT_FOUND"
    PYTHON_BRIDGE_ERROR = "PYTHON_BRIDGE_ERROR"
    SEARCH_TIMEOUT = "SEARCH_TIMEOUT"


class Refusal(Exception):
    """Raised for a search that cannot be answered; its words are for the client."""

    def __init__(self, code: Code, words: str) -> None:
        super().__init__(words)
        self.code = code


class BadDatasetError(Exception):
    """Raised for a dataset that cannot be served; says why, and what to do."""


def not_found(dataset: str, ids: Iterable[str]) -> Refusal:
    """No dataset has that id."""
    return Refusal(
        Code.DATASET_NOT_FOUND,
        f"Dataset '{dataset}' not found. Available datasets: {', '.join(ids)}",
    )


def failed(reason: str) -> Refusal:
    """A search could not be made."""
    return Refusal(Code.PYTHON_BRIDGE_ERROR, f"Failed to execute search: {reason}")


def timed_out(seconds: float) -> Refusal:
    """A search took too long."""
    return Refusal(Code.SEARCH_TIMEOUT, f"Search exceeded maximum timeout of {seconds:.0f} seconds")
