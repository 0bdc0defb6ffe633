"""Gives words that look alike to people one spelling. Pure.

Unicode has many ways to write the same word: `é` as one character or two, `ﬁ` as one letter,
letters in full width, invisible marks, letters that other keyboards lack. All code that compares a
user's words with a file's text compares them in the spelling of this module.
"""

import re
import unicodedata
from functools import lru_cache

# Letters that Unicode does not decompose, and the letters that people type instead. From Unicode
# CLDR's transform Latin-ASCII; for Arabic and Persian, from Lucene's normalizers.
_LETTERS = {
    "ß": "ss", "ẞ": "SS", "æ": "ae", "Æ": "Ae", "œ": "oe", "Œ": "Oe", "ø": "o", "Ø": "O",
    "đ": "d", "Đ": "D", "ð": "d", "Ð": "D", "þ": "th", "Þ": "Th", "ħ": "h", "Ħ": "H",
    "ة": "ه", "ى": "ي", "ی": "ي", "ک": "ك",
    "ł": "l", "Ł": "L", "ŧ": "t", "Ŧ": "T", "ŋ": "n", "Ŋ": "N", "ı": "i", "ĸ": "k",
}  # fmt: skip
# Marks that people often leave out: accents, Hebrew points, Arabic vowels, Syriac points. Marks of
# other scripts are not listed: they are vowels or make another letter. Nor is U+0338, which makes
# another symbol, such as `≠`.
_ACCENTS = (
    (0x0300, 0x0337), (0x0339, 0x036F), (0x0483, 0x0489), (0x0591, 0x05C7), (0x0610, 0x061A),
    (0x064B, 0x065F), (0x0670, 0x0670), (0x06D6, 0x06ED), (0x0711, 0x0711), (0x0730, 0x074A),
    (0x1AB0, 0x1AFF), (0x1DC0, 0x1DFF), (0x20D0, 0x20E2), (0x20E4, 0x20FF), (0xFE20, 0xFE2F),
)  # fmt: skip
# Characters that are invisible or only change how their neighbour is drawn, beside the category Cf:
# fillers, variation selectors, the stroke that lengthens an Arabic word, skin tones of emoji.
_UNSEEN = (
    (0x034F, 0x034F), (0x0640, 0x0640), (0x115F, 0x1160), (0x17B4, 0x17B5), (0x180B, 0x180F),
    (0x3164, 0x3164), (0xFE00, 0xFE0F), (0xFFA0, 0xFFA0), (0x1F3FB, 0x1F3FF), (0xE0100, 0xE01EF),
)  # fmt: skip
_MOST_KEPT = 8_192  # more than a project's texts have, fewer than an attacker can write
# Characters that need no change: most characters of texts beyond ASCII.
_PLAIN_ALREADY = (
    r"\u05d0-\u05ea\u0410-\u0418\u041a-\u042f\u0430-\u0438\u043a-\u044f\u2013\u2014\u2018-\u201f"
    r"\u2022\u2190-\u2193\u2500-\u2775\u2800-\u28ff\u3001\u3002\u3041-\u3096\u30a1-\u30fa\u30fc\u3400-\u4dbf"
    r"\u4e00-\u9fff\uac00-\ud7a3\U0001f300-\U0001f3fa\U0001f400-\U0001f64f\U0001f680-\U0001f6ff"
    r"\U0001f900-\U0001faff"
)
# At most 256 of the others at once: CPython's normalization takes quadratic time to sort a long
# run of marks.
_TO_UNIFY = re.compile(rf"[^\x00-\x7f{_PLAIN_ALREADY}]{{1,256}}")
_LOOSE = re.compile(r"[\u0338\u3099\u309a\u11a8-\u11c2]")  # combine with a plain character
_COMPOSABLE = re.compile(r"[<=>A-Za-z]?[^\x00-\x7f]{1,256}")


def unified(text: str) -> str:
    """Return `text` in its one spelling, with its capital letters.

    Compatibility forms become what they stand for, letters lose their accents, digits of every
    script become those of ASCII, and invisible characters are removed.
    """
    if text.isascii():
        return text
    plain = _TO_UNIFY.sub(lambda run: _unified(run[0]), text)
    return composed(plain) if _LOOSE.search(plain) else plain


def folded(text: str) -> str:
    """Return `unified(text)` without capital letters."""
    return text.lower() if text.isascii() else unified(text).casefold()


def composed(text: str) -> str:
    """Return `text` with its accents composed (NFC): file names from macOS are decomposed."""
    if text.isascii():
        return text
    return _COMPOSABLE.sub(lambda run: unicodedata.normalize("NFC", run[0]), text)


@lru_cache(maxsize=_MOST_KEPT)
def _unified(run: str) -> str:
    plain = unicodedata.normalize("NFKC", run).translate(_PLAIN)
    return plain if plain.isascii() else unicodedata.normalize("NFC", plain)


class _Plain(dict[int, str]):
    """The table for `str.translate`; characters are added when they are first met."""

    def __missing__(self, code: int) -> str:
        plain = _plain(chr(code))
        if len(self) < _MOST_KEPT:
            self[code] = plain
        return plain


_PLAIN = _Plain()


def _plain(char: str) -> str:
    if unicodedata.category(char) == "Cf" or _is_in(ord(char), _UNSEEN):
        return ""
    if (digit := unicodedata.decimal(char, None)) is not None:
        return str(digit)
    parts = unicodedata.normalize("NFD", char)
    kept = (part for part in parts if not _is_accent(part))
    return "".join(_LETTERS.get(part, part) for part in kept)


def _is_accent(char: str) -> bool:
    return unicodedata.category(char) in {"Mn", "Me"} and _is_in(ord(char), _ACCENTS)


def _is_in(code: int, ranges: tuple[tuple[int, int], ...]) -> bool:
    return any(first <= code <= last for first, last in ranges)
