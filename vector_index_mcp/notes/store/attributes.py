"""Asks git which attributes files have, wherever it finds them.

They stand in the `.gitattributes` of the store, in `.git/info/attributes`, and in files of the user
and of the system. git itself is asked only if one of these names such an attribute at all.
"""

import os
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path

from vector_index_mcp.files.plain import opened
from vector_index_mcp.files.repository import path_of_setting, users_attributes
from vector_index_mcp.notes.refusal import Refusal
from vector_index_mcp.notes.store.disk import GIT, WORK, Disk
from vector_index_mcp.notes.store.history import Tree
from vector_index_mcp.notes.store.repository import Repository
from vector_index_mcp.notes.store.settings import is_true
from vector_index_mcp.notes.store.steps import folders_of
from vector_index_mcp.processes import git

UNSPECIFIED = "unspecified"
"""The value of an attribute that a file does not have."""
_ATTRIBUTES, _INFO = ".gitattributes", "info/attributes"
_MACROS = {"text": ("binary",)}
"""The names that git has for several attributes at once, by an attribute that they contain."""
_USERS, _IGNORES_CASE = "core.attributesfile", "core.ignorecase"
_MOST_BYTES = 1_000_000  # of a file of the user that is searched here


def attributes(
    disk: Disk, tree: Tree, names: Sequence[str], paths: Collection[str]
) -> dict[tuple[str, str], str]:
    """Return the values of attributes by path and name, as git would apply them.

    The result is empty if no file has such an attribute, or git cannot find out.

    Raises:
        Refusal: If git is not installed or does not end in time, or if `info/attributes` is no
            plain file.
    """
    repository = tree.repository
    words = [word.encode() for name in names for word in (name, *_MACROS.get(name, ()))]
    if not paths or not _is_any_named(disk, tree, words, paths):
        return {}
    repository.put_own(_INFO, disk.read(f"{GIT}/{_INFO}") or b"")
    given = b"".join(os.fsencode(path) + b"\0" for path in paths)
    own = repository.settings.own
    arguments = [
        *("-C", str(disk.root)),
        *_setting(_USERS, str(_plain_file(disk, own[_USERS])) if _USERS in own else ""),
        *_setting(_IGNORES_CASE, "true" if is_true(own.get(_IGNORES_CASE, "")) else ""),
        *("check-attr", "--stdin", "-z", *names),
    ]
    environment = {**git.environment(), "GIT_WORK_TREE": str(disk.root)}
    result = repository.run(*arguments, given=given, environment=environment, as_user=True)
    if result.status:  # without a damaged index, which knows files that are not checked out
        environment["GIT_INDEX_FILE"] = str(disk.root / WORK / "none")
        result = repository.run(*arguments, given=given, environment=environment, as_user=True)
    if result.status:
        return {}
    fields = [os.fsdecode(each) for each in result.output.split(b"\0")]
    return {
        (path, name): value
        for path, name, value in zip(fields[::3], fields[1::3], fields[2::3], strict=False)
    }


def _setting(name: str, value: str) -> list[str]:
    return ["-c", f"{name}={value}"] if value else []


def _plain_file(disk: Disk, named: str) -> Path:
    """Return the file of attributes that the store's own settings name; never a device or pipe."""
    path = disk.root / path_of_setting(named)
    return path if os.path.isfile(path) else Path(os.devnull)


def _is_any_named(disk: Disk, tree: Tree, words: Sequence[bytes], paths: Iterable[str]) -> bool:
    """Return whether a file that may give the paths attributes has one of the words."""
    folders = {f"{folder}/" for path in paths for folder in folders_of(path)}
    for file in (f"{folder}{_ATTRIBUTES}" for folder in ("", *folders)):
        try:
            data = disk.read(file)
        except Refusal:  # git decides whether it counts
            return True
        if data is None and tree.id_of(file):  # it is not checked out, and counts all the same
            return True
        if data is not None and any(word in data for word in words):
            return True
    texts = (disk.read(f"{GIT}/{_INFO}") or b"", *_elsewhere(disk, tree.repository, words))
    return any(word in text for text in texts for word in words)


def _elsewhere(disk: Disk, repository: Repository, words: Sequence[bytes]) -> Iterator[bytes]:
    """Yield the texts of the files outside of the store that may give its files attributes."""
    own = repository.settings.own.get(_USERS)
    try:
        named = repository.settings.users.get(_USERS, "")
    except Refusal:  # git does nothing else for this user, either, until the settings are mended
        named = ""
    places = users_attributes(named if own is None else str(_plain_file(disk, own)))
    for path in places:
        try:
            with opened(path) as file:
                data = file.read(_MOST_BYTES + 1)
        except (OSError, ValueError):  # git cannot read it, either
            continue
        yield data if len(data) <= _MOST_BYTES else words[0]
