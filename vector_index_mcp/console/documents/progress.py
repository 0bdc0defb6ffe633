"""Shows on standard error how far a call is; shows nothing if that is no terminal."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

Show = Callable[[dict[str, Any]], None]
"""Shows a progress message: `what` the work is, how much is `done`, and the `total`."""

_ERASED = "\r\x1b[K"


@contextmanager
def shown() -> Iterator[Show]:
    """Yield a function that shows progress until the context ends."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return

    def show(message: dict[str, Any]) -> None:
        count = f": {message.get('done')}/{message.get('total')}" if message.get("total") else ""
        sys.stderr.write(f"{_ERASED}{message.get('what')}{count}")
        sys.stderr.flush()

    try:
        yield show
    finally:
        sys.stderr.write(_ERASED)
        sys.stderr.flush()
