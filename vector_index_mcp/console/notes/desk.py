"""Opens the notes that a command is about.

A command needs no service. It reads from disk and history, and changes the notes through a writer
of its own, whose lock makes it take turns with a running service.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from vector_index_mcp.background.endpoint import Endpoint, endpoint_of
from vector_index_mcp.console.colours import PLAIN, Colours
from vector_index_mcp.serving.names import NOTES

if TYPE_CHECKING:  # a front end needs the standard library alone
    from vector_index_mcp.notes.calls import Store
    from vector_index_mcp.notes.store.writer import Writer

_TEMPORARY = "vector-index-mcp-notes-"


@dataclass(frozen=True, slots=True)
class Desk:
    """Gives the commands access to the notes of one store."""

    home: Path
    host_arguments: Sequence[str]
    """The arguments to start a service with."""
    colours: Colours = PLAIN
    """The colours for standard output."""

    @property
    def endpoint(self) -> Endpoint:
        """Where to reach the service."""
        return endpoint_of(NOTES, self.home)

    def trouble(self) -> str:
        """Say that the folder can hold no notes, or has lost those it had; empty if all is well."""
        from vector_index_mcp.notes.refusal import Refusal
        from vector_index_mcp.notes.store import place
        from vector_index_mcp.notes.store.disk import Disk

        try:
            place.check(Disk(self.home))
            return self.loss()
        except Refusal as refusal:
            return str(refusal)

    def loss(self) -> str:
        """Say that a service has kept notes here which are gone; empty if they are there."""
        from vector_index_mcp.notes import overview
        from vector_index_mcp.notes.store.disk import Disk
        from vector_index_mcp.notes.store.presence import had_store
        from vector_index_mcp.serving.loading import folder_of_notes

        if overview.has_notes(Disk(self.home)) or not had_store(folder_of_notes(self.home)):
            return ""
        return (
            f"there were notes in {self.home}, and they are gone: the folder was moved or deleted, "
            "or its disk is not mounted; bring the folder back, or mount its disk"
        )

    @contextmanager
    def reading(self) -> "Iterator[Store]":
        """Open the store for reading; this creates nothing in it."""
        from vector_index_mcp.notes.calls import Store
        from vector_index_mcp.notes.store.disk import Disk
        from vector_index_mcp.notes.store.repository import Repository
        from vector_index_mcp.notes.texts.reading import Shelf

        disk = Disk(self.home)
        # The folder for our settings of git. A service has its own, which a command leaves alone.
        with TemporaryDirectory(prefix=_TEMPORARY, ignore_cleanup_errors=True) as folder:
            Path(folder, "git").mkdir()  # git starts in it, even if the store has no history
            yield Store(disk, Shelf(disk), Repository(disk, Path(folder)))

    @contextmanager
    def writing(self, store: "Store") -> "Iterator[Writer]":
        """Open a writer of the store; at the end, bring git's own index to the last commit.

        Args:
            store: The store as `reading` opened it.
        """
        from vector_index_mcp.notes.store.writer import Writer

        writer = Writer(store.disk, store.repository)
        writer.start()
        try:
            yield writer
        finally:
            writer.stop()
            writer.index.catch_up()  # or whoever uses it now will do that
