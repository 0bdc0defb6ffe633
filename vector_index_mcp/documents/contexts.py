"""What somebody has said about documents: which contexts belong to one, and what lacks any. Pure.

A context is about all documents, or about those of a collection below a path in it. Paths are
compared by whole segments: what is said of `meetings` is not said of `meetings2`.
"""

import os
import posixpath
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from vector_index_mcp.documents.configuration import Collection, Configuration
from vector_index_mcp.documents.places import Places
from vector_index_mcp.documents.uris import SCHEME, key_of
from vector_index_mcp.engine.spelling import composed
from vector_index_mcp.errors import SettingsError

ALL, TOP = "*", "/"
"""How lists show what is about all documents, and what is about a whole collection."""

_QUOTES = " \t\n\"'`"


@dataclass(frozen=True, slots=True)
class Context:
    """A text about documents, as lists show it."""

    collection: str
    path: str
    """The path in the collection that it is about."""
    text: str


@dataclass(frozen=True, slots=True)
class Lacking:
    """What nothing is said about."""

    collections: tuple[tuple[str, int], ...]
    """Collections of which nothing is said, and how many documents they have."""
    folders: tuple[tuple[str, tuple[str, ...]], ...]
    """For each of the others, its top folders of which nothing is said; none without any."""


@dataclass(frozen=True, slots=True)
class Target:
    """What a context is about."""

    collection: str
    """Empty for all documents."""
    prefix: str = ""
    """A path in the collection; empty for all of it."""


def normalized(prefix: str) -> str:
    """A path in a collection in its one spelling: without a slash at its ends, empty for all."""
    return composed(posixpath.normpath(f"/{prefix}").strip("/"))


def context_of(configuration: Configuration, key: str) -> str:
    """All that is said of the document `key`, the most general first; empty if nothing is."""
    texts = [configuration.global_context]
    name, _, path = key.partition("/")
    for collection in configuration.collections:
        if collection.name == name:
            texts += _contexts_of(collection, composed(path))
    return "\n\n".join(filter(None, texts))


def _contexts_of(collection: Collection, path: str) -> Iterable[str]:
    about = [(normalized(prefix), text) for prefix, text in collection.contexts.items()]
    matching = [(prefix, text) for prefix, text in about if _is_below(path, prefix)]
    return [text for _, text in sorted(matching, key=lambda found: len(found[0]))]


def _is_below(path: str, prefix: str) -> bool:
    return not prefix or path == prefix or path.startswith(f"{prefix}/")


def listed(configuration: Configuration) -> list[Context]:
    """All contexts: those of all documents first, then by collections, as the file has them."""
    found = (
        [Context(ALL, TOP, configuration.global_context)] if configuration.global_context else []
    )
    for collection in configuration.collections:
        for prefix, text in collection.contexts.items():
            found.append(Context(collection.name, normalized(prefix) or TOP, text))
    return found


def lacking(configuration: Configuration, keys: Iterable[str]) -> Lacking:
    """What nothing is said about, of the documents `keys`; what is said of all does not count."""
    counts: Counter[str] = Counter()
    tops: dict[str, set[str]] = {}
    for key in keys:
        name, _, path = key.partition("/")
        top, slash, _ = path.partition("/")
        counts[name] += 1
        if slash:
            tops.setdefault(name, set()).add(top)
    silent, folders = [], []
    for collection in configuration.collections:
        prefixes = [normalized(prefix) for prefix, text in collection.contexts.items() if text]
        if not prefixes:
            silent.append((collection.name, counts[collection.name]))
        elif lonely := _unsaid(tops.get(collection.name, set()), prefixes):
            folders.append((collection.name, lonely))
    return Lacking(tuple(silent), tuple(folders))


def _unsaid(tops: Iterable[str], prefixes: Sequence[str]) -> tuple[str, ...]:
    """Which folders nothing is said about, not even about something in them."""
    known = {prefix.partition("/")[0] for prefix in prefixes}
    return () if "" in known else tuple(sorted(top for top in tops if composed(top) not in known))


def target_of(written: str, configuration: Configuration, here: Path | None = None) -> Target:
    """What somebody means who says something of `written`.

    Args:
        written: `/` for all documents, `qmd://collection/path`, the path of a folder or file, or
            `/path` in the collection that `here` is in.
        configuration: Which collections there are.
        here: Where relative paths start; None if nobody knows.

    Raises:
        SettingsError: If it is in no collection.
    """
    text = written.strip(_QUOTES)
    if text == "/":
        return Target("")
    if text.startswith(SCHEME):
        key = key_of(text).strip("/")
        configuration.named(key.partition("/")[0])
    else:
        key = _key_at(text, configuration, here)
    name, _, path = key.partition("/")
    if not text or not key or ".." in path.split("/"):
        raise SettingsError(
            f"{written[:300]} is in no collection; name a folder of one, or qmd://collection/path "
            "('qmd collection list' shows the collections)"
        )
    return Target(name, normalized(path))


def path_of(context: Context, configuration: Configuration) -> str:
    """How somebody names what a context is about who is in no folder; `target_of` understands it.

    Args:
        context: As `listed` has it.
        configuration: The one it was listed from.
    """
    if context.collection == ALL:
        return "/"
    prefix = normalized(context.path)
    path = str(configuration.named(context.collection).path / prefix)
    try:
        if target_of(path, configuration) == Target(context.collection, prefix):
            return path
    except SettingsError:
        pass
    # Another collection is in its folder, or has the same.
    return f"{SCHEME}{context.collection}/{prefix}".rstrip("/")


def _key_at(text: str, configuration: Configuration, here: Path | None) -> str:
    """The key that a path leads to; empty if it leads to no collection."""
    names: Mapping[str, Path] = {each.name: each.path for each in configuration.collections}
    places = Places(names, here)
    if found := places.key_at(text):
        return found
    if here is not None and text.startswith("/"):
        current = places.key_at(os.curdir).partition("/")[0]
        if current:
            return f"{current}{text}"
    bare = text.lstrip("/")
    return bare if bare.partition("/")[0] in names else ""
