"""Converts between keys, URIs and docids of documents. Pure."""

import re
from urllib.parse import quote, unquote

SCHEME = "qmd://"

_DOCID_CHARS = 6
_UNESCAPED = "-_.!~*'()"  # the characters that JavaScript's encodeURIComponent does not escape
_DOCID = re.compile(r"#?([0-9A-Fa-f]{6,64})")
_QUOTES = " \t\n\"'`"


def without_quotes(written: str) -> str:
    """Return a name as it was meant, without the blanks and quotes that people put around it."""
    return written.strip(_QUOTES)


def uri_of(key: str) -> str:
    """Return the URI of the document `key`; bytes of a name that are not UTF-8 are preserved."""
    return SCHEME + quote(key, safe=f"/{_UNESCAPED}", errors="surrogateescape")


def key_of(uri: str) -> str:
    """Return the key in a URI, with all escapes decoded, also those of slashes."""
    return unquote(uri.removeprefix(SCHEME), errors="surrogateescape")


def docid_of(content_hash: str) -> str:
    """Return the docid of a document from the SHA-256 of its content, in hex."""
    return f"#{content_hash[:_DOCID_CHARS]}"


def hash_asked(written: str) -> str:
    """Return the beginning of the content hash that a docid stands for.

    Args:
        written: Six hex digits or more, with or without `#` and quotes.

    Returns:
        The digits in lower case; empty if `written` is not a docid.
    """
    found = _DOCID.fullmatch(without_quotes(written))
    return found[1].lower() if found else ""
