"""Turns a glob of an ignore file into a regular expression, exactly as git's `wildmatch`. Pure.

Patterns and paths are strings with one character for each byte. Where git ignores the case of
letters (`core.ignorecase`), that means ASCII letters, and the path is in lower case. As in git, a
capital letter matches nothing then after a backslash or alone in a class.
"""

import re
from collections.abc import Set
from functools import lru_cache

SPECIAL = re.compile(r"[\\*?\[]")
_BYTES = frozenset(range(256))
_POSIX_CLASSES = {
    name: {code for code in range(128) if re.fullmatch(members, chr(code))}
    for name, members in {
        "alnum": "[0-9A-Za-z]",
        "alpha": "[A-Za-z]",
        "blank": "[ \\t]",
        "cntrl": "[\\x00-\\x1f\\x7f]",
        "digit": "[0-9]",
        "graph": "[!-~]",
        "lower": "[a-z]",
        "print": "[ -~]",
        "punct": "[!-/:-@\\[-`{-~]",
        "space": "[ \\t-\\r]",
        "upper": "[A-Z]",
        "xdigit": "[0-9A-Fa-f]",
    }.items()
}
_CAPITALS = frozenset(range(ord("A"), ord("Z") + 1))
_TO_LOWER = ord("a") - ord("A")
_RANGE = re.compile(r"-[^\]]")
# File names and paths are never this long. A pattern that needs a longer one matches nothing, so no
# regular expression of a megabyte is compiled for it.
_LONGEST_NAME, _LONGEST_PATH = 1_024, 65_536
_NEVER = re.compile(r"(?!)")
# The parts of a pattern, besides regular expressions for single characters.
_STAR, _FOLDERS, _REST = object(), object(), object()
_Token = str | object


def compiled(pattern: str, *, is_name: bool, folds_case: bool = False) -> re.Pattern[str]:
    """Return a regular expression for the names (`is_name`) or paths that `pattern` matches."""
    tokens = _tokens(pattern, _LONGEST_NAME if is_name else _LONGEST_PATH, folds_case)
    return _NEVER if tokens is None else re.compile(_regex(tokens), re.DOTALL)


def _tokens(pattern: str, longest: int, folds_case: bool) -> list[_Token] | None:
    """Return the parts of `pattern`; None if nothing of up to `longest` characters matches it."""
    special = SPECIAL.search(pattern)
    first = special.start() if special else len(pattern)
    tokens: list[_Token] = []
    position = 0
    while position < len(pattern):
        if len(tokens) > 2 * longest + 2:  # at most one wildcard stands before each character
            return None
        char = pattern[position]
        if char == "*":
            # git compares the plain text before the first special character separately, so that
            # character counts as the start.
            is_at_start = position == first or pattern[position - 1] == "/"
            found, position = _stars(pattern, position, is_at_start)
            tokens += found if tokens[-1:] != found else ()
        elif char == "[":
            members, position = _class(pattern, position + 1, folds_case)
            if members is None:
                return None
            tokens.append(_one_of(frozenset(members)))
        elif char == "\\":
            if position + 1 == len(pattern):
                return None
            tokens.append(re.escape(pattern[position + 1]))
            position += 2
        else:
            char = char.lower() if folds_case and char.isascii() else char
            tokens.append("[^/]" if char == "?" else re.escape(char))
            position += 1
    return tokens


def _stars(pattern: str, start: int, is_at_start: bool) -> tuple[list[_Token], int]:
    """Return the meaning of the stars at `start`, and where the rest of `pattern` begins."""
    end = start
    while pattern[end : end + 1] == "*":
        end += 1
    if end - start > 1 and is_at_start:
        if end == len(pattern):
            return [_REST], end
        if pattern.startswith("/", end):
            return [_FOLDERS], end + 1
        if pattern.startswith("\\/", end):  # at least one folder
            return [_STAR, "/", _FOLDERS], end + 2
    return [_STAR], end


def _class(pattern: str, position: int, folds_case: bool) -> tuple[Set[int] | None, int]:
    """Return the characters of the class whose `[` is before `position`, and the end of the class.

    The characters are None if the class never ends or has an unknown name: then nothing matches.
    """
    is_negated = pattern[position : position + 1] in {"!", "^"}
    position += is_negated
    members: set[int] = set()
    before, closing = "", -1  # the character a range may begin with
    first = position
    while position == first or not pattern.startswith("]", position):
        closing = pattern.find("]", position) if closing < position else closing
        if closing < 0:
            return None, position
        if _is_named(pattern, position, closing):
            named = _POSIX_CLASSES.get(pattern[position + 2 : closing - 1])
            if named is None:
                return None, position
            members |= _folded(named) if folds_case else named
            before, position = "", closing + 1
            continue
        is_range = bool(before) and _RANGE.match(pattern, position) is not None
        char, position = _character(pattern, position + is_range)
        if not char:
            return None, position
        added = set(range(ord(before if is_range else char), ord(char) + 1))
        members |= _folded(added) if folds_case and is_range else added
        before = "" if is_range else char
    return (_BYTES - members if is_negated else members) - {ord("/")}, position + 1


def _folded(members: Set[int]) -> Set[int]:
    """Return `members` with the lower case of each ASCII capital."""
    return members | {code + _TO_LOWER for code in members & _CAPITALS}


def _is_named(pattern: str, position: int, closing: int) -> bool:
    """Return whether a class like `[:alpha:]` begins at `position` and ends at `closing`."""
    ends = pattern[position : position + 2], pattern[closing - 1]
    return ends == ("[:", ":") and closing > position + 2


def _character(pattern: str, position: int) -> tuple[str, int]:
    """Return the character at `position`, escaped or not, and the position of the next one."""
    if pattern.startswith("\\", position):
        position += 1
    return pattern[position : position + 1], position + 1


@lru_cache(maxsize=1024)
def _one_of(members: frozenset[int]) -> str:
    """Return a regular expression for one of these characters, as ranges."""
    ranges: list[tuple[int, int]] = []
    for code in sorted(members):
        if ranges and ranges[-1][1] == code - 1:
            ranges[-1] = (ranges[-1][0], code)
        else:
            ranges.append((code, code))
    codes = "".join(f"\\x{first:02x}-\\x{last:02x}" for first, last in ranges)
    return f"[{codes}]" if members else "(?!)"


def _regex(tokens: list[_Token]) -> str:
    """Return a regular expression for the tokens that never repeats a failed attempt.

    A part before another wildcard of the same kind is an atomic group: it matches at its first
    possible place and is never tried elsewhere. That loses no match, because the later wildcard can
    skip everything that the earlier one could.
    """
    parts: list[list[_Token]] = [[]]
    for token in tokens:
        if token is _FOLDERS:
            parts.append([])
        else:
            parts[-1].append(token)
    first, *others = [_segments(part) for part in parts]
    if not others:
        return first
    between = "".join(f"(?>(?:[^/]*/)*?{part})" for part in others[:-1] if part)
    return f"{first}{between}(?:[^/]*/)*{others[-1]}"


def _segments(tokens: list[_Token]) -> str:
    """Return the regular expression of the tokens between two `**/`."""
    pieces = [""]
    for token in tokens:
        if token is _STAR:
            pieces.append("")
        else:
            pieces[-1] += ".*" if token is _REST else str(token)
    first, *others = pieces
    if not others:
        return first
    return f"{first}{''.join(f'(?>[^/]*?{piece})' for piece in others[:-1])}[^/]*{others[-1]}"
