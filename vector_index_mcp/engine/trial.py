"""In which precision a model is computed: one trial, when it is loaded, decides.

Processors decide it: one is faster in bfloat16, another in whole numbers, a third in neither. What
counts is their time, and not what other processes leave of it.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from vector_index_mcp.engine.types import Vectors

_Model = TypeVar("_Model")

FULL = "float32"
_TIMES = 4
"""How often the probe is taken to be measured."""
# Of the warm-up, with the probe taken once, to the measured time of full precision. Whoever needs
# more has no such instructions: bfloat16 takes seconds on a processor without them.
_MOST_WARM_UP = 3.0


@dataclass(frozen=True, slots=True)
class Reduced:
    """What makes a precision worth its error."""

    most_seconds: float
    """Beside the fastest before it, 1 is as long."""
    are_alike: Callable[[Vectors, Vectors], bool]
    """Whether it is the same to us which of two results is had; the first is of full precision."""


def fastest(
    full: _Model,
    reduced: Mapping[str, tuple[Reduced, Callable[[], _Model]]],
    compute: Callable[[_Model, int], Vectors],
) -> tuple[_Model, str]:
    """A model in the precision in which it is fastest and hardly differs, and the name of that.

    Args:
        full: In full precision.
        reduced: What else there is, by name, and what makes the model so.
        compute: What a model makes of the probe, taken so many times.
    """
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
        except (RuntimeError, TypeError, AttributeError):  # it does not know the format
            continue
        if seconds < limits.most_seconds * least and limits.are_alike(expected, found):
            least, best, name = seconds, model, other
    return best, name


def _timed(model: _Model, compute: Callable[[_Model, int], Vectors]) -> tuple[float, Vectors]:
    compute(model, 1)
    start = time.process_time()
    found = compute(model, _TIMES)
    return time.process_time() - start, found
