"""Names of files for what agents call projects, documents and tasks. Pure.

The rules are those of the original program, so that a store of its making keeps its names.
"""

import re
import unicodedata

_UNTITLED = "untitled"
_LONGEST = 200  # bytes; a file's name has 255, and tasks have a number before and an end behind it
_WORDS = {
    "&": "and", "$": "dollar", "%": "percent", "<": "less", ">": "greater", "|": "or",
    "¢": "cent", "£": "pound", "¥": "yen", "€": "euro", "©": "(c)", "®": "(r)", "™": "tm",
    "ß": "ss", "æ": "ae", "Æ": "AE", "œ": "oe", "Œ": "OE", "ø": "o", "Ø": "O", "đ": "dj",
    "Đ": "DJ", "ł": "l", "Ł": "L", "þ": "th", "Þ": "TH", "ð": "d", "Ð": "D", "ı": "i",
}  # fmt: skip
"""What is written as a word, or has no accent to take off."""
_DROPPED = re.compile(r"[^A-Za-z0-9\s-]")
_BLANKS = re.compile(r"[\s-]+")


def slug(name: str) -> str:
    """`name` in lower case letters, digits and hyphens; `untitled` if nothing of it is left."""
    name = re.sub(r"[/\\]", "_", name).replace("..", "")
    written = "".join(_WORDS.get(character, character) for character in name)
    plain = "".join(
        character
        for character in unicodedata.normalize("NFD", written)
        if not unicodedata.combining(character)
    )
    words = _BLANKS.sub("-", _DROPPED.sub("", plain).strip()).strip("-")
    return words.lower()[:_LONGEST].rstrip("-") or _UNTITLED


def filename(name: str, ending: str = ".md") -> str:
    """The name of the file for a document that is to be called `name`, with or without its ending.

    The ending is added once, whatever its case.
    """
    stem = name[: -len(ending)] if name.lower().endswith(ending) else name
    return slug(stem) + ending
