"""Recognizes formats of git repositories that the notes cannot write. Pure.

Our own GIT_DIR has the oldest format. Objects and references that git writes there would hide the
history of a repository that keeps them in another way. See git's `gitrepository-layout`.
"""

_NEWEST = 1
_VERSION = "core.repositoryformatversion"
_EXTENSIONS = "extensions."
_USUAL = {"objectformat": "sha1", "refstorage": "files"}
"""The values with which these extensions change nothing."""
_ALWAYS_OTHER = frozenset({"compatobjectformat"})
# They concern which objects are fetched or deleted, and where work trees and their settings lie.
_HARMLESS = frozenset(
    "noop noop-v1 partialclone preciousobjects relativeworktrees worktreeconfig".split()
)
_MOST_CHARS = 60


def unknown_format(listed: str) -> str:
    """Return the setting that gives a repository a format that is not known; empty if none does.

    Args:
        listed: The repository's settings, as `git config --list -z` prints them.
    """
    settings = [line.partition("\n")[::2] for line in listed.split("\0") if line]
    versions = [value for key, value in settings if key == _VERSION]
    version = _number(versions[-1]) if versions else 0
    if version > _NEWEST:
        return _shown(_VERSION, versions[-1])
    for key, value in settings:
        name = key.removeprefix(_EXTENSIONS)
        # With version 0, git itself ignores the extensions that it does not know.
        is_known = name in _HARMLESS or (version == 0 and name not in {*_USUAL, *_ALWAYS_OTHER})
        if key != name and not is_known and _USUAL.get(name) != value:
            return _shown(key, value)
    return ""


def _number(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else _NEWEST + 1


def _shown(key: str, value: str) -> str:
    words = f"{key} = {value}"
    return "".join(c if c.isprintable() else "?" for c in words)[:_MOST_CHARS]
