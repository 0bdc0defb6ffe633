"""What is written to a terminal, on standard output or standard error.

Names and texts of others pass `foreign.visible` before they come here.
"""

import io
import sys
from typing import TextIO


def write(text: str, stream: TextIO | None = None, *, end: str = "\n") -> None:
    """Write a line, or several, to `stream` (standard output), where they appear at once."""
    stream = prepared(stream or sys.stdout)
    stream.write(text + end)
    stream.flush()


def prepared(stream: TextIO) -> TextIO:
    """`stream`, which from now on shows as Python writes it what its encoding lacks."""
    if isinstance(stream, io.TextIOWrapper):
        stream.reconfigure(errors="backslashreplace")
    return stream
