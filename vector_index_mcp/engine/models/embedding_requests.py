"""Groups texts into embedding requests that take the model about equally long. Pure."""

from collections.abc import Iterator, Mapping
from typing import TypeVar

_Key = TypeVar("_Key")

# all-MiniLM-L6-v2 reads 256 tokens; code has 3 to 4 characters a token. The model cuts off the
# rest, which costs nothing.
_CHARS_READ = 1_000
# Requests are short, so that a query does not wait long behind one: at 6,000 to 25,000 tokens a
# second, as two cores compute them, a request takes 0.1 to 0.35 s.
_CHARS_PER_REQUEST = 8_000


def requests_of_equal_work(texts: Mapping[_Key, str]) -> Iterator[list[_Key]]:
    """Yield the keys of `texts` in groups that are embedded together.

    Texts are ordered by length, because the model pads a group to its longest text. Groups of
    longer texts have fewer texts, so that each group takes about as long.
    """
    group: list[_Key] = []
    for key in sorted(texts, key=lambda key: len(texts[key])):
        longest = min(len(texts[key]), _CHARS_READ)  # of the group so far
        if group and longest * (len(group) + 1) > _CHARS_PER_REQUEST:
            yield group
            group = []
        group.append(key)
    if group:
        yield group
