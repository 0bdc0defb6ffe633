"""Chooses the precision that a model is computed in, by a trial when the model is loaded.

Which precision is fastest depends on the processor: bfloat16, integers, or neither. The trial
measures processor time, so that other processes on the machine do not change its result.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from vector_index_mcp.engine.types import Vectors

_Model = TypeVar("_Model")

FULL = "float32"
_TIMES = 4
"""How many times the probe is repeated in the measured run."""
# The longest warm-up, with the probe once, as a multiple of the measured time of full precision. A
# processor that takes longer lacks instructions for the precision: without them, bfloat16 takes
# seconds.
_MOST_WARM_UP = 3.0


@dataclass(frozen=True, slots=True)
class Reduced:
    """The conditions under which a reduced precision is used."""

    most_seconds: float
    """The most time it may take, as a share of the fastest precision tried before."""
    are_alike: Callable[[Vectors, Vectors], bool]
    """Returns whether the result of full precision (first) and its own are close enough."""


def fastest(
    full: _Model,
    reduced: Mapping[str, tuple[Reduced, Callable[[], _Model]]],
    compute: Callable[[_Model, int], Vectors],
) -> tuple[_Model, str]:
    """Return the model in its fastest precision that is still close to full precision.

    Computes nothing if there is only one.

    Args:
        full: The model in full precision.
        reduced: The other precisions by name: their conditions, and what converts the model.
        compute: Computes the probe, repeated the given number of times, with a model.

    Returns:
        The model, and the name of its precision.
    """
    if not reduced:
        return full, FULL
    least, expected = _timed(full, compute)
    full_seconds, best, name = least, full, FULL
    for other, (limits, make) in reduced.items():
        try:
            model = make()
            start = time.process_time()
            compute(model, 1)
            if time.process_time() - start > _MOST_WARM_UP * full_seconds:
                continue
            seconds, found = _timed(model, compute)
        except (RuntimeError, TypeError, AttributeError):  # this machine lacks the format
            continue
        if seconds < limits.most_seconds * least and limits.are_alike(expected, found):
            least, best, name = seconds, model, other
    return best, name


def _timed(model: _Model, compute: Callable[[_Model, int], Vectors]) -> tuple[float, Vectors]:
    compute(model, 1)
    start = time.process_time()
    found = compute(model, _TIMES)
    return time.process_time() - start, found
