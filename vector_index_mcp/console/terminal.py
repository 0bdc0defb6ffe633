"""Writes to standard output and standard error.

Callers pass names and texts that others wrote through `foreign.visible` first.
"""

import io
import sys
from typing import TextIO

from vector_index_mcp.errors import SettingsError


def write(text: str, stream: TextIO | None = None, *, end: str = "\n") -> None:
    """Write one or more lines to `stream` (standard output by default) and flush it."""
    stream = prepared(stream or sys.stdout)
    stream.write(text + end)
    stream.flush()


def confirmed(question: str, unasked: str) -> bool:
    """Ask on the terminal until the answer is yes or no; return whether it is yes.

    Args:
        question: The question, without the choices. An empty answer means no.
        unasked: What to say if there is nobody to ask.

    Raises:
        SettingsError: If standard input is not a terminal.
    """
    if not sys.stdin.isatty():
        raise SettingsError(unasked)
    while True:
        write(f"{question} [y/N] ", end="")
        line = sys.stdin.readline()
        answer = line.strip().lower()
        if answer in {"y", "yes"}:
            return True
        if answer in {"", "n", "no"}:
            if not line:  # after Ctrl+D the cursor is still on the line
                write("")
            return False


def prepared(stream: TextIO) -> TextIO:
    """Return `stream`, set to write characters that its encoding lacks as backslash escapes."""
    if isinstance(stream, io.TextIOWrapper):
        stream.reconfigure(errors="backslashreplace")
    return stream
