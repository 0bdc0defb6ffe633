"""The URI of a document, and the short name of its content. Pure."""

import re
from urllib.parse import quote, unquote

SCHEME = "qmd://"

_DOCID_CHARS = 6
_UNESCAPED = "-_.!~*'()"  # what encodeURIComponent of JavaScript leaves as it is
_DOCID = re.compile(r"#?([0-9A-Fa-f]{6,64})")
_QUOTES = " \t\n\"'`"


def uri_of(key: str) -> str:
    """The URI of the document `key`; what is no UTF-8 in a name stays what it is."""
    return SCHEME + quote(key, safe=f"/{_UNESCAPED}", errors="surrogateescape")


def key_of(uri: str) -> str:
    """The key in a URI: everything is decoded, slashes as well."""
    return unquote(uri.removeprefix(SCHEME), errors="surrogateescape")


def docid_of(content_hash: str) -> str:
    """The short name of a document whose content has this SHA-256, in hex."""
    return f"#{content_hash[:_DOCID_CHARS]}"


def hash_asked(written: str) -> str:
    """The beginning of a content's hash that somebody asks for by its short name.

    Args:
        written: Six digits or more, with or without `#`, in quotes or not.

    Returns:
        In lower case; empty if it is no such name.
    """
    found = _DOCID.fullmatch(written.strip(_QUOTES))
    return found[1].lower() if found else ""
