"""Reads the lines of an ignore file exactly as git does. Pure.

This is our own code, because the library pathspec 1.1 differs from git in some ten ways (a class
that matches a slash, a range that runs backwards, white space at the end, …; found by comparison
with `git ls-files` over generated trees). It also tries every pattern on every path, and a line
like `*a*a*a*a*ab` can keep it busy for minutes. The rules are those of gitignore(5); where that
says nothing, git's behaviour.

Rules about whole names, paths, prefixes and suffixes are looked up in dictionaries. Only real globs
are tried, and if there are many, only those that share three characters with the path. As in git,
paths and patterns are compared byte by byte: as strings with one character for each byte of their
UTF-8; if the case of letters does not count (`core.ignorecase`), that of ASCII letters. The module
`wildmatch` knows what a glob means.
"""

import re
from collections import deque
from threading import Lock
from typing import NamedTuple
from weakref import WeakValueDictionary

from vector_index_mcp.files.wildmatch import SPECIAL, compiled

_FEW_GLOBS = 32  # up to so many are tried one by one
_GRAM_CHARS = 3
# Stars, question marks, and simple classes without brackets or backslashes inside.
_WILDCARDS = re.compile(r"(?:[*?]|\[[!^]?[^\[\\][^\]\[\\]*\])+")
_NOT_A_STAR = re.compile(r"[?\[\\]")
_UNCLEAR = re.compile(r"[\\\[]")
# The total length of the ignore files that are compiled at a time. Compiled, a file takes up to 200
# times its length.
MOST_COMPILED_CHARS = 2_000_000
_LEAST_COUNTED_CHARS = 500


class Patterns:
    """The rules in the text of one ignore file. The last one that matches decides."""

    def __init__(self, text: str, *, folds_case: bool = False) -> None:
        self._text = _bytewise(text)
        self._folds_case = folds_case
        self._table: _Table | None = None
        self._has_rules = bool(self._compiled().ignores)

    def __bool__(self) -> bool:
        return self._has_rules

    def verdict(self, path: str, is_folder: bool) -> bool | None:
        """Return whether the entry at `path` is ignored; None if no rule matches it."""
        table = self._table or self._compiled()
        path = _bytewise(path)
        decisive = table.decisive(_lower(path) if self._folds_case else path, is_folder)
        return None if decisive < 0 else table.ignores[decisive]

    def cost(self) -> int:
        """Return the memory cost of the compiled rules, relative to other files'."""
        return max(len(self._text), _LEAST_COUNTED_CHARS)

    def forget(self) -> None:
        """Free the compiled rules until they are needed again."""
        self._table = None

    def _compiled(self) -> "_Table":
        table = self._table = _Table(self._text, self._folds_case)
        _kept.add(self)
        return table


class _Kept:
    """The ignore files whose rules are compiled; the oldest are freed when they are too many."""

    def __init__(self) -> None:
        self._waiting: deque[Patterns] = deque()
        self._cost = 0
        self._lock = Lock()

    def add(self, patterns: Patterns) -> None:
        """Add `patterns`; free the oldest ones if the total is too large."""
        with self._lock:
            self._waiting.append(patterns)
            self._cost += patterns.cost()
            while self._cost > MOST_COMPILED_CHARS and len(self._waiting) > 1:
                oldest = self._waiting.popleft()
                self._cost -= oldest.cost()
                oldest.forget()


_kept = _Kept()
_shared: WeakValueDictionary[tuple[str, bool], Patterns] = WeakValueDictionary()


def patterns_of(text: str, *, folds_case: bool = False) -> Patterns:
    """Return the rules in `text`; equal texts, which many folders may have, share one object.

    Args:
        text: The text of an ignore file.
        folds_case: Whether `BUILD` in it means `build` as well.
    """
    known = _shared.get((text, folds_case))
    if known is None:
        known = _shared[text, folds_case] = Patterns(text, folds_case=folds_case)
    return known


class _Rule(NamedTuple):
    pattern: str
    """The pattern as it is written, without `!`, a leading and a trailing slash."""
    ignores: bool
    """False for a rule that begins with `!`."""
    folders_only: bool
    on_name: bool
    """Whether it is compared with an entry's name; otherwise with its whole path."""


_Shelf = dict[str, tuple[int, int]]
"""The position of the last rule for each text: for files, and for folders."""
_NO_RULE = (-1, -1)


class _Table:
    """The rules of a text, arranged for lookup. A rule is its position; the last match decides."""

    def __init__(self, text: str, folds_case: bool) -> None:
        self.ignores: list[bool] = []
        self._folds_case = folds_case
        self._names: _Shelf = {}
        self._paths: _Shelf = {}
        self._suffixes: _Shelf = {}  # like `*.min.js`; looked up from each dot of a name
        self._ends: _Shelf = {}
        self._beginnings: _Shelf = {}
        self._globs = _Globs(folds_case)
        for line in text.split("\n"):
            if (rule := _rule(line)) is not None:
                self._add(len(self.ignores), rule)
                self.ignores.append(rule.ignores)
        self._globs.sort()
        self._end_sizes = sorted({len(end) for end in self._ends})
        self._beginning_sizes = sorted({len(beginning) for beginning in self._beginnings})
        self._has_others = bool(self._ends or self._beginnings or self._globs)

    def decisive(self, path: str, is_folder: bool) -> int:
        """Return the last rule that matches the entry at `path`; -1 if none does."""
        name = path[path.rfind("/") + 1 :]
        last = -1
        if (found := self._names.get(name)) is not None:
            last = found[is_folder]
        if (found := self._paths.get(path)) is not None and found[is_folder] > last:
            last = found[is_folder]
        dot = name.rfind(".")
        while dot >= 0:
            if (found := self._suffixes.get(name[dot:])) is not None and found[is_folder] > last:
                last = found[is_folder]
            dot = name.rfind(".", 0, dot)
        if self._has_others:
            last = max(last, self._last_by_size(name, is_folder))
            last = self._globs.last(path, name, is_folder, last)
        return last

    def _last_by_size(self, name: str, is_folder: bool) -> int:
        last = -1
        for size in self._end_sizes:
            if (found := self._ends.get(name[-size:])) is not None and found[is_folder] > last:
                last = found[is_folder]
        for size in self._beginning_sizes:
            if (found := self._beginnings.get(name[:size])) is not None and found[is_folder] > last:
                last = found[is_folder]
        return last

    def _add(self, position: int, rule: _Rule) -> None:
        shelf, key = self._place_of(rule)
        if shelf is None:
            self._globs.add(position, rule)
            return
        key = _lower(key) if self._folds_case else key
        of_others, _ = shelf.get(key, _NO_RULE)
        shelf[key] = (of_others if rule.folders_only else position, position)

    def _place_of(self, rule: _Rule) -> tuple[_Shelf | None, str]:
        """Return the dictionary for the rule and its key there; None if it has to be tried."""
        pattern = rule.pattern
        special = SPECIAL.search(pattern)
        if special is None:
            return (self._names if rule.on_name else self._paths), pattern
        at = special.start()
        if not rule.on_name or pattern[at] != "*" or SPECIAL.search(pattern, at + 1):
            return None, pattern
        if pattern.startswith("*."):
            return self._suffixes, pattern[1:]
        if pattern.startswith("*"):
            return (self._ends if len(pattern) > 1 else None), pattern[1:]
        return (self._beginnings if pattern.endswith("*") else None), pattern[:-1]


class _Globs:
    """The rules that have to be tried, because they cannot be looked up."""

    def __init__(self, folds_case: bool) -> None:
        self._folds_case = folds_case
        self._rules: dict[tuple[str, bool, bool], int] = {}
        self._by_gram: dict[str, list[_Glob]] = {}
        self._others: list[_Glob] = []

    def __bool__(self) -> bool:
        return bool(self._others or self._by_gram)

    def add(self, position: int, rule: _Rule) -> None:
        # Of two equal rules, the last one counts.
        self._rules[rule.pattern, rule.on_name, rule.folders_only] = position

    def sort(self) -> None:
        """Arrange the added rules so that the last one is tried first."""
        are_few = len(self._rules) <= _FEW_GLOBS
        for key, position in sorted(self._rules.items(), key=lambda item: item[1], reverse=True):
            gram = "" if are_few else _needed(key[0])[:_GRAM_CHARS]
            gram = _lower(gram) if self._folds_case else gram
            is_found = len(gram) == _GRAM_CHARS
            shelf = self._by_gram.setdefault(gram, []) if is_found else self._others
            shelf.append(_Glob(position, *key, self._folds_case))
        self._rules.clear()

    def last(self, path: str, name: str, is_folder: bool, decisive: int) -> int:
        """Return the last rule that matches, or `decisive` if that comes later."""
        decisive = _last_of(self._others, path, name, is_folder, decisive)
        if self._by_gram:
            grams = {path[at : at + _GRAM_CHARS] for at in range(len(path) - _GRAM_CHARS + 1)}
            for gram in grams & self._by_gram.keys():
                decisive = _last_of(self._by_gram[gram], path, name, is_folder, decisive)
        return decisive


class _Glob:
    __slots__ = ("_folds_case", "_on_name", "_pattern", "_regex", "folders_only", "position")

    def __init__(
        self, position: int, pattern: str, on_name: bool, folders_only: bool, folds_case: bool
    ) -> None:
        self.position = position
        self._folds_case = folds_case
        self.folders_only = folders_only
        self._pattern = pattern
        self._on_name = on_name
        self._regex: re.Pattern[str] | None = None

    def matches(self, path: str, name: str) -> bool:
        """Return whether it matches the entry at `path`."""
        if self._regex is not None:
            return self._regex.fullmatch(name if self._on_name else path) is not None
        if self._on_name and not _NOT_A_STAR.search(self._pattern):
            pattern = _lower(self._pattern) if self._folds_case else self._pattern
            return _matches_stars(pattern.split("*"), name)
        # It takes 0.1 ms, so it is made only now.
        self._regex = compiled(self._pattern, is_name=self._on_name, folds_case=self._folds_case)
        return self.matches(path, name)


def _matches_stars(pieces: list[str], name: str) -> bool:
    """Return whether `name` consists of `pieces` in this order, with anything in between."""
    first, *others, last = pieces
    position, end = len(first), len(name) - len(last)
    if position > end or not (name.startswith(first) and name.endswith(last)):
        return False
    for piece in others:
        found = name.find(piece, position, end)
        if found < 0:
            return False
        position = found + len(piece)
    return True


def _last_of(globs: list[_Glob], path: str, name: str, is_folder: bool, decisive: int) -> int:
    for glob in globs:
        if glob.position <= decisive:
            break
        if (is_folder or not glob.folders_only) and glob.matches(path, name):
            return glob.position
    return decisive


def _needed(pattern: str) -> str:
    """Return the longest text that every match of `pattern` contains, without slashes at its ends.

    A slash beside a star need not be in a match.
    """
    needed = ""
    for piece in _WILDCARDS.split(pattern):
        plain = _UNCLEAR.split(piece, maxsplit=1)[0]
        needed = max(needed, plain.strip("/"), key=len)
        if plain != piece:
            break
    return needed


def _bytewise(text: str) -> str:
    return text if text.isascii() else text.encode("utf-8", "surrogateescape").decode("latin-1")


def _lower(text: str) -> str:
    """Return a bytewise text with its ASCII letters in lower case."""
    return text.encode("latin-1").lower().decode("latin-1")


def _rule(line: str) -> _Rule | None:
    """Return the rule in a line of an ignore file; None if the line has no rule."""
    line = line.partition("\0")[0].removesuffix("\r")
    line = _without_spaces_at_the_end(line) if line.endswith(" ") else line
    if not line or line.startswith("#"):
        return None
    pattern = line.removeprefix("!")
    ignores = pattern == line
    folders_only = pattern.endswith("/")
    pattern = pattern[:-1] if folders_only else pattern
    if not pattern:
        return None
    return _Rule(pattern.removeprefix("/"), ignores, folders_only, "/" not in pattern)


def _without_spaces_at_the_end(line: str) -> str:
    """Return `line` without trailing spaces; a space after a backslash stays."""
    end = position = 0
    while position < len(line):
        size = 2 if line[position] == "\\" else 1
        if position + size > len(line):  # after a backslash at the very end, git trims nothing
            return line
        position += size
        if size == 2 or line[position - 1] != " ":
            end = position
    return line[:end]
