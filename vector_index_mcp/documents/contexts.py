"""The contexts of documents: finds those of a document, lists all, and finds what has none. Pure.

A context describes all documents, or those of a collection below a path in it. Paths are compared
by whole segments: a context of `meetings` does not apply to `meetings2`.
"""

import os
import posixpath
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from vector_index_mcp.documents.configuration import Collection, Configuration
from vector_index_mcp.documents.places import Places
from vector_index_mcp.documents.uris import SCHEME, key_of, uri_of, without_quotes
from vector_index_mcp.engine.text.spelling import composed
from vector_index_mcp.errors import SettingsError

ALL, TOP = "*", "/"
"""In lists for people: all collections, and the path of a whole one."""


@dataclass(frozen=True, slots=True)
class Context:
    """A context as lists show it."""

    collection: str
    """The name of the collection; empty for all documents: a collection may be called `*`."""
    path: str
    """The path in the collection that the context describes."""
    text: str


@dataclass(frozen=True, slots=True)
class Lacking:
    """What has no context."""

    collections: tuple[tuple[str, int], ...]
    """The collections without any context, with the number of their documents."""
    folders: tuple[tuple[str, tuple[str, ...]], ...]
    """The other collections that have top folders without a context, with these folders."""


@dataclass(frozen=True, slots=True)
class Target:
    """The documents that a context describes."""

    collection: str
    """The name of the collection; empty for all documents."""
    prefix: str = ""
    """A path in the collection; empty for all of it."""


def normalized(prefix: str) -> str:
    """Return a path in a collection in its normal form: without outer slashes; empty for all."""
    return composed(posixpath.normpath(f"/{prefix}").strip("/"))


def context_of(configuration: Configuration, key: str) -> str:
    """Return all contexts of the document `key`, the most general first; empty if it has none."""
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
    """Return all contexts: that of all documents first, then by collection, as in the file."""
    found = [Context("", TOP, configuration.global_context)] if configuration.global_context else []
    for collection in configuration.collections:
        for prefix, text in collection.contexts.items():
            found.append(Context(collection.name, normalized(prefix) or TOP, text))
    return found


def lacking(configuration: Configuration, keys: Iterable[str]) -> Lacking:
    """Return which collections and folders of the documents `keys` have no context.

    The context of all documents does not count.
    """
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
    """Return the folders that have no context, and contain nothing that has one."""
    known = {prefix.partition("/")[0] for prefix in prefixes}
    return () if "" in known else tuple(sorted(top for top in tops if composed(top) not in known))


def target_of(written: str, configuration: Configuration, here: Path | None = None) -> Target:
    """Return which documents a path means, as the target of a context.

    Args:
        written: `/` for all documents, `qmd://collection/path`, the path of a folder or file, or
            `/path` in the collection that `here` is in.
        configuration: The collections.
        here: The folder that relative paths start from; None if it is unknown.

    Raises:
        SettingsError: If the path is in no collection.
    """
    text = without_quotes(written)
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
    """Return a path from which `target_of` gets the target of a context, without any `here`.

    Args:
        context: A context from `listed`.
        configuration: The configuration that it was listed from.
    """
    if not context.collection:
        return "/"
    prefix = normalized(context.path)
    path = str(configuration.named(context.collection).path / prefix)
    try:
        if target_of(path, configuration) == Target(context.collection, prefix):
            return path
    except SettingsError:
        pass
    # Another collection has the same folder, or lies inside it.
    return uri_of(f"{context.collection}/{prefix}").rstrip("/")


def _key_at(text: str, configuration: Configuration, here: Path | None) -> str:
    """Return the key that a path leads to; empty if it leads to no collection."""
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
