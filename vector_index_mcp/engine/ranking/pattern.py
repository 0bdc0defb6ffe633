r"""Recognises a query that is a regular expression, as people type them for grep. Pure.

`def\s+parse_\w+\(`, `self\._client`, `(get|set)_user` and `TODO|FIXME` are; questions, paths and
globs are not.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

_SIGNS = re.compile(
    r"\\[swdSWD][+*?{]"  # `\s+`; `src\server` is a path
    r"|[\w?*+)\]]\\b(?=$|[\s)|])"
    r"|\\[.()\[\]{}+*?|^$]"
    r"|\\[swdSWD](?:$|[|)])"
    r"|(?<![*\s])\.[*+]"  # `*.*` is a glob
    r"|\w \.[*+]\??[\w\\]"  # `raise .*Error`
    r"|^\.[*+]\w"
    r"|\[\^?\w{0,99}(?:[a-z]-[a-z]|[A-Z]-[A-Z]|\d-\d)[\w-]{0,99}\][+*{]"
    r"|\[\^(?!\w{1,99}\])[^\]\s]{1,99}\]"  # `[^1]` is a footnote, or an index of C#
    r"|\[(?:[a-z]-[a-z]|[A-Z]-[A-Z]|\d-\d)+\]"  # `x[0]` and `x[i-1]` are code
    r"|\[(?:[A-Z][a-z]|[a-z][A-Z])\]\w"  # `[Tt]imeout`
    r"|[A-Za-z]\{\d{1,3},\d{0,3}\}(?!\.)"  # `a{1,2}.txt` is a glob
    r"|\(_\w{1,99}\)\?"  # `get(_all)?`; `open(path)?` is Rust
    r"|\([^\s()|]{1,99}(?:\|[^\s()|]{1,99}){1,99}\)"
    r"|\(\?[:=!<iP]"
    r"|^\^[^\W\d]"  # `^1.2.3` is a release
)
_MAY_BE = re.compile(
    r"(?:^|(?<=[\s(|]))\\b\w"  # `\bopen`; `\begin` is a command of LaTeX
    r"|\S\$(?:$|[|)])"  # `Error$`; `user$` is a name in RxJS
    r"|[\w-]\?(?:[\w-]|://)"  # `utf-?8`, `https?://`
    r"|^\w{2,99}s\?$"  # `cookies?`; `valid?` is a name in Ruby, and "auth?" a question
    r"|\s\.[*+]"  # `if not .*:$`
    r"|\[\^?[^\]]{1,99}\][+*]"  # `[a-z.]+`; `x[i]*y` is code
    r"|[.\])]\{\d{1,3}(?:,\d{0,3})?\}"
    r"|^\^[^\s\d]"
)
_DRIVE = re.compile(r"[A-Za-z]:[\\/]")
_ASKS = re.compile(r"(?:does|how|is|what|when|where|which|who|why) ", re.IGNORECASE)
_LONGEST_CHARS = 200  # what is longer is a sample of code or a log
_MOST_WORDS = 8
_NO_TEXT = re.compile(
    r"\\([^A-Za-z\s])"  # `\.`, a character as it is
    r"|\\[A-Za-z](?:\{[\w ]{1,99}\})?"  # `\w`, `\p{Greek}`
    r"|\[\^?\]?(?:\\.|[^\]\\])*\]"
    r"|\(\?(?:P?<\w{1,99}>|[a-zA-Z-]{0,9}[:)]|<?[=!])"
    r"|\{[\d, ]{1,99}\}"
    r"|[.*+?^$|()]"
)


@dataclass(frozen=True, slots=True)
class Pattern:
    """A regular expression that somebody searches for."""

    regex: str
    """The expression as it was typed. It may be invalid, or use what Rust's have not."""
    plain: str
    """The words in it, without its signs; empty if it has none."""
    is_sure: bool = True
    """Whether it can hardly be text. If it can, it is text wherever a file contains it."""
    is_wanted: bool = False
    """Whether it is said to be an expression, so that it is nothing else and case counts."""

    def matching(self, lines: Sequence[str]) -> list[int]:
        """Return the indexes of the lines that match.

        If none does, these are the lines that match in any case, or else that have the expression
        as a text: it may be code. None of that is tried for one that is said to be one.

        RE2 matches: unlike `re`, it takes no longer than the lines are long.
        """
        import pyarrow as pa  # 0.1 s, which only a command that searches for a pattern waits for
        import pyarrow.compute as pc

        texts = pa.array([line.removesuffix("\r") for line in lines], pa.string())
        for ignore_case in (False,) if self.is_wanted else (False, True):
            try:
                found = pc.match_substring_regex(texts, self.regex, ignore_case=ignore_case)
            except pa.ArrowInvalid:  # no expression of RE2's
                break
            if indexes := pc.indices_nonzero(found).to_pylist():
                return [int(index) for index in indexes]
        if self.is_wanted:
            return []
        return [index for index, line in enumerate(lines) if self.regex in line]


def pattern_wanted(text: str) -> Pattern:
    """Return the regular expression that a query is said to be."""
    return Pattern(text, _plain(text), is_wanted=True)


def pattern_of(text: str) -> Pattern | None:
    """Return the regular expression that a query is, or may be; None if it is something else.

    Who reads it as text loses little: `plain` has its words.
    """
    text = text.strip()
    if len(text) > _LONGEST_CHARS or "\n" in text or len(text.split()) > _MOST_WORDS:
        return None
    if _DRIVE.match(text) or _ASKS.match(text):  # a question about an expression is none
        return None
    is_sure = bool(_SIGNS.search(text)) or _has_alternatives(text)
    if not is_sure and not _MAY_BE.search(text):
        return None
    return Pattern(text, _plain(text), is_sure)


def _plain(regex: str) -> str:
    return " ".join(_NO_TEXT.sub(lambda sign: sign[1] or " ", regex).split())


def _has_alternatives(text: str) -> bool:
    """Whether a query is `TODO|FIXME`, `set-cookie|ETag` or `class A|def b`.

    `returns int|None` is none: its alternatives differ in how many words they have.
    """
    each = text.split("|")
    are_texts = len(each) > 1 and all(len(one) > 1 and one == one.strip() for one in each)
    return are_texts and len({len(one.split()) for one in each}) == 1
