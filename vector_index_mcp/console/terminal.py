"""Writes to standard output and standard error.

Callers pass names and texts that others wrote through `foreign.visible` first.
"""

import io
import sys
from typing import TextIO


def write(text: str, stream: TextIO | None = None, *, end: str = "\n") -> None:
    """Write one or more lines to `stream` (standard output by default) and flush it."""
    stream = prepared(stream or sys.stdout)
    stream.write(text + end)
    stream.flush()


def prepared(stream: TextIO) -> TextIO:
    """Return `stream`, set to write characters that its encoding lacks as backslash escapes."""
    if isinstance(stream, io.TextIOWrapper):
        stream.reconfigure(errors="backslashreplace")
    return stream
