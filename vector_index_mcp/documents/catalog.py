"""The documents of an index, as its ledger knows them. Pure."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache

from vector_index_mcp.documents.uris import docid_of, uri_of
from vector_index_mcp.engine.prose import Properties
from vector_index_mcp.engine.types import FileRecord
from vector_index_mcp.indexing.ledger import INDEXED, Ledger

_MOST_KEPT = 65_536  # entries of documents; 1 KB each


@dataclass(frozen=True, slots=True)
class Entry:
    """What is known of one document."""

    record: FileRecord
    properties: Properties

    @property
    def key(self) -> str:
        """The collection's name, a slash, and the path in it: how people see it."""
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
        """The short name of its content."""
        return docid_of(self.record.content_hash)

    @property
    def uri(self) -> str:
        """What names it anywhere."""
        return uri_of(self.key)

    @property
    def title(self) -> str:
        """What it calls itself; else the name of its file."""
        return self.properties.title

    @property
    def size(self) -> int:
        """In bytes."""
        return max(self.record.stamp[0], 0)

    @property
    def modified(self) -> float:
        """When its file was written last, Unix seconds; 0 if it has just been written."""
        return max(self.record.stamp[1], 0) / 1e9


@lru_cache(maxsize=_MOST_KEPT)
def entry_of(record: FileRecord) -> Entry:
    """What a record says of its document."""
    return Entry(record, Properties.loaded(record.details, record.key))


def entry_at(ledger: Ledger, key: str) -> Entry | None:
    """The document with the key `key`; None if there is none."""
    record = ledger.get(key)
    return entry_of(record) if record is not None and record.state == INDEXED else None


def keys_of(ledger: Ledger, collection: str = "") -> list[str]:
    """The keys of all documents, or of those in one collection, in order."""
    return [key for key in ledger.below(collection) if _is_indexed(ledger.get(key))]


def entries_of(ledger: Ledger, collection: str = "") -> Iterator[Entry]:
    """All documents, or those of one collection, in the order of their keys."""
    for key in ledger.below(collection):
        if (entry := entry_at(ledger, key)) is not None:
            yield entry


def entry_with_hash(ledger: Ledger, beginning: str) -> Entry | None:
    """The first document whose content has a hash that begins so; None if there is none."""
    for key in ledger.below(""):
        record = ledger.get(key)
        if _is_indexed(record) and record is not None and record.content_hash.startswith(beginning):
            return entry_of(record)
    return None


def _is_indexed(record: FileRecord | None) -> bool:
    return record is not None and record.state == INDEXED


@dataclass(frozen=True, slots=True)
class Links:
    """How documents lead to each other."""

    out: tuple[str, ...]
    """The keys of those that a document links to, in order."""
    back: tuple[str, ...]
    """The keys of those that link to it, in order."""


class LinkMap:
    """How all documents lead to each other.

    A path counts from the folder of the document that holds it, and else from its collection. The
    name of a wiki link is the path, the file's name, the title or an alias of a document, in this
    order, first of those in the same collection.
    """

    def __init__(self, entries: Iterable[Entry]) -> None:
        """Follow the links of all documents; takes 0.3 s for 10,000 with ten links each."""
        entries = [*entries]
        self._names = _Names(entries)
        self._out = {entry.key: self._names.targets_of(entry) for entry in entries}
        self._back: dict[str, list[str]] = {}
        for entry in entries:
            for target in self._out[entry.key]:
                self._back.setdefault(target, []).append(entry.key)

    def of(self, key: str) -> Links:
        """What the document `key` links to, and what links to it; nothing to or from itself."""
        out, back = self._out.get(key, ()), self._back.get(key, ())
        return Links(*(tuple(other for other in side if other != key) for side in (out, back)))

    def target_of(self, entry: Entry, link: str) -> str:
        """The key of the document that a link in `entry` leads to; empty if it leads to none.

        Args:
            entry: Of the document that holds the link.
            link: A path, decoded; or the name of a wiki link behind `[[`.
        """
        return self._names.target(entry, link)


def links_of(entries: Iterable[Entry], key: str) -> Links:
    """What the document `key` among `entries` links to, and what links to it; see `LinkMap`."""
    return LinkMap(entries).of(key)


class _Names:
    """What documents are called by links."""

    def __init__(self, entries: Iterable[Entry]) -> None:
        self._keys: set[str] = set()
        # By collection and name; without a collection, of all of them. The number says by which
        # kind of name: ambiguous names mean the document with the lowest, then the first key.
        self._named: dict[tuple[str, str], tuple[int, str]] = {}
        for entry in entries:
            self._keys.add(entry.key)
            stem = _without_extension(entry.path)
            names = (stem, stem.rpartition("/")[2], entry.title, *entry.properties.aliases)
            for kind, name in enumerate(names):
                place = (kind, entry.key)
                for collection in (entry.collection, "") if name else ():
                    named = (collection, name.casefold())
                    self._named[named] = min(self._named.get(named, place), place)

    def targets_of(self, entry: Entry) -> tuple[str, ...]:
        """The keys that the links of a document lead to, each once."""
        found = (self.target(entry, link) for link in entry.properties.links)
        return tuple(dict.fromkeys(key for key in found if key))

    def target(self, entry: Entry, link: str) -> str:
        """The key of the document that a link leads to; empty if it leads to none."""
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
            for written in (name, _without_extension(name)):  # `Node.js` can be a title
                if found := self._named.get((collection, written)):
                    return found[1]
        return ""


def _without_extension(path: str) -> str:
    stem, dot, extension = path.rpartition(".")
    return stem if dot and "/" not in extension and stem else path


def _normalized(path: str) -> str:
    """`path` without `.` and `..`; empty if it leads out of everything."""
    names: list[str] = []
    for name in path.split("/"):
        if name == "..":
            if not names:
                return ""
            names.pop()
        elif name not in {"", "."}:
            names.append(name)
    return "/".join(names)
