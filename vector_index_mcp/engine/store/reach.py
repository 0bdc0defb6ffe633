"""How tables are reached: on a disk, or over a network, where anything may take for ever."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from vector_index_mcp.engine.store.faults import translated
from vector_index_mcp.engine.table_server import Server

# Of the whole operation, whatever LanceDB tries meanwhile: a server that accepts and never answers
# keeps it busy for minutes. What was begun may still be done behind it.
_SECONDS = {"searching": 10.0, "opening": 10.0, "reading": 60.0, "maintaining": 900.0}
_SECONDS_OF_A_WRITE = 120.0


def is_local(uri: str) -> bool:
    """Whether `uri` is a folder and not object storage or a server."""
    return "://" not in uri


def is_server(uri: str) -> bool:
    """Whether tables are asked of a server of LanceDB's own."""
    return uri.startswith("db://")


@dataclass(frozen=True, slots=True)
class Reach:
    """Where tables lie, and who asks for them."""

    uri: str
    turn: int | None = None
    """The number of the writer's lease where they are remote; None for who only reads. Handles of
    a writer never refresh: what was opened before another one's turn must not become part of it."""

    server: Server = Server()
    """What is known of the server that is asked, if it is one."""

    @property
    def is_server(self) -> bool:
        """Whether a server of LanceDB's own is asked, which makes its commits one after another."""
        return is_server(self.uri)

    @property
    def is_local(self) -> bool:
        """Whether they lie in a folder."""
        return is_local(self.uri)

    @property
    def is_fenced(self) -> bool:
        """Whether this is the writer of tables that other machines can reach."""
        return not (self.is_local or self.is_server) and self.turn is not None

    @contextmanager
    def asked(self, action: str) -> Iterator[None]:
        """The time in which LanceDB is asked for something, which is not for ever.

        Raises:
            StoreError: If it fails, or does not answer.
        """
        seconds = None if self.is_local else _SECONDS.get(action, _SECONDS_OF_A_WRITE)
        with translated(action, self.uri, seconds):
            yield
