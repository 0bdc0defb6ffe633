"""How much may be asked for at once. Pure."""

import math

LONGEST_QUERY_CHARS = 10_000
LONGEST_CHARS = 50_000
"""Of a text among the arguments."""
MOST_RESULTS = 1_000
MOST_TEXTS = 1_000
"""To embed at once."""
LARGEST_BYTES = 10_240
"""Of a document that is sent with others, unless asked otherwise."""
_MOST = 1_000_000_000  # of lines and bytes that somebody asks for


def whole(number: float, most: int = _MOST) -> int:
    """A number as JavaScript would use it for a count: whole, and no endless one."""
    return 0 if math.isnan(number) else int(min(max(number, 0), most))


def line(number: float | None) -> int | None:
    """The same for lines, which may be left out."""
    return None if number is None else whole(number)
