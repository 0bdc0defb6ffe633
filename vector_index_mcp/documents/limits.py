"""Limits for the arguments of requests. Pure."""

import math

LONGEST_QUERY_CHARS = 10_000
LONGEST_CHARS = 50_000
"""The longest text among the arguments."""
MOST_RESULTS = 1_000
MOST_TEXTS = 1_000
"""The most texts to embed in one request."""
LARGEST_BYTES = 10_240
"""Larger documents are left out when several are asked for, unless the caller sets a limit."""
_MOST = 1_000_000_000  # the largest number of lines or bytes in a request


def whole(number: float, most: int = _MOST) -> int:
    """Return a JavaScript number as a count: a whole number from 0 to `most`; 0 for NaN."""
    return 0 if math.isnan(number) else int(min(max(number, 0), most))


def line(number: float | None) -> int | None:
    """Like `whole`, for a number of lines that may be missing; None stays None."""
    return None if number is None else whole(number)
