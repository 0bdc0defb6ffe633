"""How many examples hypothesis draws.

`EXAMPLES` is the share of what `make test` draws: `make check` tries a few, `make soak` many.
"""

import os

SHARE = float(os.environ.get("EXAMPLES", "1"))
_FEWEST = 5


def examples(count: int) -> int:
    """The share of `count` examples that is wanted."""
    return max(_FEWEST, round(count * SHARE))
