r"""Which characters of a text that strangers wrote are shown as they are, and which are escaped.

File names and contents of a repository can hold characters that a terminal obeys or a reader does
not see: escape sequences that move the cursor or set the clipboard, a carriage return that
overwrites the line, marks that reverse the reading order. Each such character is shown as Python
escapes it: `\x1b`, `\u202e`. The terminal, the page and the diffs of `install` share this table.
"""

import json
import re
from typing import Any

OBEYED = (
    (0x00, 0x1F),  # control characters
    (0x7F, 0x9F),  # eight-bit control characters
    (0xAD, 0xAD),  # the soft hyphen, which is invisible
    (0x034F, 0x034F),  # without any width
    (0x061C, 0x061C),  # reading order
    (0x115F, 0x1160),  # fillers, which are invisible
    (0x17B4, 0x17B5),
    (0x180E, 0x180E),  # without any width
    (0x200B, 0x200B),
    (0x200E, 0x200F),  # reading order
    (0x2028, 0x2029),  # line separators
    (0x202A, 0x202E),  # reading order
    (0x2060, 0x2065),  # without any width
    (0x2066, 0x2069),  # reading order
    (0x206A, 0x206F),  # without any width
    (0x3164, 0x3164),  # a filler
    (0xD800, 0xDFFF),  # bytes of a file name that are no valid text
    (0xFEFF, 0xFEFF),  # without any width
    (0xFFA0, 0xFFA0),  # a filler
    (0xFFF9, 0xFFFB),
    (0x13430, 0x1343F),  # how signs are joined in hieroglyphs, shorthand and music
    (0x1BCA0, 0x1BCA3),
    (0x1D173, 0x1D17A),
    (0xE0000, 0xE007F),  # invisible letters (tags)
)
"""First and last code points of the ranges that are always escaped. The joiners U+200C and U+200D
are not among them: Persian and emoji need them."""

_OBEYED = re.compile(f"[{''.join(f'{chr(first)}-{chr(last)}' for first, last in OBEYED)}]")


def visible(text: str, *, keep: str = "") -> str:
    r"""Escape what a terminal would obey or a reader would not see.

    Args:
        text: A name, a message or a text.
        keep: Control characters that may stay: "\n\t" for a text of several lines. If "\n" may
            stay, "\r\n" becomes "\n".
    """
    if "\n" in keep:
        text = text.replace("\r\n", "\n")
    return _OBEYED.sub(lambda found: found[0] if found[0] in keep else _escaped(found[0]), text)


def visible_values(values: Any) -> Any:
    """Apply `visible` to every string in a JSON value, keys included; it keeps no newlines."""
    if isinstance(values, str):
        return visible(values)
    if isinstance(values, list):
        return [visible_values(value) for value in values]
    if isinstance(values, dict):
        return {visible_values(key): visible_values(value) for key, value in values.items()}
    return values


def as_json(values: Any, *, indent: int | None = None) -> str:
    r"""Return a JSON value as a text that is safe to print; letters beyond ASCII stay letters.

    What `visible` escapes, JSON's own escapes stand for, so that a program reads the same value.
    """
    written = json.dumps(values, indent=indent, ensure_ascii=False)
    return _OBEYED.sub(lambda found: found[0] if found[0] == "\n" else _in_json(found[0]), written)


def _in_json(character: str) -> str:
    return json.dumps(character)[1:-1].replace("\x7f", "\\u007f")


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")
