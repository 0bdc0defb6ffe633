"""Globs as people and agents write them, as regular expressions. Pure.

`src/**/*.py`, `*.py`, `tests/`, `lib`, `src/*.{ts,tsx}`: as in a .gitignore, with the braces of a
shell. A glob without a slash matches a name at any depth; one that names a folder matches what
lies in it.
"""

import re

from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern

from vector_index_mcp.errors import QueryError

_BRACES = re.compile(r"\{([^{}]*)\}")
# What Rust reads as a set operation inside [...], and Python as characters.
_SET_OPERATION = re.compile(r"\[[^\]]*(\[|&&|--|~~)")
_MOST_ALTERNATIVES = 64


def regex_of(glob: str) -> str:
    """The regular expression of the paths that `glob` matches, in the syntax that Rust shares.

    Raises:
        QueryError: If `glob` matches nothing by its form.
    """
    alternatives = _expanded(glob.strip().replace("\\", "/").removeprefix("./"))
    found = [_regex_of_one(alternative) for alternative in alternatives]
    if None in found or len(found) > _MOST_ALTERNATIVES:
        raise QueryError(
            f"path is not a glob that matches files: {glob!r}; "
            'examples: "src/**", "*.py", "tests/", "src/*.{ts,tsx}"'
        )
    return "|".join(f"(?:{regex})" for regex in found)


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


def _expanded(glob: str) -> list[str]:
    """`glob` once for each way through its braces."""
    globs = [glob]
    while len(globs) <= _MOST_ALTERNATIVES and (braces := _BRACES.search(globs[0])):
        before, after = globs[0][: braces.start()], globs[0][braces.end() :]
        globs = globs[1:] + [before + choice + after for choice in braces[1].split(",")]
    return globs
