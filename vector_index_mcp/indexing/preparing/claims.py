"""Checks whether rows that another machine has made of a file fit the file's text. Pure.

The file is not parsed for this, since parsing takes most of the time. So where definitions begin
and what they are called is only checked as far as the names must occur in the text.
"""

import os
import re
from collections.abc import Collection, Sequence

from vector_index_mcp.engine.text import fields
from vector_index_mcp.engine.types import SCOPE_SEPARATOR, Chunk, Claim
from vector_index_mcp.files.language import language_of
from vector_index_mcp.files.read import Text

_LONGEST_KIND = 30
_BETWEEN_PARTS = re.compile(r"::|\.")


def are_true(key: str, text: Text, claims: Sequence[Claim], max_chars: int) -> bool:
    """Whether `claims` can be all rows of the file `key`, in order.

    Args:
        key: The file.
        text: The file's text.
        claims: The rows, as the other machine made them.
        max_chars: The length of the longest chunk, in characters.
    """
    if not claims:
        return not text.text.strip()
    return (
        _cover(text.text, claims, max_chars)
        and _are_of_file(key, text, claims)
        and _are_names(text.text, claims)
        and all(_is_matched_so(key, claim) for claim in claims if claim.search_text is not None)
    )


def _cover(text: str, claims: Sequence[Claim], max_chars: int) -> bool:
    """Whether the chunks, joined, are the text, and each has the right line numbers."""
    position, line = 0, 1
    for claim in claims:
        if not (0 < len(claim.text) <= max_chars and text.startswith(claim.text, position)):
            return False
        inner = claim.text.count("\n", 0, len(claim.text) - 1)
        if (claim.start_line, claim.end_line) != (line, line + inner):
            return False
        position += len(claim.text)
        line += claim.text.count("\n")
    return position == len(text)


def _are_of_file(key: str, text: Text, claims: Sequence[Claim]) -> bool:
    """Whether each chunk is numbered, named and hashed as this machine would."""
    path, language = key.replace("/", os.sep), language_of(key, text.text)
    for number, claim in enumerate(claims):
        expected = (
            number,
            f"{key}::{number}",
            text.content_hash,
            len(claims),
            claim.text,
            path,
            fields.chunk_hash(key, claim.scope, claim.text),
            claim.start_line,
            claim.end_line,
            language,
        )
        if claim[: len(expected)] != expected:
            return False
    return True


def _are_names(text: str, claims: Sequence[Claim]) -> bool:
    """Whether the symbols and scopes of the chunks occur in the text."""
    for claim in claims:
        # If a long line was cut, the name may be in another chunk of it.
        if not all(
            _stands_in(claim.text, name) or _stands_in(text, name) for name in claim.symbols
        ):
            return False
    scopes = {claim.scope for claim in claims}
    return all(
        not label or _is_label(text, label)
        for label in {label for scope in scopes for label in scope.split(SCOPE_SEPARATOR)}
    )


def _is_label(text: str, label: str) -> bool:
    """Whether a definition or section can have this label, a kind and a name or just a name."""
    kind, _, name = label.partition(" ")
    is_kind = len(kind) <= _LONGEST_KIND and kind.isalpha()
    return (is_kind and _stands_in(text, name)) or label in text


def _stands_in(text: str, name: str) -> bool:
    """Whether a text has a name, or all parts of it: Go writes `func (m *Mux) Handle`."""
    return name in text or all(part and part in text for part in _parts_of(name))


def _parts_of(name: str) -> Collection[str]:
    return {*_BETWEEN_PARTS.split(name)}


def _is_matched_so(key: str, claim: Claim) -> bool:
    """Whether a chunk has the search words that this machine gives it.

    This is the slowest check, so only one row of a file, chosen at random, comes with its words.
    """
    chunk = Chunk(claim.text, claim.start_line, claim.end_line, claim.scope, tuple(claim.symbols))
    [entry] = fields.entries(key, [chunk])
    return entry.search_text == claim.search_text
