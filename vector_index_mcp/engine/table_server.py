"""The settings of a connection to LanceDB's own server. Imports nothing heavy."""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Server:
    """How to connect to the server of a `db://` index."""

    key: str = field(default="", repr=False)
    region: str = ""
    host: str = ""
    """The server's address; empty for LanceDB Cloud."""
