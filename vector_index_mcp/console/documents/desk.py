"""Gets answers for commands: from the documents' service if it runs, or from the index itself."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vector_index_mcp.background import contact
from vector_index_mcp.background.endpoint import Endpoint, endpoint_of
from vector_index_mcp.console.colours import PLAIN, Colours
from vector_index_mcp.console.documents import progress
from vector_index_mcp.documents.home import Home
from vector_index_mcp.serving.names import DOCUMENTS

if TYPE_CHECKING:  # imports pydantic
    from vector_index_mcp.settings import Settings


_PATIENCE_SECONDS = 60.0  # how long to wait for another command that writes the index
_LOOK_SECONDS = 0.2


@dataclass(frozen=True, slots=True)
class Desk:
    """Answers questions about one set of collections."""

    home: Home
    load_settings: "Callable[[], Settings]"
    host_arguments: Sequence[str]
    """The arguments to start a service with."""
    here: Path
    """The folder that relative paths start from; absolute."""
    examine: Callable[[bool], int]
    """Runs the doctor; the argument is whether to print JSON, the result is the exit status."""
    colours: Colours = PLAIN
    """The colours for standard output."""

    @property
    def endpoint(self) -> Endpoint:
        """Where to reach the service."""
        return endpoint_of(DOCUMENTS, self.home.configuration)

    def ask(self, call: str, /, **given: Any) -> Mapping[str, Any]:
        """Return the answer to a call of `documents.calls`; show its progress meanwhile.

        Raises:
            VectorIndexError: If the call fails.
        """
        patience = time.monotonic() + _PATIENCE_SECONDS
        with progress.shown() as show:
            while (answer := contact.call(self.endpoint, call, given, show)) is None:
                waits = time.monotonic() < patience
                answer = self._answer_here(call, given, show, waits=waits)
                if answer is not None:
                    break
                time.sleep(_LOOK_SECONDS)  # another command writes the index
        return dict(answer)

    def _answer_here(
        self, call: str, given: dict[str, Any], show: progress.Show, *, waits: bool
    ) -> Any | None:
        # These import LanceDB: half a second that a command saves if a service runs.
        from vector_index_mcp.console.awaiting import awaited
        from vector_index_mcp.console.documents import local

        settings = self.load_settings()
        return awaited(partial(local.answered, self.home, settings, call, given, show, waits=waits))
