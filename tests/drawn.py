"""How many examples hypothesis draws.

`EXAMPLES` is the share of what a test names: `make check` draws a few, `make test` a quarter,
`make soak` many times as much.
"""

import os

SHARE = float(os.environ.get("EXAMPLES", "0.25"))
_FEWEST = 5


def examples(count: int) -> int:
    """The share of `count` examples that is wanted."""
    return max(_FEWEST, round(count * SHARE))
