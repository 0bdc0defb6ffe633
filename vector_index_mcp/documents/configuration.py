"""Reads the file that lists a user's collections, and that the user may edit.

    global_context: text
    collections:
      NAME:
        path: folder
        pattern: "**/*.md"
        ignore: ["drafts/**"]
        context:
          /prefix: text
        update: command

Other keys are allowed and stay. Any error refuses the whole file, with a message that names the
line: a file that was read only in part would make the index drop documents.
"""

import os
import re
import stat
from collections.abc import Mapping, Set
from dataclasses import dataclass, field
from pathlib import Path

from vector_index_mcp.documents.yaml_text import MOST_CHARS, Node, YamlError, meaning_of, parsed
from vector_index_mcp.errors import SettingsError, UnknownError, quoted, sentence
from vector_index_mcp.files.state import state_of

DEFAULT_PATTERN = "**/*.md"
COLLECTIONS, GLOBAL_CONTEXT, CONTEXT = "collections", "global_context", "context"

_OF_A_COLLECTION = frozenset({"path", "pattern", "ignore", CONTEXT, "update"})
_LONGEST_NAME_CHARS = 200
_LONGEST_PATTERN_CHARS = 1_000
_CONTROLS = re.compile(r"[\x00-\x1f\x7f]")
_BOM = "\ufeff"


@dataclass(frozen=True, slots=True)
class Collection:
    """A folder of documents."""

    name: str
    path: Path
    """The folder's absolute path."""
    pattern: str = DEFAULT_PATTERN
    """A glob that its documents match."""
    contexts: Mapping[str, str] = field(default_factory=dict)
    """Descriptions of its contents, by the path below the folder; as in the file, in its order."""
    update: str | None = None
    """A command that brings the folder up to date; it is kept, and never run."""
    ignore: tuple[str, ...] = ()
    """Globs of files that do not belong to the collection."""


@dataclass(frozen=True, slots=True)
class Configuration:
    """The contents of the file."""

    collections: tuple[Collection, ...] = ()
    """The collections in the order of the file; no two have the same name."""
    global_context: str = ""
    """The context of all documents; empty if there is none."""

    def has(self, name: str) -> bool:
        """Whether there is a collection with this name."""
        return any(collection.name == name for collection in self.collections)

    def named(self, name: str) -> Collection:
        """Return the collection with this name.

        Raises:
            UnknownError: If there is no such collection.
        """
        for collection in self.collections:
            if collection.name == name:
                return collection
        raise UnknownError(
            f"Collection not found: {name}\nRun 'qmd collection list' to see available collections."
        )


def check(collection: Collection) -> None:
    """Check that a collection can be written to the file and indexed.

    Raises:
        SettingsError: If it cannot; says why.
    """
    patterns = (collection.pattern, *collection.ignore)
    problems = [_problem_of_name(collection.name), *map(_problem_of_pattern, patterns)]
    path = str(collection.path)
    if not collection.path.is_absolute() or _CONTROLS.search(path):
        problems.append(f"{quoted(path)} is not the path of a folder; give an absolute path")
    if problem := next(filter(None, problems), ""):
        raise SettingsError(problem)


def read(path: Path) -> Configuration:
    """Read the file at `path`; an empty configuration if there is no file.

    Raises:
        SettingsError: If the file cannot be read or is not valid; names the file and the line.
    """
    return understood(path, text_of(path))


def stamp_of(path: Path) -> tuple[int, ...]:
    """Return what differs between any two states of the file at `path`; empty if there is none."""
    try:
        status = os.stat(path)  # noqa: PTH116 - follows links, as reading the file does
    except OSError:
        return ()
    return state_of(status)


def text_of(path: Path) -> str:
    """Return the text of the file at `path`; an empty text if there is no file.

    Raises:
        SettingsError: If the file cannot be read.
    """
    try:
        data = _bytes_of(path)
    except FileNotFoundError:
        return ""
    except OSError as error:
        raise SettingsError(sentence(error)) from error
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise SettingsError(
            f"{path}, line {line}: the text is not UTF-8; save the file in that encoding"
        ) from error


def _bytes_of(path: Path) -> bytes:
    # O_NONBLOCK: opening a pipe would otherwise wait for a writer.
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise SettingsError(f"{path} is not a file; move it away")
    with open(descriptor, "rb") as file:  # noqa: PTH123 - from a descriptor
        data = file.read(MOST_CHARS + 1)
    if len(data) > MOST_CHARS:
        raise SettingsError(f"{path} has more than {MOST_CHARS} bytes; make it shorter")
    return data


def understood(path: Path, text: str) -> Configuration:
    """Return the configuration in `text`, which is the text of the file at `path`.

    Raises:
        SettingsError: If the text is not valid; names the file and the line.
    """
    try:
        return _configuration(parsed(text.removeprefix(_BOM)), path.parent)
    except YamlError as error:
        where = f"{path}, line {error.line}" if error.line else str(path)
        raise SettingsError(f"{where}: {error}") from error


def not_read(text: str) -> dict[str, dict[str, object]]:
    """Return the values of keys that mean nothing to us: of each collection, and of the file ("").

    Raises:
        YamlError: If the text is not YAML.
    """
    root = parsed(text.removeprefix(_BOM))
    entries = {} if root is None else _mapping(root, "the file")
    collections = _mapping(entries[COLLECTIONS], COLLECTIONS) if COLLECTIONS in entries else {}
    return {"": _others(entries, {COLLECTIONS, GLOBAL_CONTEXT})} | {
        name: _others(_mapping(node, name), _OF_A_COLLECTION) for name, node in collections.items()
    }


def _others(entries: Mapping[str, Node], known: Set[str]) -> dict[str, object]:
    return {key: meaning_of(node) for key, node in entries.items() if key not in known}


def _configuration(root: Node | None, folder: Path) -> Configuration:
    if root is None:
        return Configuration()
    entries = _mapping(root, "the file")
    collections = _mapping(entries[COLLECTIONS], COLLECTIONS) if COLLECTIONS in entries else {}
    found = [_collection(name, node, folder) for name, node in collections.items()]
    return Configuration(tuple(found), _text(entries, GLOBAL_CONTEXT) or "")


def _collection(name: str, node: Node, folder: Path) -> Collection:
    if problem := _problem_of_name(name):
        raise YamlError(problem, node.line)
    what = f"collection {name}"
    entries = _mapping(node, what)
    pattern = _text(entries, "pattern") or DEFAULT_PATTERN
    if problem := _problem_of_pattern(pattern):
        raise YamlError(f"{what}: {problem}", entries["pattern"].line)
    contexts = _mapping(entries[CONTEXT], f"{CONTEXT} of {what}") if CONTEXT in entries else {}
    return Collection(
        name=name,
        path=_path(entries, folder, what, node.line),
        pattern=pattern,
        contexts={prefix: _text(contexts, prefix) or "" for prefix in contexts},
        update=_text(entries, "update"),
        ignore=_texts(entries, "ignore"),
    )


def _mapping(node: Node, what: str) -> dict[str, Node]:
    if node.is_null:
        return {}
    if node.entries is None:
        raise YamlError(f"{what} is not a mapping; write `key: value` lines", node.line)
    return {key: value for key, (_, value) in node.entries.items()}


def _text(entries: Mapping[str, Node], key: str) -> str | None:
    node = entries.get(key)
    if node is None or node.is_null:
        return None
    if node.text is None:
        raise YamlError(f"the value of {quoted(key)} is not a text; write a text", node.line)
    return node.text


def _texts(entries: Mapping[str, Node], key: str) -> tuple[str, ...]:
    node = entries.get(key)
    if node is None or node.is_null:
        return ()
    nodes = [node] if node.text is not None else node.items
    if node.entries is not None or any(item.text is None for item in nodes):
        raise YamlError(f"the value of {quoted(key)} is not a list of texts; write one", node.line)
    return tuple(item.text for item in nodes if item.text)


def _path(entries: Mapping[str, Node], folder: Path, what: str, line: int) -> Path:
    """Return the folder of a collection; a relative path starts at the file's folder."""
    text = _text(entries, "path")
    if not text:
        raise YamlError(f"{what} has no path; add `path: folder`", line)
    if _CONTROLS.search(text):
        raise YamlError(f"{what}: its path has control characters; correct it", line)
    try:
        path = Path(text).expanduser() if text.startswith("~") else Path(text)
        return Path(os.path.normpath(folder / path))
    except RuntimeError as error:
        raise YamlError(
            f"{what}: the home folder in {text} does not exist; write the path in full", line
        ) from error


def _problem_of_name(name: str) -> str:
    """Return what is wrong with the name of a collection; empty if nothing is."""
    is_usable = (
        name not in {"", ".", ".."}
        and "/" not in name
        and name.isprintable()
        and name == name.strip()
        and len(name) <= _LONGEST_NAME_CHARS
    )
    return (
        ""
        if is_usable
        else (f"{quoted(name)} cannot be the name of a collection; use letters, digits and hyphens")
    )


def _problem_of_pattern(pattern: str) -> str:
    if 0 < len(pattern) <= _LONGEST_PATTERN_CHARS and not _CONTROLS.search(pattern):
        return ""
    return f"{quoted(pattern)} is not a pattern of files; write one like {DEFAULT_PATTERN!r}"
