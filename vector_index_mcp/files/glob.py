"""Turns the globs that people and agents write into regular expressions. Pure.

`src/**/*.py`, `*.py`, `tests/`, `lib`, `src/*.{ts,tsx}`: the syntax is that of a .gitignore, with
the braces of a shell. A glob without a slash matches a name at any depth; one that names a folder
matches everything in it. Some paths contain such characters in their names, so the caller decides
which characters are literal.
"""

import posixpath
import re
import unicodedata
from collections.abc import Iterator, Sequence
from urllib.parse import unquote

from vector_index_mcp.errors import QueryError, quoted

_BRACES = re.compile(r"\{([^{}]*)\}")
# Inside [...], Rust reads these as set operations, and Python as characters.
_SET_OPERATION = re.compile(r"\[[^\]]*(\[|&&|--|~~)")
_WILD = re.compile(r"[*?\[{\\]")
_WILDCARDS = frozenset("*?[{")
_ESCAPED = re.compile(r"\\([\[\](){}*?!#, ])")
_CLOSING_ESCAPED = re.compile(r"\\[\])}]")
_CLASS_OF_ONE = re.compile(r"\[([\[\]{}*?])\]")  # how a shell glob writes a literal character
_LINES = re.compile(r"(:\d{1,9}([:-]\d{1,9}){0,2}|#L\d{1,9}(-L?\d{1,9})?)$")
_MOST_ALTERNATIVES = 64
_MOST_WILDCARDS = 100  # a search with 1,000 of them takes seconds
# Placeholders for literal characters while a glob is translated: Unicode's noncharacters.
_STANDS_FOR = {char: chr(0xFDD0 + number) for number, char in enumerate("[]{}*?")}
_TO_REGEX = str.maketrans({other: re.escape(char) for char, other in _STANDS_FOR.items()})


def regex_of(glob: str, literal: str = "") -> str:
    """Return a regular expression for the paths that `glob` matches; Rust and Python can read it.

    Args:
        glob: The glob as the user wrote it.
        literal: Which of `[]{}` are literal characters.

    Raises:
        QueryError: If `glob` cannot match any path.
    """
    # Names are compared exactly, but file names on macOS may be in another normal form.
    forms = dict.fromkeys([glob, *(unicodedata.normalize(form, glob) for form in ("NFC", "NFD"))])
    found = [regex for form in forms for regex in _regexes_of(form, literal)]
    if not found:
        raise QueryError(
            f"path is not a glob that matches files: {quoted(glob)}; "
            'examples: "src/**", "*.py", "tests/", "src/*.{ts,tsx}"'
        )
    return "|".join(f"(?:{regex})" for regex in found).translate(_TO_REGEX)


def _regexes_of(glob: str, literal: str) -> list[str]:
    """Return the regular expressions of all alternatives of `glob`; none if it is invalid."""
    if len(_WILD.findall(glob)) > _MOST_WILDCARDS:
        return []
    stand_in = {ord(char): _STANDS_FOR[char] for char in literal}
    plain = _slashed(glob).strip().removeprefix("./").translate(stand_in)
    alternatives = expanded(_CLASS_OF_ONE.sub(lambda one: _STANDS_FOR[one[1]], plain))
    if len(alternatives) > _MOST_ALTERNATIVES:
        return []
    regexes = [_regex_of_one(alternative) for alternative in alternatives]
    return [] if None in regexes else [regex for regex in regexes if regex]


def keys_meant(path: str, root: str) -> Iterator[str]:
    """Yield the keys that a user may mean by `path` if it is not a glob; empty for the project.

    Args:
        path: The path as the user wrote it: absolute or relative, with `./`, with backslashes as
            on Windows or as a shell needs them before special characters.
        root: The project's folder.
    """
    alike = (path, path.strip(), path.replace("\\", "/"), _unescaped(path), _undecorated(path))
    for written in filter(None, dict.fromkeys(alike)):
        if written == root or written.startswith(f"{root}/"):
            written = f"./{written[len(root) :]}"
        key = posixpath.normpath(written).lstrip("/") or "."
        if key.split("/")[0] != "..":
            yield "" if key == "." else key


def folder_of(glob: str) -> str:
    """Return the folder that contains all matches of `glob`; empty if that is not certain."""
    names = _slashed(glob).strip().removeprefix("./").rstrip("/").split("/")
    if names[0] == "":
        names = names[1:]
    elif len(names) == 1:
        return ""  # a name at any depth
    wild = next((at for at, name in enumerate(names) if _WILD.search(name)), len(names) - 1)
    folder = "/".join(names[:wild])
    return folder if folder.isascii() and {".", "..", ""}.isdisjoint(names[:wild]) else ""


def first_wild(names: Sequence[str]) -> int:
    """Return the position of the first part of a path with a wildcard; their number if none has."""
    return next((at for at, name in enumerate(names) if _WILDCARDS & set(name)), len(names))


def _slashed(glob: str) -> str:
    """Return `glob` with slashes instead of backslashes, except those that escape.

    Backslashes escape if one stands before a closing bracket: no file name begins with one, so that
    backslash cannot be a separator.
    """
    return (_unescaped(glob) if _CLOSING_ESCAPED.search(glob) else glob).replace("\\", "/")


def _undecorated(path: str) -> str:
    """Return `path` without quotes, line numbers and the scheme `file://`, as texts have them."""
    bare = path.strip(" \t\n\"'`")
    if bare.startswith("file://"):
        bare = unquote(bare.removeprefix("file://"))
    return _LINES.sub("", bare)


def _unescaped(glob: str) -> str:
    return _ESCAPED.sub(r"\1", glob)


def _regex_of_one(glob: str) -> str | None:
    """Return the regular expression of a glob without braces; None if it is invalid."""
    if _SET_OPERATION.search(glob) or not {".", ".."}.isdisjoint(glob.split("/")):
        return None
    if glob.startswith(("!", "#")):
        glob = f"\\{glob}"
    # Takes 10 ms, and the processes that prepare files ask for no globs.
    from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern

    regex, _ = GitIgnoreSpecPattern.pattern_to_regex(glob)
    if regex is None:
        return None
    try:
        re.compile(regex)
    except re.error:  # a range like [z-a]
        return None
    return str(regex).replace("(?P<ps_d>/)", "/")


def expanded(glob: str) -> list[str]:
    """Return the alternatives of `glob`: one for each combination of choices in its braces."""
    globs = [glob]
    while len(globs) <= _MOST_ALTERNATIVES and (braces := _BRACES.search(globs[0])):
        before, after = globs[0][: braces.start()], globs[0][braces.end() :]
        globs = globs[1:] + [before + choice + after for choice in braces[1].split(",")]
    return globs
