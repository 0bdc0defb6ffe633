"""Which folder a project is."""

import os
from pathlib import Path

from vector_index_mcp.errors import ProjectError
from vector_index_mcp.files.folder import is_broad


def resolve_project(path: str, *, allow_broad: bool = False) -> Path:
    """The absolute path of the project at `path`, links resolved.

    Args:
        path: As somebody wrote it.
        allow_broad: Whether a drive's root or a home folder is meant seriously.

    Raises:
        ProjectError: If it is not a folder, or one nobody wants indexed as a whole.
    """
    try:
        folder = Path(path).expanduser().resolve()
        is_folder, exists = folder.is_dir(), folder.exists()
    except (OSError, RuntimeError, ValueError) as error:
        raise ProjectError(
            f"{path!r} is not a usable path ({error}); give the path of a project's folder"
        ) from error
    if not exists:
        raise ProjectError(f"{path} does not exist; give the path of a project's folder")
    if not is_folder:
        raise ProjectError(f"{path} is a file; give the path of the folder it lies in")
    if not os.access(folder, os.R_OK | os.X_OK):
        raise ProjectError(f"{folder} cannot be read; give yourself permission to list it")
    if not allow_broad and is_broad(folder):
        raise ProjectError(
            f"{folder} is a whole drive or home folder; give the path of one project in it, "
            "or set VECTOR_INDEX_ALLOW_BROAD_PATH=true if you mean it"
        )
    return folder
