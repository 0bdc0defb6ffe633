"""Which notes a command is about, and how it gets at them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from vector_index_mcp.background.endpoint import Endpoint, endpoint_of
from vector_index_mcp.serving.sets import NOTES

if TYPE_CHECKING:  # imports pydantic
    from vector_index_mcp.settings import Settings


@dataclass(frozen=True, slots=True)
class Desk:
    """The notes of one store."""

    home: Path
    load_settings: "Callable[[], Settings]"
    host_arguments: Sequence[str]
    """What a service has to be started with."""

    @property
    def endpoint(self) -> Endpoint:
        """Where the service is met."""
        return endpoint_of(NOTES, self.home)
