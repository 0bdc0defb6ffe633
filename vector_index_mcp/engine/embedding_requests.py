"""Texts grouped into embedding requests of about equal work for the model. Pure."""

from collections.abc import Iterator, Mapping
from typing import TypeVar

_Key = TypeVar("_Key")

# all-MiniLM-L6-v2 reads 256 tokens; code has 3 to 4 characters a token. What lies beyond is cut
# off by the model and costs nothing.
_CHARS_READ = 1_000
# A request is short, so that a query behind it does not wait long: at the 6,000 to 25,000
# tokens a second of two cores, this is 0.1 to 0.35 s.
_CHARS_PER_REQUEST = 8_000


def requests_of_equal_work(texts: Mapping[_Key, str]) -> Iterator[list[_Key]]:
    """The keys of `texts` in groups to be embedded together.

    Ordered by length, because a group is padded to the length of its longest text; so many to a
    group that the model has as much to do with each.
    """
    group: list[_Key] = []
    for key in sorted(texts, key=lambda key: len(texts[key])):
        longest = min(len(texts[key]), _CHARS_READ)  # the last one, so far
        if group and longest * (len(group) + 1) > _CHARS_PER_REQUEST:
            yield group
            group = []
        group.append(key)
    if group:
        yield group
