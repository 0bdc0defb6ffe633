"""The folders of our own files, below the user's folders for caches and for state."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from vector_index_mcp.errors import SettingsError
from vector_index_mcp.settings import Settings

if TYPE_CHECKING:
    from vector_index_mcp.indexing.vectors.team import TeamPlace

NOTES_STATE, TABLES, MAKING, TEAM = "notes", "datasets", "making", "team"
"""Names of our folders: for notes, tables of datasets, unfinished datasets, a team's vectors."""
_FOLDER = "vector-index-mcp"


def team_place(settings: Settings) -> "TeamPlace | None":
    """The place of a team's vectors; None if no team shares any."""
    from vector_index_mcp.indexing.vectors.team import TeamPlace

    if not settings.shared_cache:
        return None
    return TeamPlace(settings.shared_cache, cache_folder(settings) / TEAM)


def cache_folder(settings: Settings) -> Path:
    """The folder of the embedding cache.

    Raises:
        SettingsError: If it lies in the home folder, and that is unknown.
    """
    import platformdirs

    with _known_home():
        configured = settings.embedding_cache_dir
        return Path(configured or platformdirs.user_cache_path(_FOLDER)).expanduser()


def state_folder() -> Path:
    """The folder of locks, records, owners' names, and indexes that cannot lie in their project.

    Raises:
        SettingsError: If the home folder is unknown.
    """
    import platformdirs

    with _known_home():
        return platformdirs.user_state_path(_FOLDER)


@contextmanager
def _known_home() -> Iterator[None]:
    try:
        yield
    except RuntimeError as error:
        raise SettingsError("your home folder is not known; set HOME to it") from error
