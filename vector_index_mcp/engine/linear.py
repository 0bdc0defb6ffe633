"""A linear model over the fields of a dataclass. Pure."""

from dataclasses import astuple, fields
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

_Evidence = TypeVar("_Evidence", bound="DataclassInstance")


def weighed(evidence: _Evidence, weights: _Evidence) -> dict[str, float]:
    """What each field of `evidence`, all of them numbers, adds by its weight; by its name."""
    parts = zip(fields(evidence), astuple(evidence), astuple(weights), strict=True)
    return {field.name: value * weight for field, value, weight in parts}
