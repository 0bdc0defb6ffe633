"""What a user may set about one index, and what its tool set brings along."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from vector_index_mcp.indexing.mirroring.mirror import Shared
from vector_index_mcp.indexing.place import Remote
from vector_index_mcp.indexing.preparing.recipe import Recipe
from vector_index_mcp.indexing.remedies import Remedies
from vector_index_mcp.indexing.vectors.team import TeamPlace


@dataclass(frozen=True, slots=True)
class Options:
    """What a user may set about one index."""

    recipe: Recipe
    quiet_seconds: float
    longest_seconds: float
    rescan_seconds: float
    state_folder: Path
    """Where locks and records of indexes lie."""
    remedies: Remedies
    """What to do about an error, in the tool set's words."""
    team: TeamPlace | None = None
    """Where teammates share their vectors; None if nobody does."""
    remote: Remote = Remote()
    """The settings for an index that does not lie on this machine."""
    shared: Shared | None = None
    """Where somebody publishes the same index; None if nobody does."""
    silence_of_service: Callable[[], str] = str
    """Returns why the service that keeps this index follows no changes now: it does not answer.
    Empty if it answers, or none runs. May take seconds."""
