"""Finds documents in the ledger of an index, and the links between them. Pure."""

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache

from vector_index_mcp.documents.uris import docid_of, uri_of
from vector_index_mcp.engine.prose import Properties
from vector_index_mcp.engine.types import FileRecord
from vector_index_mcp.files.scan import OF_NO_FILE
from vector_index_mcp.indexing.ledger import Ledger
from vector_index_mcp.indexing.reasons import INDEXED

_MOST_KEPT = 65_536  # cached entries; each takes 1 KB


@dataclass(frozen=True, slots=True)
class Entry:
    """A document in the ledger."""

    record: FileRecord
    properties: Properties

    @property
    def key(self) -> str:
        """The key: the collection's name, a slash, and the path in the collection."""
        return self.record.key

    @property
    def collection(self) -> str:
        """The name of its collection."""
        return self.key.partition("/")[0]

    @property
    def path(self) -> str:
        """Its path in the collection."""
        return self.key.partition("/")[2]

    @property
    def docid(self) -> str:
        """The docid: a short id of its content."""
        return docid_of(self.record.content_hash)

    @property
    def uri(self) -> str:
        """The URI of the document."""
        return uri_of(self.key)

    @property
    def title(self) -> str:
        """Its first heading, as the contract says; else its own title, or the name of its file.

        A title in its front matter is only put back by a heading of the first level.
        """
        return self.properties.heading or self.properties.title

    @property
    def size(self) -> int:
        """The size of its file in bytes."""
        return max(self.record.stamp[0], 0)

    @property
    def modified(self) -> float:
        """When its file was last written, in Unix seconds; now, if it was written just now."""
        return time.time() if self.record.stamp in OF_NO_FILE else self.record.stamp[1] / 1e9


@lru_cache(maxsize=_MOST_KEPT)
def entry_of(record: FileRecord) -> Entry:
    """Return the document that a record of the ledger describes."""
    return Entry(record, Properties.loaded(record.details, record.key))


def entry_at(ledger: Ledger, key: str) -> Entry | None:
    """Return the document with the key `key`; None if there is none."""
    record = ledger.get(key)
    return entry_of(record) if record is not None and record.state == INDEXED else None


def keys_of(ledger: Ledger, collection: str = "") -> list[str]:
    """Return the keys of all documents, or of those in one collection, in order."""
    return [key for key in ledger.below(collection) if _is_indexed(ledger.get(key))]


def entries_of(ledger: Ledger, collection: str = "") -> Iterator[Entry]:
    """Yield all documents, or those of one collection, in the order of their keys."""
    for key in ledger.below(collection):
        if (entry := entry_at(ledger, key)) is not None:
            yield entry


def keys_with_hash(ledger: Ledger, beginning: str) -> tuple[str, ...]:
    """Return the documents whose content hash begins with `beginning`; of equal ones, the first."""
    found: dict[str, str] = {}
    for key in ledger.below(""):
        record = ledger.get(key)
        if _is_indexed(record) and record is not None and record.content_hash.startswith(beginning):
            found.setdefault(record.content_hash, key)
    return tuple(found.values())


def _is_indexed(record: FileRecord | None) -> bool:
    return record is not None and record.state == INDEXED


@dataclass(frozen=True, slots=True)
class Links:
    """The links of one document."""

    out: tuple[str, ...]
    """The keys of the documents that it links to, in order."""
    back: tuple[str, ...]
    """The keys of the documents that link to it, in order."""


class LinkMap:
    """The links between all documents.

    A path in a link is relative to the folder of its document, or else to the collection. A wiki
    link names a document by its path, file name, title or alias, in this order; documents of the
    same collection come first.
    """

    def __init__(self, entries: Iterable[Entry]) -> None:
        """Resolve the links of all documents; takes 0.3 s for 10,000 with ten links each."""
        entries = [*entries]
        self._names = _Names(entries)
        self._out = {entry.key: self._names.targets_of(entry) for entry in entries}
        self._back: dict[str, list[str]] = {}
        for entry in entries:
            for target in self._out[entry.key]:
                self._back.setdefault(target, []).append(entry.key)

    def of(self, key: str) -> Links:
        """Return the links of the document `key`, without links to itself."""
        out, back = self._out.get(key, ()), self._back.get(key, ())
        return Links(*(tuple(other for other in side if other != key) for side in (out, back)))

    def target_of(self, entry: Entry, link: str) -> str:
        """Return the key of the document that a link leads to; empty if it leads to none.

        Args:
            entry: The document that contains the link.
            link: A path, decoded; or `[[` and the name of a wiki link.
        """
        return self._names.target(entry, link)


class _Names:
    """Finds documents by the names that links use."""

    def __init__(self, entries: Iterable[Entry]) -> None:
        self._keys: set[str] = set()
        # By collection and name; the collection "" stands for all. The number is the kind of name.
        # An ambiguous name means the document with the lowest kind, then the first key.
        self._named: dict[tuple[str, str], tuple[int, str]] = {}
        for entry in entries:
            self._keys.add(entry.key)
            bare = _without_extension(entry.path)
            about = entry.properties
            names = (bare, bare.rpartition("/")[2], entry.title, about.title, *about.aliases)
            for kind, name in enumerate(names):
                place = (kind, entry.key)
                for collection in (entry.collection, "") if name else ():
                    named = (collection, name.casefold())
                    self._named[named] = min(self._named.get(named, place), place)

    def targets_of(self, entry: Entry) -> tuple[str, ...]:
        """Return the keys that the links of a document lead to, without duplicates."""
        found = (self.target(entry, link) for link in entry.properties.links)
        return tuple(dict.fromkeys(key for key in found if key))

    def target(self, entry: Entry, link: str) -> str:
        """Return the key of the document that a link leads to; empty if it leads to none."""
        if link.startswith("[["):
            return self._wiki_target(entry, link.removeprefix("[["))
        folder = entry.key.rpartition("/")[0]
        absolute = f"{entry.collection}/{link.lstrip('/')}"
        for path in (f"{folder}/{link}", absolute) if not link.startswith("/") else (absolute,):
            key = _normalized(path)
            for candidate in (key, f"{key}.md", f"{key}/index.md", f"{key}/README.md"):
                if candidate in self._keys:
                    return candidate
        return ""

    def _wiki_target(self, entry: Entry, name: str) -> str:
        name = name.strip("/ ").casefold()
        for collection in (entry.collection, ""):
            for written in (name, _without_extension(name)):  # a title may look like `Node.js`
                if found := self._named.get((collection, written)):
                    return found[1]
        return ""


def _without_extension(path: str) -> str:
    bare, dot, extension = path.rpartition(".")
    return bare if dot and "/" not in extension and bare else path


def _normalized(path: str) -> str:
    """Return `path` without `.` and `..`; empty if it leads above its root."""
    names: list[str] = []
    for name in path.split("/"):
        if name == "..":
            if not names:
                return ""
            names.pop()
        elif name not in {"", "."}:
            names.append(name)
    return "/".join(names)
