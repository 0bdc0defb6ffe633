r"""What may be sent to a terminal. Whatever a person reads of names and texts passes here.

A repository can name a file, or write into one, what a terminal obeys: escape sequences that move
the cursor or set the clipboard, a carriage return that overwrites the line, marks that reverse the
reading order. None of it is sent as it is; it is shown as Python writes it: `\x1b`, `\u202e`.
"""

import io
import re
import sys
from typing import Any, TextIO

_OBEYED = re.compile(
    "["
    "\x00-\x1f\x7f-\x9f"  # control characters, those of eight bits included
    "\u061c\u200b\u200e\u200f\u202a-\u202e\u2066-\u2069"  # reading order; a space that is none
    "\u2028\u2029"  # ends of lines
    "\u2060-\u2065\u206a-\u206f\ufeff\ufff9-\ufffb"  # without any width
    "\ud800-\udfff"  # bytes of a name that are no text
    "\U000e0000-\U000e007f"  # letters that nobody sees
    "]"
)


def visible(text: str, *, keep: str = "") -> str:
    r"""`text` with everything visible that a terminal would obey.

    Args:
        text: A name, a message or a text.
        keep: Control characters that may stay: "\n\t" for a text of several lines. What ends a
            line on Windows counts as "\n".
    """
    if "\n" in keep:
        text = text.replace("\r\n", "\n")
    return _OBEYED.sub(lambda found: found[0] if found[0] in keep else _escaped(found[0]), text)


def visible_values(values: Any) -> Any:
    """The same for every string in what JSON can hold; the strings are taken for names."""
    if isinstance(values, str):
        return visible(values)
    if isinstance(values, list):
        return [visible_values(value) for value in values]
    if isinstance(values, dict):
        return {visible_values(key): visible_values(value) for key, value in values.items()}
    return values


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


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")
