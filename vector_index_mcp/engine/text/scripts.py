"""Finds the words in text beyond ASCII: by scripts, symbols and separators. Pure.

`runs` is coarse and fast. `pieces` and `parts` are exact; they expect a run in the spelling of
`spelling.unified`. The patterns take 10 ms to compile, so they are compiled at the first use.
"""

import re
from functools import cache
from typing import NamedTuple

_LONGEST_RUN = 4_096  # a longer run is split, so that no match takes long

# The following are inner parts of character classes.
# Separators, part of no word or symbol: white space, punctuation, box-drawing characters.
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
# Scripts written without spaces: Thai, Lao, Burmese, Khmer, Chinese, Japanese; also Korean, which
# has spaces, but none between a word and its particles.
_UNSPACED = (
    r"\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u1100-\u11ff"
    r"\u3005-\u3007\u3041-\u30fa\u30fc-\u312f\u31f0-\u31ff"
    r"\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff"
)
# In Chinese and Korean, one character may be a word: `锁`, `값`.
_WORDS_ALONE = r"\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\U00020000-\U0003ffff"
# Scripts with capital letters: (capital letters, small letters).
_CASED = (("A-Z", "a-z\u0180-\u02af"), ("\u0391-\u03a9", "\u03b1-\u03c9"),
          ("\u0400-\u042f", "\u0430-\u045f"))  # fmt: skip


def runs() -> re.Pattern[str]:
    """Return a pattern for the text between two separators: an identifier, a paragraph, symbols."""
    return _patterns().run


def pieces(run: str) -> list[str]:
    """Return the identifiers and the symbols of `run`."""
    return _patterns().piece.findall(run)


def parts(identifier: str) -> list[str]:
    """Return the parts of an identifier: words, numbers, runs of one script."""
    return _patterns().part.findall(identifier)


def is_unspaced(text: str) -> bool:
    """Return whether all of `text` is in scripts that are written without spaces."""
    return _patterns().unspaced.fullmatch(text) is not None


def words_alone(run: str) -> list[str]:
    """Return the characters of an unspaced `run` that may be words by themselves."""
    return _patterns().alone.findall(run)


def words_of(text: str) -> str:
    """Return a text with each run of separators replaced by one space."""
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
