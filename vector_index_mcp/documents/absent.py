"""Finds names in a query, such as error codes, that no text has. Pure.

Documents are found by the words of a query, and a name such as `PAY-CERT-18` has several. So one
with most of them, such as `PAY-CERT-17`, scores almost as high as the name itself.
"""

import re
from collections.abc import Iterable, Sequence

_TOKEN = re.compile(r"\w[\w.-]*\w")
_COMPOUND = re.compile(r"\w_\w|[a-z][A-Z]")
_PART = re.compile(r"[A-Za-z0-9]+")
_BETWEEN = "(?:[^A-Za-z0-9]|&#?[A-Za-z0-9]{1,8};|</?[A-Za-z]{1,8}>){0,6}"
_FEWEST_CHARS, _MOST_CHARS = 5, 100  # of a name: not `2nd`, `10am`
_MOST_NAMES = 3


def names_in(query: str) -> list[str]:
    """Return the first few names in a query: words with underscores, or letters and digits."""
    tokens = dict.fromkeys(_TOKEN.findall(query))
    return [
        token
        for token in tokens
        if _FEWEST_CHARS <= len(token) <= _MOST_CHARS
        and token.isascii()  # others have several spellings
        and _is_name(token)
    ][:_MOST_NAMES]


def pattern_of(name: str) -> str:
    """Return a regular expression, of Rust and Python, that finds a name however it is written.

    Markdown may have escapes, emphasis or entities in it, as in `**REQ**-7` or `A&#95;17`. More
    digits would be another number; more letters may be an ending.
    """
    before = "(?:^|[^0-9])" if name[0].isdigit() else ""
    behind = "(?:$|[^0-9])" if name[-1].isdigit() else ""
    return f"(?i){before}{_BETWEEN.join(_PART.findall(name))}{behind}"


def _is_name(token: str) -> bool:
    has_both = any(map(str.isdigit, token)) and any(map(str.isalpha, token))
    return has_both or _COMPOUND.search(token) is not None


def names_outside(names: Sequence[str], texts: Iterable[str]) -> list[str]:
    """Return the names that stand in none of the texts or paths, in any case."""
    searched = [*texts] if names else []
    patterns = {name: re.compile(pattern_of(name)) for name in names}
    return [n for n, pattern in patterns.items() if not any(map(pattern.search, searched))]
