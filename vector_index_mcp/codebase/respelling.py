"""Finds names of the project that are spelled like a word which stands nowhere. Pure."""

from collections.abc import Iterable, Mapping
from difflib import get_close_matches

from vector_index_mcp.engine.text.words import joined, last_name, owner_of, words
from vector_index_mcp.errors import encodable

_FEWEST_CHARS = 5  # of shorter words, one letter makes another word
_MOST_CHARS = 40  # difflib's time grows with the square; 10,000 names of 60 letters took 3 s
_MOST_COMPARED = 3_000  # names; at most 0.3 s a word
_MOST_CHARS_APART = 2
# Of difflib's ratio: a letter more or less in words of five letters and more, another one in words
# of eight, two exchanged ones in words of ten. Of 0.84, `collection` was near to "conection".
_LEAST_LIKE = 0.87


def meant(lacking: Iterable[str], known: Mapping[str, str]) -> dict[str, str]:
    """Return the nearest name for each word that has one: "conection" may mean "Connection".

    Args:
        lacking: The words, as typed.
        known: What `spellings` has returned for the project.
    """
    asked = {joined(last_name(word)): word for word in lacking}
    asked = {s: word for s, word in asked.items() if _FEWEST_CHARS <= len(s) <= _MOST_CHARS}
    if not asked:
        return {}
    found = {word: _nearest(spelled, known) for spelled, word in asked.items()}
    return {word: _owned(word, name, known) for word, name in found.items() if name}


def _owned(word: str, name: str, known: Mapping[str, str]) -> str:
    """Return `name` behind what owns `word`, if that is known or near to a name: `Class.name`."""
    owner = last_name(owner_of(word))
    spelled = joined(owner)
    if not _FEWEST_CHARS <= len(spelled) <= _MOST_CHARS:
        return name
    owners_name = known.get(spelled) or _nearest(spelled, known)
    separator = word.removesuffix(last_name(word)).removeprefix(owner_of(word))
    return f"{owners_name}{separator}{name}" if owners_name else name


def spellings(symbols: Iterable[str], keys: Iterable[str]) -> dict[str, str]:
    """Return names as they are written, by their one spelling; whole names before their words.

    Args:
        symbols: The names that the project defines.
        keys: The paths of its files.
    """
    names = {last_name(symbol) for symbol in symbols}
    # A name that is not UTF-8 cannot be searched for.
    files = (key.rpartition("/")[2].partition(".")[0] for key in keys)
    names |= {name for name in files if encodable(name) == name}
    # Of `_connection`, `connection` and `Connection`, the name of the type; a private name last.
    whole = {joined(name): name for name in sorted(names, key=_likely)}
    parts = {word: word for name in names for word in words(name)}
    return parts | whole


def _likely(name: str) -> tuple[bool, bool, str]:
    """Return a key that is greater the likelier a name is meant by its spelling."""
    return not name.startswith("_"), name[:1].isupper(), name


def _digits(word: str) -> str:
    return "".join(filter(str.isdigit, word))


def _nearest(spelled: str, known: Mapping[str, str]) -> str:
    """Return the name whose spelling is nearest; empty if none is near."""
    # Only names of the same first letter: nobody mistypes that, and a tenth is left to compare. And
    # of the same digits: `utf16` is no slip for `utf8`.
    alike = [
        each
        for each in known
        if each != spelled  # it stands outside of what is searched
        and each[:1] == spelled[0]
        and abs(len(each) - len(spelled)) <= _MOST_CHARS_APART
        and _digits(each) == _digits(spelled)
    ]
    near = get_close_matches(spelled, alike[:_MOST_COMPARED], 1, _LEAST_LIKE)
    return known[near[0]] if near else ""
