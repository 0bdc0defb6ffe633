"""A sequence in pieces of bounded length; Python 3.12 has it as itertools.batched. Pure."""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TypeVar

_Value = TypeVar("_Value")


def portions(values: Iterable[_Value], size: int) -> Iterator[list[_Value]]:
    """`values` in order, in lists of `size`; the last one may be shorter."""
    rest = iter(values)
    while portion := list(islice(rest, size)):
        yield portion
