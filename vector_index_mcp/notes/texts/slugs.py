"""Makes file names from the names that agents give to projects, documents and tasks. Pure.

The rules are those of the original program, so that a store that it has made keeps its names.
"""

import re
import unicodedata

_UNTITLED = "untitled"
_ENDING = ".md"
_LONGEST = 200  # bytes; a file name may have 255, and a task's has a number and an ending besides
_WORDS = {
    "&": "and", "$": "dollar", "%": "percent", "<": "less", ">": "greater", "|": "or",
    "¢": "cent", "£": "pound", "¥": "yen", "€": "euro", "©": "(c)", "®": "(r)", "™": "tm",
    "ß": "ss", "æ": "ae", "Æ": "AE", "œ": "oe", "Œ": "OE", "ø": "o", "Ø": "O", "đ": "dj",
    "Đ": "DJ", "ł": "l", "Ł": "L", "þ": "th", "Þ": "TH", "ð": "d", "Ð": "D", "ı": "i",
}  # fmt: skip
"""Replacements for symbols, and for letters that removing accents does not make plain."""
_DROPPED = re.compile(r"[^A-Za-z0-9\s-]")
_BLANKS = re.compile(r"[\s-]+")


def slug(name: str) -> str:
    """Return `name` in lower-case letters, digits and hyphens; `untitled` if nothing is left."""
    name = re.sub(r"[/\\]", "_", name).replace("..", "")
    written = "".join(_WORDS.get(character, character) for character in name)
    plain = "".join(
        character
        for character in unicodedata.normalize("NFD", written)
        if not unicodedata.combining(character)
    )
    words = _BLANKS.sub("-", _DROPPED.sub("", plain).strip()).strip("-")
    return words.lower()[:_LONGEST].rstrip("-") or _UNTITLED


def is_untitled(name: str) -> bool:
    """Return whether nothing of `name` can stand in a file name, such as of one in Cyrillic."""
    return filename(name) == f"{_UNTITLED}{_ENDING}" and _UNTITLED not in name.lower()


def folders_of(project: str) -> tuple[str, ...]:
    """Return the names that a project's folder may have without an entry in `index.json`.

    A name of which nothing is left shares its slug with all others of that kind.
    """
    return (project,) if is_untitled(project) else (project, slug(project))


def filename(name: str) -> str:
    """Return the file name for a document called `name`.

    `name` may have the ending `.md` already, in any case; the result has it once.
    """
    bare = name[: -len(_ENDING)] if name.lower().endswith(_ENDING) else name
    return slug(bare) + _ENDING
