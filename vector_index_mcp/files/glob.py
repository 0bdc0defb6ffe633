"""Globs as people and agents write them, as regular expressions. Pure.

`src/**/*.py`, `*.py`, `tests/`, `lib`, `src/*.{ts,tsx}`: as in a .gitignore, with the braces of a
shell. A glob without a slash matches a name at any depth; one that names a folder matches what
lies in it. A path with such characters in its names may be meant as it stands: who asks decides
which characters are taken literally.
"""

import posixpath
import re
import unicodedata
from collections.abc import Iterator
from urllib.parse import unquote

from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern

from vector_index_mcp.errors import QueryError

_BRACES = re.compile(r"\{([^{}]*)\}")
# What Rust reads as a set operation inside [...], and Python as characters.
_SET_OPERATION = re.compile(r"\[[^\]]*(\[|&&|--|~~)")
_WILD = re.compile(r"[*?\[{\\]")
_ESCAPED = re.compile(r"\\([\[\](){}*?!#, ])")
_CLOSING_ESCAPED = re.compile(r"\\[\])}]")
_CLASS_OF_ONE = re.compile(r"\[([\[\]{}*?])\]")  # how a shell is given a literal one
_LINES = re.compile(r"(:\d{1,9}([:-]\d{1,9}){0,2}|#L\d{1,9}(-L?\d{1,9})?)$")
_MOST_ALTERNATIVES = 64
_MOST_WILDCARDS = 100  # of 1,000, a search takes seconds
_MOST_SHOWN_CHARS = 300
# What stands for a literal character while a glob is translated: Unicode's noncharacters.
_STANDS_FOR = {char: chr(0xFDD0 + number) for number, char in enumerate("[]{}*?")}
_TO_REGEX = str.maketrans({other: re.escape(char) for char, other in _STANDS_FOR.items()})


def regex_of(glob: str, literal: str = "") -> str:
    """The regular expression of the paths that `glob` matches, in the syntax that Rust shares.

    Args:
        glob: As somebody wrote it.
        literal: Which of `[]{}` stand for themselves.

    Raises:
        QueryError: If `glob` matches nothing by its form.
    """
    # Names are compared to the letter, and macOS puts letters together in another way.
    forms = dict.fromkeys([glob, *(unicodedata.normalize(form, glob) for form in ("NFC", "NFD"))])
    found = [regex for form in forms for regex in _regexes_of(form, literal)]
    if not found:
        raise QueryError(
            f"path is not a glob that matches files: {shown(glob)}; "
            'examples: "src/**", "*.py", "tests/", "src/*.{ts,tsx}"'
        )
    return "|".join(f"(?:{regex})" for regex in found).translate(_TO_REGEX)


def _regexes_of(glob: str, literal: str) -> list[str]:
    """The regular expressions of all that `glob` stands for; none if it matches nothing."""
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
    """The keys that somebody may mean by `path` if it is no glob; an empty one is the project.

    Args:
        path: As somebody wrote it: absolute or not, with `./`, with backslashes as on Windows or
            as a shell wants them before special characters.
        root: The project's folder.
    """
    alike = (path, path.strip(), path.replace("\\", "/"), _unescaped(path), _as_told(path))
    for written in filter(None, dict.fromkeys(alike)):
        if written == root or written.startswith(f"{root}/"):
            written = f"./{written[len(root) :]}"
        key = posixpath.normpath(written).lstrip("/") or "."
        if key.split("/")[0] != "..":
            yield "" if key == "." else key


def shown(glob: str) -> str:
    """`glob` in a message, or its beginning if it is very long."""
    return repr(glob if len(glob) <= _MOST_SHOWN_CHARS else f"{glob[:_MOST_SHOWN_CHARS]}…")


def folder_of(glob: str) -> str:
    """The folder in which lies all that `glob` matches, as far as it says so; empty if not."""
    names = _slashed(glob).strip().removeprefix("./").rstrip("/").split("/")
    if names[0] == "":
        names = names[1:]
    elif len(names) == 1:
        return ""  # a name at any depth
    wild = next((at for at, name in enumerate(names) if _WILD.search(name)), len(names) - 1)
    folder = "/".join(names[:wild])
    return folder if folder.isascii() and {".", "..", ""}.isdisjoint(names[:wild]) else ""


def _slashed(glob: str) -> str:
    """`glob` with slashes: a backslash is one, too, unless it is there to escape.

    Who escapes closes what was opened, and no name begins with what closes.
    """
    return (_unescaped(glob) if _CLOSING_ESCAPED.search(glob) else glob).replace("\\", "/")


def _as_told(path: str) -> str:
    """`path` without what stands around it in texts and answers: quotes, lines, a scheme."""
    bare = path.strip(" \t\n\"'`")
    if bare.startswith("file://"):
        bare = unquote(bare.removeprefix("file://"))
    return _LINES.sub("", bare)


def _unescaped(glob: str) -> str:
    return _ESCAPED.sub(r"\1", glob)


def _regex_of_one(glob: str) -> str | None:
    """The regular expression of a glob without braces; None if it matches nothing."""
    if _SET_OPERATION.search(glob) or not {".", ".."}.isdisjoint(glob.split("/")):
        return None
    if glob.startswith(("!", "#")):
        glob = f"\\{glob}"
    regex, _ = GitIgnoreSpecPattern.pattern_to_regex(glob)
    if regex is None:
        return None
    try:
        re.compile(regex)
    except re.error:  # a range like [z-a]
        return None
    return str(regex).replace("(?P<ps_d>/)", "/")


def expanded(glob: str) -> list[str]:
    """`glob` once for each way through its braces."""
    globs = [glob]
    while len(globs) <= _MOST_ALTERNATIVES and (braces := _BRACES.search(globs[0])):
        before, after = globs[0][: braces.start()], globs[0][braces.end() :]
        globs = globs[1:] + [before + choice + after for choice in braces[1].split(",")]
    return globs
