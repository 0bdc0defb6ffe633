"""Encodes names of projects and documents for addresses, and back. Pure.

A name may hold halves of surrogate pairs: bytes of a folder's name that are not UTF-8, or escapes
in `index.json`.
"""

from urllib.parse import quote, unquote

_ERRORS = "surrogatepass"


def quoted(name: str) -> str:
    """Return `name` encoded as one component of an address."""
    return quote(name, safe="", errors=_ERRORS)


def unquoted(component: str) -> str:
    """Return the name that `component` encodes.

    Raises:
        ValueError: If it encodes none.
    """
    return unquote(component, errors=_ERRORS)
