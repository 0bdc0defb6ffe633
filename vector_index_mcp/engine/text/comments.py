"""Finds the comments in a chunk of code, by how its lines begin. Pure."""

import re
from collections.abc import Iterator

_BEGIN = re.compile(r"\s*(?:#|//|/\*|\*|--|;|[rb]?\"\"\"|'''|<!--)")
# What begins like a comment and is code: of C's preprocessor, an attribute, a style, a pointer.
_CODE = re.compile(
    r"\s*(?:#(?:(?:define|include|if|ifdef|ifndef|elif|else|endif|undef|pragma|region|import)\b"
    r"|!?\[|[\w-][^\n]*\{)|\*\w)"
)
_QUOTES = ('"""', "'''")


def comments_in(code: str) -> Iterator[str]:
    """Yield the lines of comments and the strings that document something, without blanks around.

    The language is not looked at, so a line that begins with C's `#define` is taken for one, too.
    """
    return (line.strip() for line, is_comment in _lines(code) if is_comment)


def is_all_comments(code: str) -> bool:
    """Whether `code` has no lines but comments and blank ones."""
    if not _BEGIN.match(code):  # most chunks, which need not be split for that
        return False
    return all(
        not line.strip() or (is_comment and not _CODE.match(line))
        for line, is_comment in _lines(code)
    )


def _lines(code: str) -> Iterator[tuple[str, bool]]:
    """Yield each line, and whether it belongs to a comment."""
    inside = False
    for line in code.split("\n"):
        is_comment = inside or _BEGIN.match(line) is not None
        if is_comment:
            inside ^= sum(map(line.count, _QUOTES)) % 2 == 1
        yield line, is_comment
