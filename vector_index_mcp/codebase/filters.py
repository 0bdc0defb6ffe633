"""Turns the path of a search into filters, and explains why filters match no file.

A path that exists means that file or folder, even with special characters: `pages/[id].tsx` is a
file. Only if nothing has this name is the path read as a glob. Some of its special characters may
still be meant literally; the first reading that matches a file is taken.
"""

import difflib
import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import anyio.to_thread

from vector_index_mcp.engine.store import Store
from vector_index_mcp.engine.text.spelling import composed
from vector_index_mcp.engine.types import NO_FILTERS, Filters
from vector_index_mcp.errors import QueryError, quoted
from vector_index_mcp.files import beneath
from vector_index_mcp.files.folder import Folder
from vector_index_mcp.files.glob import first_wild, folder_of, keys_meant, regex_of
from vector_index_mcp.files.ignore import Ignore
from vector_index_mcp.foreign import visible
from vector_index_mcp.indexing.ledger import Ledger
from vector_index_mcp.indexing.reasons import INDEXED

# Sets of characters that may be meant literally; frameworks use all of them in names of files.
_READINGS = ("[]{}", "[]", "{}")
_OF_SYSTEMS = frozenset(
    "Applications Library System Users Volumes bin boot dev etc home lib lib64 media mnt nix opt "
    "private proc root run sbin srv sys tmp usr var".split()
)
_IGNORED = "it is ignored, by an ignore file such as .gitignore, a setting, or by default"
_MOST_KEYS, _MOST_NAMES = 20_000, 2_000  # compared to suggest another path; this takes 0.1 s


async def files_of(path: str, root: Path, store: Store, ledger: Ledger) -> Filters:
    """The filters for a path: a file, a folder or a glob; none for an empty path.

    Raises:
        QueryError: If no file or folder has this name, and it is no valid glob or lies elsewhere.
        StoreError: If the index cannot be read.
    """
    if not path.strip():
        return Filters()
    known = await anyio.to_thread.run_sync(ledger.keys)
    existing = await anyio.to_thread.run_sync(_existing, path, root, ledger, known)
    if existing is not None:
        return existing
    if await anyio.to_thread.run_sync(_is_outside, path, root):
        raise QueryError(f"path={quoted(path)} lies outside of the project, {visible(str(root))}")
    path = _below(path, root)
    for literal in _READINGS:
        if all(char in path for char in literal) and _any_has(known, literal[0]):
            read_so = Filters(await anyio.to_thread.run_sync(regex_of, path, literal))
            if await store.contents.holds(read_so):
                return read_so
    regex = await anyio.to_thread.run_sync(regex_of, path)
    return Filters(regex, folder=folder_of(path))


async def why_nothing(
    filters: Filters, path: str, project: Folder, store: Store, ledger: Ledger
) -> str:
    """Why no file matches the filters, as a sentence; empty if some files match."""
    if path.strip() and (link := await anyio.to_thread.run_sync(_link_on, path, project.path)):
        return (
            f"{link!r} is a link, and links are not followed: if its target lies in the project, "
            "search by the target's own path; if not, it is not indexed."
        )
    if filters.file and (why := await _why_not(filters.file, project, ledger)):
        return why
    if await store.contents.holds(filters):
        return ""
    if filters == NO_FILTERS:
        return "No file of this project is indexed (see get_status)."
    any_kind = replace(filters, languages=(), kind="")
    if any_kind != filters and (not path.strip() or await store.contents.holds(any_kind)):
        among = f" that match path={quoted(path)}" if path.strip() else ""
        what = "of the kind" if filters.kind else "in the language"
        if filters.kind and filters.languages:
            what = "of the kind and in the language"
        return f"No indexed files{among} are {what} asked for."
    meant = await anyio.to_thread.run_sync(meant_instead, path, ledger.keys())
    hint = f" Did you mean {quoted(meant)}?" if meant else ""
    if path.strip().startswith("!"):
        hint = ' A path cannot exclude; name what to search, or limit it by kind, as in "code".'
    return f"No indexed file matches path={quoted(path)}.{hint}"


async def _why_not(file: str, project: Folder, ledger: Ledger) -> str:
    """Why nothing of a file can be found, as a sentence; empty if it has chunks."""
    record = ledger.get(file)
    if record is None:
        return await anyio.to_thread.run_sync(_unindexed, file, project)
    if record.state != INDEXED:
        return f"{file!r} is not indexed: {record.reason}."
    return "" if record.chunk_count else f"{file!r} is empty."


def why_unsearched(path: str, project: Folder, ledger: Ledger) -> str:
    """Why a file or folder that exists at `path` is not searched, as a sentence; empty if it is.

    Empty as well if nothing exists there.
    """
    root = project.path
    for key in filter(None, keys_meant(path, str(root))):
        mode = _mode(root, key)
        if mode is None:
            continue
        if not stat.S_ISDIR(mode):
            return "" if ledger.get(key) is not None else _unindexed(key, project)
        known = ledger.keys()
        if any(other.startswith(f"{key}/") for other in known):
            return ""
        is_ignored = Ignore(project).is_ignored(key, True)
        why = _IGNORED if is_ignored else "it has no file to index, or is new"
        return f"No file in {key!r} is indexed: {why}."
    return ""


def _unindexed(key: str, project: Folder) -> str:
    """Why a file that the index does not know is not indexed, as a sentence."""
    mode = _mode(project.path, key)
    if mode is None:
        why = "it does not exist any more"
    elif not stat.S_ISREG(mode):
        why = "it is no regular file"
    else:
        why = _IGNORED if Ignore(project).is_ignored(key, False) else "it is new"
    return f"{key!r} is not indexed: {why}."


def _link_on(path: str, root: Path) -> str:
    """The key of the first link on the way to `path`; empty if there is none."""
    for key in keys_meant(path, str(root)):
        names = key.split("/")
        for depth in range(1, len(names) + 1):
            here = "/".join(names[:depth])
            mode = _mode(root, here)
            if mode is None:
                break
            if stat.S_ISLNK(mode):
                return here
    return ""


def _is_outside(path: str, root: Path) -> bool:
    """Whether a path leads out of the project.

    A path that begins with a slash may mean the project's own folder, but not if the project has
    nothing of this name, and systems have, or the project's path begins so. Whether it exists there
    is not looked at: nobody must learn that here.
    """
    written = path.strip().replace("\\", "/")
    whole = os.path.normpath(root / written)
    with suppress(OSError, ValueError):  # no valid path
        if any(Path(each).is_relative_to(root) for each in (whole, os.path.realpath(whole))):
            return False
        first = written.lstrip("/").partition("/")[0]
        is_of_system = first in _OF_SYSTEMS or first in root.parts[1:2]
        is_elsewhere = is_of_system and not os.path.lexists(root / first)
        return not written.startswith("/") or is_elsewhere
    return False


def _below(glob: str, root: Path) -> str:
    """`glob` relative to the project, if it begins with the project's absolute path."""
    inside = glob.strip().removeprefix(f"{root}/")
    return inside if inside != glob.strip() else glob


def meant_instead(path: str, known: list[str]) -> str:
    """The path that may be meant by one that matches nothing; empty if there is none."""
    written = path.strip().removeprefix("./").replace("\\", "/")
    names = [name for name in written.split("/") if name]
    wild = first_wild(names)
    if names and wild == len(names):
        ends = [key for key in known if key.endswith("/" + "/".join(names))]
        if len(ends) == 1:
            return ends[0]
    nearest = _nearest(names[:wild], known[:_MOST_KEYS])
    if not nearest or nearest == names[:wild]:
        return ""
    return "/".join([*nearest, *names[wild:]])


def _nearest(names: list[str], known: list[str]) -> list[str]:
    """The names of the indexed path that is most like `names`; empty if none is similar."""
    found: list[str] = []
    for depth, name in enumerate(names):
        begin = "".join(f"{each}/" for each in found)
        here = {key.split("/")[depth] for key in known if key.startswith(begin)}
        alike = {each.casefold(): each for each in sorted(here)[:_MOST_NAMES]}
        near = difflib.get_close_matches(name.casefold(), alike, 1)
        if not near:
            return []
        found.append(name if name in here else alike[near[0]])
    return found


def _any_has(keys: list[str], char: str) -> bool:
    return any(char in key for key in keys)


def _existing(path: str, root: Path, ledger: Ledger, known: list[str]) -> Filters | None:
    """The filters for the file or folder at `path`; None if neither disk nor index has one."""
    for key in _keys_meant(path, str(root)):
        if key == "":
            return Filters()
        if ledger.get(key) is not None:
            return Filters(file=key)
        mode = _mode(root, key)
        if mode is not None:
            return Filters(folder=key) if stat.S_ISDIR(mode) else Filters(file=key)
        if (found := _known_as(key, known)) is not None:
            return found
    return None


def _keys_meant(path: str, root: str) -> Iterator[str]:
    yield from keys_meant(path, root)
    if path.startswith("/"):
        with suppress(ValueError):  # no valid path
            # The path may lead through a link, like /tmp on macOS.
            yield from keys_meant(os.path.realpath(path), root)


def _mode(root: Path, key: str) -> int | None:
    try:
        return beneath.status(root, key).st_mode
    except (OSError, ValueError):  # missing, or no valid name
        return None


def _known_as(key: str, known: list[str]) -> Filters | None:
    """The filters for a key that only the index knows; None if it does not.

    It may lie in a folder that is out of reach, or be spelled in another Unicode normal form.
    """
    if "*" in key or "?" in key:  # almost always meant as a glob
        return None
    below = f"{key}/"
    if any(other.startswith(below) for other in known):
        return Filters(folder=key)
    if key.isascii():
        return None
    wanted, depth = composed(key), key.count("/") + 1
    for other in known:
        if not other.isascii() and f"{composed(other)}/".startswith(f"{wanted}/"):
            names = other.split("/")
            is_file = len(names) == depth
            return Filters(file=other) if is_file else Filters(folder="/".join(names[:depth]))
    return None
