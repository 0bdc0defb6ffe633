"""A linear model over the fields of a dataclass. Pure."""

from dataclasses import astuple, fields
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

_Evidence = TypeVar("_Evidence", bound="DataclassInstance")


def weighed(evidence: _Evidence, weights: _Evidence) -> dict[str, float]:
    """Return each numeric field of `evidence` times its weight, by the field's name."""
    parts = zip(fields(evidence), astuple(evidence), astuple(weights), strict=True)
    return {field.name: value * weight for field, value, weight in parts}
