"""`batched` as in itertools since Python 3.12. Pure."""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TypeVar

_Value = TypeVar("_Value")


def batched(values: Iterable[_Value], size: int) -> Iterator[tuple[_Value, ...]]:
    """Yield `values` in order, in tuples of `size`; the last tuple may be shorter."""
    rest = iter(values)
    while batch := tuple(islice(rest, size)):
        yield batch
