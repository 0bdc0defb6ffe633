"""Which notes a command is about, and how it gets at them.

A command needs no service. What it reads, it reads from disk and history; what it changes, a writer
of its own changes, whose lock makes it take turns with a service that runs.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from vector_index_mcp.background.endpoint import Endpoint, endpoint_of
from vector_index_mcp.console.colours import PLAIN, Colours
from vector_index_mcp.serving.sets import NOTES

if TYPE_CHECKING:  # a front end needs the standard library alone
    from vector_index_mcp.notes.calls import Store
    from vector_index_mcp.notes.store.writer import Writer

_TEMPORARY = "vector-index-mcp-notes-"


@dataclass(frozen=True, slots=True)
class Desk:
    """The notes of one store."""

    home: Path
    host_arguments: Sequence[str]
    """What a service has to be started with."""
    colours: Colours = PLAIN
    """Of standard output."""

    @property
    def endpoint(self) -> Endpoint:
        """Where the service is met."""
        return endpoint_of(NOTES, self.home)

    @contextmanager
    def reading(self) -> "Iterator[Store]":
        """The store, as long as it is read; nothing is made in it."""
        from vector_index_mcp.notes.calls import Store
        from vector_index_mcp.notes.store.disk import Disk
        from vector_index_mcp.notes.store.repository import Repository
        from vector_index_mcp.notes.texts.reading import Shelf

        disk = Disk(self.home)
        # Where git finds the store; a service has another such folder, which stays as it is.
        with TemporaryDirectory(prefix=_TEMPORARY, ignore_cleanup_errors=True) as folder:
            Path(folder, "git").mkdir()  # git starts there, also where there is no history
            yield Store(disk, Shelf(disk), Repository(disk, Path(folder)))

    @contextmanager
    def writing(self, store: "Store") -> "Iterator[Writer]":
        """Who writes the store; in the end, git's index is as the last commit says.

        Args:
            store: Which is read meanwhile.
        """
        from vector_index_mcp.notes.refusal import Refusal
        from vector_index_mcp.notes.store.staging import Staging
        from vector_index_mcp.notes.store.writer import Writer

        writer = Writer(store.disk, store.repository)
        writer.start()
        try:
            yield writer
        finally:
            writer.stop()
            with suppress(Refusal):  # somebody else works with it: then they bring it up to date
                Staging(store.disk, store.repository).refresh()
