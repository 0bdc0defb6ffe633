"""The folders where this machine and its user keep configurations."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from vector_index_mcp.clients import repository
from vector_index_mcp.errors import SettingsError


def here(project: Path) -> dict[str, Path]:
    """Return the folders of this machine and user, by the name of the place.

    Raises:
        SettingsError: If the user's home folder is unknown.
    """
    try:
        home = Path.home()
    except RuntimeError as error:
        raise SettingsError("your home folder is unknown; set HOME to it") from error
    return places(project, home, sys.platform, os.environ)


def places(
    project: Path, home: Path, platform: str, variables: Mapping[str, str]
) -> dict[str, Path]:
    """Return the folders that the paths in `catalog` begin with, by the name of the place.

    Args:
        project: The project's folder.
        home: The user's home folder.
        platform: The value of `sys.platform`.
        variables: The environment variables.
    """

    def chosen(variable: str, otherwise: Path) -> Path:
        return Path(variables[variable]) if variables.get(variable) else otherwise

    config = chosen("XDG_CONFIG_HOME", home / ".config")
    if platform == "win32":
        applications = chosen("APPDATA", home / "AppData" / "Roaming")
        zed = applications / "Zed"
    else:
        is_mac = platform == "darwin"
        applications = home / "Library" / "Application Support" if is_mac else config
        zed = (home / ".config" if is_mac else config) / "zed"
    return {
        "project": project,
        "repository": repository.root_of(project),
        "home": home,
        "config": config,
        "applications": applications,
        "zed": zed,
        "claude": chosen("CLAUDE_CONFIG_DIR", home),
        "codex": chosen("CODEX_HOME", home / ".codex"),
        "copilot": chosen("COPILOT_HOME", home / ".copilot"),
        "cline": chosen("CLINE_DATA_DIR", chosen("CLINE_DIR", home / ".cline") / "data"),
        "qwen": chosen("QWEN_HOME", home / ".qwen"),
    }


def lasting_path() -> str:
    """Return the PATH without the folders of an activated virtual environment.

    A new shell does not have these folders, nor do others who share the project.
    """
    environment = os.environ.get("VIRTUAL_ENV")
    folders = os.get_exec_path()
    if environment:
        around = Path(os.path.realpath(environment))
        folders = [f for f in folders if not Path(os.path.realpath(f)).is_relative_to(around)]
    return os.pathsep.join(folders)
