"""The lines of an ignore file, read exactly as git reads them. Pure.

Own code, because the library at hand, pathspec 1.1, differs from git in some ten ways (a class that
matches a slash, a range that runs backwards, white space at the end, …; compared with `git
ls-files` over generated trees), asks every pattern about every path, and can be kept busy for
minutes by a line like `*a*a*a*a*ab`. The rules are those of gitignore(5) and, where that is silent,
git's behaviour.

Paths and patterns are compared byte by byte, as git does: as strings with one character for each
byte of their UTF-8.
"""

import re
from collections.abc import Set
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain

_SPECIAL = re.compile(r"[\\*?\[]")
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
# What a pattern is made of, besides regular expressions for single characters.
_STAR, _FOLDERS, _REST = object(), object(), object()
_Token = str | object


@dataclass(frozen=True, slots=True)
class _Rule:
    pattern: str
    """As written, but for the marks at its ends."""
    ignores: bool
    folders_only: bool
    on_name: bool
    """Whether it is about an entry's name; otherwise about its whole path."""
    regex: re.Pattern[str]


class Patterns:
    """The rules in the text of one ignore file. The last one that matches decides."""

    def __init__(self, text: str) -> None:
        lines = _bytewise(text).split("\n")
        self._rules = [rule for line in lines if (rule := _rule(line)) is not None]
        # Nine of ten rules are a name or an ending: looked up, not tried one by one.
        self._by_name: dict[str, list[int]] = {}
        self._by_ending: dict[str, list[int]] = {}
        self._others: list[int] = []
        for index, rule in enumerate(self._rules):
            self._shelf_of(rule).append(index)

    def __bool__(self) -> bool:
        return bool(self._rules)

    def verdict(self, path: str, is_folder: bool) -> bool | None:
        """Whether the entry at `path` is ignored; None if no rule is about it."""
        path = _bytewise(path)
        name = path.rpartition("/")[2]
        decisive = -1
        for index in chain(
            self._by_name.get(name, ()),
            self._by_ending.get(name.rpartition(".")[2], ()),
            self._others,
        ):
            if index > decisive:
                rule = self._rules[index]
                if (is_folder or not rule.folders_only) and rule.regex.fullmatch(
                    name if rule.on_name else path
                ):
                    decisive = index
        return None if decisive < 0 else self._rules[decisive].ignores

    def _shelf_of(self, rule: _Rule) -> list[int]:
        pattern, ending = rule.pattern, rule.pattern[1:]
        if rule.on_name and not _SPECIAL.search(pattern):
            return self._by_name.setdefault(pattern, [])
        is_ending = pattern.startswith("*") and "." in ending and not _SPECIAL.search(ending)
        if rule.on_name and is_ending:
            return self._by_ending.setdefault(ending.rpartition(".")[2], [])
        return self._others


@lru_cache(maxsize=4096)
def patterns_of(text: str) -> Patterns:
    """The rules in `text`, which many folders may share."""
    return Patterns(text)


def _bytewise(text: str) -> str:
    return text if text.isascii() else text.encode("utf-8", "surrogateescape").decode("latin-1")


def _rule(line: str) -> _Rule | None:
    """The rule in a line of an ignore file, if there is one."""
    line = _without_spaces_at_the_end(line.partition("\0")[0].removesuffix("\r"))
    if not line or line.startswith("#"):
        return None
    pattern = line.removeprefix("!")
    ignores = pattern == line
    folders_only = pattern.endswith("/")
    pattern = pattern[:-1] if folders_only else pattern
    on_name = "/" not in pattern
    tokens = _tokens(pattern.removeprefix("/"))
    if not pattern or tokens is None:
        return None
    return _Rule(pattern, ignores, folders_only, on_name, re.compile(_regex(tokens), re.DOTALL))


def _without_spaces_at_the_end(line: str) -> str:
    """`line` up to its last character that is no space, or is one behind a backslash."""
    end = position = 0
    while position < len(line):
        size = 2 if line[position] == "\\" else 1
        if position + size > len(line):  # a backslash at the very end: to git, nothing is trimmed
            return line
        position += size
        if size == 2 or line[position - 1] != " ":
            end = position
    return line[:end]


def _tokens(pattern: str) -> list[_Token] | None:
    """What `pattern` is made of; None if nothing can match it."""
    special = _SPECIAL.search(pattern)
    first = special.start() if special else len(pattern)
    tokens: list[_Token] = []
    position = 0
    while position < len(pattern):
        char = pattern[position]
        if char == "*":
            # git takes off what stands before the first special character before it looks.
            is_at_start = position == first or pattern[position - 1] == "/"
            found, position = _stars(pattern, position, is_at_start)
            tokens += found
        elif char == "[":
            members, position = _class(pattern, position + 1)
            if members is None:
                return None
            tokens.append(_one_of(members))
        elif char == "\\":
            if position + 1 == len(pattern):
                return None
            tokens.append(re.escape(pattern[position + 1]))
            position += 2
        else:
            tokens.append("[^/]" if char == "?" else re.escape(char))
            position += 1
    return tokens


def _stars(pattern: str, start: int, is_at_start: bool) -> tuple[list[_Token], int]:
    """What the stars from `start` on mean, and where the rest of `pattern` begins."""
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


def _class(pattern: str, position: int) -> tuple[Set[int] | None, int]:
    """The characters that the brackets from `position` on stand for, and where they end.

    None if they never end or name a class that does not exist: then nothing matches.
    """
    is_negated = pattern[position : position + 1] in {"!", "^"}
    position += is_negated
    members: set[int] = set()
    before, is_first = "", True  # the character a range may begin with
    while is_first or not pattern.startswith("]", position):
        is_first = False
        named = re.compile(r"\[:([^\]]*):\]").match(pattern, position)
        if named:
            if named[1] not in _POSIX_CLASSES:
                return None, position
            members |= _POSIX_CLASSES[named[1]]
            before, position = "", named.end()
            continue
        is_range = bool(before) and re.match(r"-[^\]]", pattern[position:]) is not None
        char, position = _character(pattern, position + is_range)
        if not char:
            return None, position
        members |= set(range(ord(before if is_range else char), ord(char) + 1))
        before = "" if is_range else char
    return (_BYTES - members if is_negated else members) - {ord("/")}, position + 1


def _character(pattern: str, position: int) -> tuple[str, int]:
    """The character at `position`, behind a backslash or not, and where the next one stands."""
    if pattern.startswith("\\", position):
        position += 1
    return pattern[position : position + 1], position + 1


def _one_of(members: Set[int]) -> str:
    codes = "".join(f"\\x{code:02x}" for code in sorted(members))
    return f"[{codes}]" if members else "(?!)"


def _regex(tokens: list[_Token]) -> str:
    """Tokens as a regular expression that never tries in vain what it has tried before.

    What stands before another wildcard of the same reach matches where it first can, for good
    (atomic groups): the later wildcard reaches whatever an earlier one could have.
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
    """What stands between two `**/`."""
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
