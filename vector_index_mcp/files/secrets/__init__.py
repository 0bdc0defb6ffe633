"""Finds files that hold keys, and masks credentials in the text of other files.

The rules are our own, because the detector detect-secrets 1.5.0 (2024) takes 3.4 s of processor
time for a megabyte of source, seven times as long as reading and cutting it; these take 0.02 s. For
any text, the time grows only linearly with its length: RE2, which reads every character once,
searches the whole text, and all other checks look at pieces of bounded length.

`formats` finds tokens that providers mark as theirs. `values` finds values assigned to names like
`api_key`, `lists` and `tables` several of them, `rows` those in SQL. `places` finds credentials
without a name, in URLs, headers and command lines. `blocks` finds keys between marks, and
Kubernetes' secrets. `looks` tells random values from words. What they all miss is indexed like any
text.
"""

import re
from itertools import pairwise

from vector_index_mcp.files.secrets import (
    blocks,
    formats,
    lists,
    places,
    rows,
    tables,
    values,
)
from vector_index_mcp.files.secrets.linear import scannable
from vector_index_mcp.files.secrets.names import is_secret

__all__ = ["VERSION", "is_key", "is_secret", "masked"]

# Change this when other credentials are found; files that were indexed before are then read again.
VERSION = "secrets-8"

_STARTS_WITH_KEY = re.compile(r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY( BLOCK)?-----")
_NO_SPACE = re.compile(r"\S")
_MASK = "*"
# The characters between two lines of one key.
_SEAM = re.compile(r"(?:\\{1,4}[nrt]|[\s\"'+,#/*>|]){1,80}")
_MOST_PASSES = 5  # masking one credential may make another one recognisable

_Span = tuple[int, int]


def is_key(text: str) -> bool:
    """Return whether `text` begins with a private key."""
    return bool(_STARTS_WITH_KEY.match(text.lstrip()[:100]))


def masked(text: str) -> tuple[str, int]:
    """Return `text` with every credential replaced by asterisks, and how many there were.

    The lines and the length of the text stay the same.
    """
    count = 0
    for _ in range(_MOST_PASSES):
        spans = _merged(_found(text))
        if not spans:
            break
        count += 1 + sum(not _SEAM.fullmatch(text, *gap) for gap in _gaps(spans))
        text = _without(text, spans)
    return text, count


def _found(text: str) -> list[_Span]:
    data = scannable(text)
    names = list(values.NAME.spans(data))
    return [
        *formats.find(text, data),
        *values.find(text, names),
        *lists.find(text, names),
        *tables.find(text, names),
        *rows.find(text, names),
        *places.find(text, data),
        *blocks.find(text),
    ]


def _merged(spans: list[_Span]) -> list[_Span]:
    """Return `spans` in order, with overlapping ones merged."""
    apart: list[_Span] = []
    for start, end in sorted(spans):
        if not apart or start >= apart[-1][1]:
            apart.append((start, end))
        elif end > apart[-1][1]:
            apart[-1] = (apart[-1][0], end)
    return apart


def _gaps(spans: list[_Span]) -> list[_Span]:
    """Return the gaps between neighbouring `spans`."""
    return [(one[1], other[0]) for one, other in pairwise(spans)]


def _without(text: str, spans: list[_Span]) -> str:
    pieces, position = [], 0
    for start, end in spans:
        pieces += [text[position:start], _NO_SPACE.sub(_MASK, text[start:end])]
        position = end
    return "".join([*pieces, text[position:]])
