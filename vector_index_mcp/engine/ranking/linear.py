"""A linear model over the fields of a dataclass. Pure."""

import math
from dataclasses import astuple, fields
from operator import mul
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

_Evidence = TypeVar("_Evidence", bound="DataclassInstance")


def total(evidence: _Evidence, weights: _Evidence) -> float:
    """Return the sum of the numeric fields of `evidence`, each times its weight."""
    return math.fsum(map(mul, astuple(evidence), astuple(weights)))


def weighed(evidence: _Evidence, weights: _Evidence) -> dict[str, float]:
    """Return each numeric field of `evidence` times its weight, by the field's name."""
    parts = zip(fields(evidence), astuple(evidence), astuple(weights), strict=True)
    return {field.name: value * weight for field, value, weight in parts}
