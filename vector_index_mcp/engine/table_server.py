"""How LanceDB's own server is asked. Imports nothing heavy."""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Server:
    """What has to be known of it."""

    key: str = field(default="", repr=False)
    region: str = ""
    host: str = ""
    """Its address; empty for LanceDB Cloud."""
