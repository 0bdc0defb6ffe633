"""Where an index lies. Imports nothing heavy: a service asks before it loads LanceDB."""

import os
from pathlib import Path


def index_uri(project: Path, configured: str) -> str:
    """The URI of the project's index; a relative folder counts from the project.

    A link within the project is not resolved: whoever opens the index has to see that it is one.
    """
    if "://" in configured:
        return configured
    folder = Path(os.path.normpath(project / Path(configured).expanduser()))
    return str(folder if folder.is_relative_to(project) else folder.resolve())
