"""What must not be read, stored or shown: files that hold keys, and credentials in other files.

Own rules, because the detector at hand, detect-secrets 1.5.0 (2024), takes 3.4 s of processor time
for a megabyte of source, seven times as long as reading and cutting it; these take 0.02 s. Whatever
a text is made of, the time grows with its length and not faster: what looks at all of it is RE2,
which reads every character once, and what looks closer looks at a bounded piece.

`formats` knows the tokens that providers mark as theirs, `values` what is assigned to names like
`api_key`, `places` where credentials stand without a name (URLs, headers, command lines), `blocks`
keys between marks and Kubernetes' secrets; `looks` knows random values from words. What they
miss is indexed like any text.
"""

import re
from itertools import pairwise

from vector_index_mcp.files.secrets import blocks, formats, places, values
from vector_index_mcp.files.secrets.linear import scannable
from vector_index_mcp.files.secrets.names import is_secret

__all__ = ["VERSION", "is_key", "is_secret", "masked"]

# To be raised when other credentials are found: what was indexed before is read again.
VERSION = "secrets-2"

_STARTS_WITH_KEY = re.compile(r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY( BLOCK)?-----")
_NO_SPACE = re.compile(r"\S")
_MASK = "*"
# What stands between two lines of one key.
_SEAM = re.compile(r"(?:\\{1,4}[nrt]|[\s\"'+,#/*>|]){1,80}")
_MOST_PASSES = 5  # what is masked may lay bare the beginning of something else, but not for ever

_Span = tuple[int, int]


def is_key(text: str) -> bool:
    """Whether `text` is a private key from its beginning on."""
    return bool(_STARTS_WITH_KEY.match(text.lstrip()[:100]))


def masked(text: str) -> tuple[str, int]:
    """`text` with every credential replaced by asterisks, and how many there were.

    Nothing moves: the lines and the length stay as they are.
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
    finders = (formats.find, values.find, places.find, blocks.find)
    return [span for find in finders for span in find(text, data)]


def _merged(spans: list[_Span]) -> list[_Span]:
    """`spans` in order, each one apart from the others."""
    apart: list[_Span] = []
    for start, end in sorted(spans):
        if not apart or start >= apart[-1][1]:
            apart.append((start, end))
        elif end > apart[-1][1]:
            apart[-1] = (apart[-1][0], end)
    return apart


def _gaps(spans: list[_Span]) -> list[_Span]:
    """What lies between one of `spans` and the next."""
    return [(one[1], other[0]) for one, other in pairwise(spans)]


def _without(text: str, spans: list[_Span]) -> str:
    pieces, position = [], 0
    for start, end in spans:
        pieces += [text[position:start], _NO_SPACE.sub(_MASK, text[start:end])]
        position = end
    return "".join([*pieces, text[position:]])
