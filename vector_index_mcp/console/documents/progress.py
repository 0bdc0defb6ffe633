"""How far an answer is, on standard error; nothing if that is no terminal."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

Show = Callable[[dict[str, Any]], None]
"""Shows `what` is done, how much is `done`, of what `total`."""

_ERASED = "\r\x1b[K"


@contextmanager
def shown() -> Iterator[Show]:
    """A function that shows progress, until the context ends."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return

    def show(told: dict[str, Any]) -> None:
        sys.stderr.write(f"{_ERASED}{told.get('what')}: {told.get('done')}/{told.get('total')}")
        sys.stderr.flush()

    try:
        yield show
    finally:
        sys.stderr.write(_ERASED)
        sys.stderr.flush()
