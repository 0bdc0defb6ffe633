r"""Which characters of a text that others wrote may be shown, and what stands for the rest.

A repository can name a file, or write into one, what a terminal obeys and what a reader cannot
see: escape sequences that move the cursor or set the clipboard, a carriage return that overwrites
the line, marks that reverse the reading order. Each such character is shown as Python writes it:
`\x1b`, `\u202e`. Terminal, page and the differences that `install` shows go by this one table.
"""

import re
from typing import Any

OBEYED = (
    (0x00, 0x1F),  # control characters
    (0x7F, 0x9F),  # those of eight bits
    (0xAD, 0xAD),  # a hyphen that nobody sees
    (0x061C, 0x061C),  # reading order
    (0x180E, 0x180E),  # without any width
    (0x200B, 0x200B),
    (0x200E, 0x200F),  # reading order
    (0x2028, 0x2029),  # ends of lines
    (0x202A, 0x202E),  # reading order
    (0x2060, 0x2065),  # without any width
    (0x2066, 0x2069),  # reading order
    (0x206A, 0x206F),  # without any width
    (0xD800, 0xDFFF),  # bytes of a name that are no text
    (0xFEFF, 0xFEFF),  # without any width
    (0xFFF9, 0xFFFB),
    (0x13430, 0x1343F),  # how signs are joined in hieroglyphs, shorthand and music
    (0x1BCA0, 0x1BCA3),
    (0x1D173, 0x1D17A),
    (0xE0000, 0xE007F),  # letters that nobody sees
)
"""First and last code point of what is never shown as it is. The joiners U+200C and U+200D are not
in it: Persian and emoji are written with them."""

_OBEYED = re.compile(f"[{''.join(f'{chr(first)}-{chr(last)}' for first, last in OBEYED)}]")


def visible(text: str, *, keep: str = "") -> str:
    r"""`text` with everything visible that a terminal would obey or a reader would not see.

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


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")
