"""Reads knowledge documents, and caches each in memory until its file changes."""

import stat
import threading
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from vector_index_mcp.files.scan import modified_at
from vector_index_mcp.files.state import State, state_of
from vector_index_mcp.notes.limits import MOST_SHOWN
from vector_index_mcp.notes.refusal import Code, Refusal
from vector_index_mcp.notes.store.disk import Disk
from vector_index_mcp.notes.store.history import id_of
from vector_index_mcp.notes.store.line_ends import plain
from vector_index_mcp.notes.texts import matter
from vector_index_mcp.notes.texts.knowledge import Document, document
from vector_index_mcp.notes.texts.projects import Project

_MOST_CHARS = 10_000_000
"""The most text in the cache: half of what many agents write in a year, in 15 MB of memory."""
_ENDING = ".md"
_REVISION_CHARS = 12


@dataclass(frozen=True, slots=True)
class ReadDocument:
    """A document that was read, and the revision of its text."""

    document: Document
    metadata: matter.Metadata
    """The document's metadata; times that it lacks are those of its file."""
    revision: str

    @classmethod
    def of(cls, name: str, text: str, written: datetime) -> "ReadDocument":
        """Parse the text of the file `name`, which was last changed at `written`."""
        found = document(name, text)
        own, moment = found.metadata, matter.iso(written)
        data = matter.Metadata(
            own.title, own.keywords, own.created or moment, own.updated or moment
        )
        return cls(found, data, revision_of(text.encode()))


def revision_of(data: bytes) -> str:
    """Return the revision of a text: the first characters of the id that git gives to it.

    It does not depend on whether a line ends with LF or CRLF.
    """
    return id_of(plain(data))[:_REVISION_CHARS]


class Shelf:
    """The documents of one store, with a cache. Safe for use from several threads."""

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self._kept: OrderedDict[str, tuple[State, ReadDocument]] = OrderedDict()
        self._chars = 0
        self._lock = threading.Lock()

    def names(self, project: Project) -> list[str]:
        """Return the file names of a project's documents, sorted.

        Raises:
            Refusal: If they cannot be listed.
        """
        return [
            name
            for name, status in self._disk.entries(project.knowledge)
            if name.endswith(_ENDING) and stat.S_ISREG(status.st_mode)
        ]

    def document(self, project: Project, name: str) -> ReadDocument:
        """Read a document, from the cache if its file has not changed.

        Raises:
            Refusal: If there is no such document, or it cannot be read.
        """
        # Where case does not count, the file of another document opens by this name, too.
        is_file = _can_be(name) and self._disk.is_file(project.document(name))
        if is_file and name not in self.names(project):
            raise self._not_found(project, name)
        return self._read(project, name, others_go=True)

    def listed(self, project: Project, name: str) -> ReadDocument:
        """Read a document that `names` has listed.

        Reading all documents must not push frequently read ones out of the cache.

        Raises:
            Refusal: If the document was just deleted, or it cannot be read.
        """
        return self._read(project, name, others_go=False)

    def _read(self, project: Project, name: str, *, others_go: bool) -> ReadDocument:
        path = project.document(name)
        status = self._disk.status(path) if _can_be(name) else None
        if status is None:
            raise self._not_found(project, name)
        stamp = state_of(status)
        with self._lock:
            kept = self._kept.get(path)
            if kept is not None and kept[0] == stamp:
                self._kept.move_to_end(path)
                return kept[1]
        text = self._disk.read_text(path) or ""
        read = ReadDocument.of(name, text, modified_at(status))
        self._keep(path, stamp, read, others_go=others_go)
        return read

    def documents(self, project: Project) -> "Iterator[ReadDocument | Refusal]":
        """Yield all documents of a project; for one that cannot be read, the Refusal.

        Raises:
            Refusal: If they cannot be listed.
        """
        for name in self.names(project):
            try:
                yield self.listed(project, name)
            except Refusal as refusal:
                if refusal.code is not Code.DOCUMENT_NOT_FOUND:  # that one was just deleted
                    yield refusal

    def _not_found(self, project: Project, name: str) -> Refusal:
        return Refusal(
            Code.DOCUMENT_NOT_FOUND,
            f"Knowledge file {name} not found in project {project.id}",
            filename=name,
            documents=self.names(project)[:MOST_SHOWN],
        )

    def _keep(self, path: str, stamp: State, read: ReadDocument, *, others_go: bool) -> None:
        size = len(read.document.text)
        with self._lock:
            self._forget(path)
            if not others_go and self._chars + size > _MOST_CHARS:
                return
            self._kept[path] = stamp, read
            self._chars += size
            while self._chars > _MOST_CHARS and self._kept:
                self._forget(next(iter(self._kept)))

    def _forget(self, path: str) -> None:
        kept = self._kept.pop(path, None)
        if kept is not None:
            self._chars -= len(kept[1].document.text)


def _can_be(name: str) -> bool:
    """Return whether a document can have the name."""
    return name.endswith(_ENDING) and not {"/", "\0"} & set(name)
