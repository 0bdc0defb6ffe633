"""Where words begin and end beyond ASCII: scripts, symbols, and what separates them. Pure.

What `runs` finds is coarse and fast; `pieces` and `parts` are exact, for a run in the spelling of
`spelling.unified`. The patterns take 10 ms to compile: that waits until they are needed.
"""

import re
from functools import cache
from typing import NamedTuple

_LONGEST_RUN = 4_096  # one that is longer is met in pieces, none of which keeps others waiting

# Inner parts of character classes.
# What no word and no symbol holds: white space, punctuation, lines and boxes drawn of characters.
_BETWEEN = (
    r"\x00-\x2c./:-@\[-^`{-\xa1\xa8\xab\xaf\xb4\xb6-\xb8\xbb\xbf\u02c2-\u02c5\u02d2-\u02df"
    r"\u0338\u037e\u0387\u0589\u058a\u05be\u05c0\u05c3\u060c\u061b\u061f\u06d4\u0964\u0965"
    r"\u0e4f\u0e5a\u0e5b\u104a-\u104f\u1680\u17d4-\u17da\u2000-\u200a\u2010-\u2029\u202f-\u205f"
    r"\u2500-\u259f\u2800-\u28ff\u2e00-\u2e7f\u3000-\u3004\u3008-\u3020\u3030\u303d\u30a0\u30fb"
    r"\uff01-\uff0c\uff0e\uff0f\uff1a-\uff20\uff3b-\uff40\uff5b-\uff65\ud800-\udfff\ufdd0-\ufdef\ufff9-\uffff"
)
_SYMBOLS = (
    r"\xa2-\xa7\xa9\xac\xae\xb0\xb1\xd7\xf7\u20a0-\u20c0\u2190-\u24ff\u25a0-\u27ff\u2900-\u2bff"
    r"\U0001f000-\U0001f1e5\U0001f200-\U0001faff"
)
_FLAG_LETTERS = r"\U0001f1e6-\U0001f1ff"  # two of them are a flag
_KEYCAP = r"\d\u20e3"
# Scripts written without spaces: Thai, Lao, Burmese, Khmer, Chinese, Japanese, Korean (which has
# them, but not between a word and what is attached to it).
_UNSPACED = (
    r"\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u1100-\u11ff"
    r"\u3005-\u3007\u3041-\u30fa\u30fc-\u312f\u31f0-\u31ff"
    r"\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff"
)
# Of Chinese and Korean, one character may be a word: `锁`, `값`.
_WORDS_ALONE = r"\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\U00020000-\U0003ffff"
# Scripts with capitals: (capitals, other letters).
_CASED = (("A-Z", "a-z\u0180-\u02af"), ("\u0391-\u03a9", "\u03b1-\u03c9"),
          ("\u0400-\u042f", "\u0430-\u045f"))  # fmt: skip


def runs() -> re.Pattern[str]:
    """Matches all that stands between two separators: an identifier, a paragraph, symbols."""
    return _patterns().run


def pieces(run: str) -> list[str]:
    """The identifiers and the symbols of `run`."""
    return _patterns().piece.findall(run)


def parts(identifier: str) -> list[str]:
    """What an identifier is put together of: words, numbers, runs of one script."""
    return _patterns().part.findall(identifier)


def is_unspaced(text: str) -> bool:
    """Whether all of `text` is of scripts that are written without spaces."""
    return _patterns().unspaced.fullmatch(text) is not None


def words_alone(run: str) -> list[str]:
    """The characters of `run`, which is written without spaces, that may be words alone."""
    return _patterns().alone.findall(run)


def words_of(text: str) -> str:
    """A text without what stands between its words and their parts, but for one space each."""
    return _patterns().between.sub(" ", text)


class _Patterns(NamedTuple):
    between: re.Pattern[str]
    run: re.Pattern[str]
    piece: re.Pattern[str]
    part: re.Pattern[str]
    unspaced: re.Pattern[str]
    alone: re.Pattern[str]


@cache
def _patterns() -> _Patterns:
    no_letter = rf"{_BETWEEN}{_SYMBOLS}{_FLAG_LETTERS}_\-"
    letters = f"[^{no_letter}]+"
    flag = f"[{_FLAG_LETTERS}]{{1,2}}"
    symbol = f"{_KEYCAP}|{flag}|[{_SYMBOLS}]"
    cased = "|".join(f"[{u}]+(?=[{u}][{o}])|[{u}]?[{o}]+|[{u}]+" for u, o in _CASED)
    uncased = f"[^{no_letter}0-9{''.join(map(''.join, _CASED))}{_UNSPACED}]+"
    return _Patterns(
        between=re.compile(rf"[{_BETWEEN}_\-]+"),
        run=re.compile(f"[^{_BETWEEN}]{{1,{_LONGEST_RUN}}}"),
        piece=re.compile(f"{symbol}|{letters}(?:[_-]+{letters})*"),
        part=re.compile(rf"{symbol}|{cased}|\d+|[{_UNSPACED}]+|{uncased}"),
        unspaced=re.compile(f"[{_UNSPACED}]+"),
        alone=re.compile(f"[{_WORDS_ALONE}]"),
    )
