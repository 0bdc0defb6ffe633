"""Finds the configuration file of a user's collections, and the folder of their index. Pure.

`--index NAME` and five environment variables choose them, as in the original program `qmd`. Its
index is an SQLite file. Ours is a LanceDB folder beside it, with another extension.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from vector_index_mcp.errors import SettingsError

DEFAULT_NAME = "index"

_FOLDER = "qmd"
_SUFFIX, _SUFFIX_OF_SQLITE = ".lancedb", ".sqlite"
_LONGEST_NAME_BYTES = 200  # a file's name may have 255 bytes, with what we add to this name


@dataclass(frozen=True, slots=True)
class Home:
    """The places of one set of collections."""

    name: str
    """The name that `--index` takes."""
    configuration: Path
    """The absolute path of the file that lists the collections. The file need not exist."""
    index: str
    """The absolute path of the folder of the index."""


def home_of(name: str, environment: Mapping[str, str], here: Path) -> Home:
    """Return the places of the set of collections called `name`.

    Args:
        name: The name that `--index` takes.
        environment: The environment variables.
        here: The folder that relative paths start from; absolute.

    Raises:
        SettingsError: If the name or a variable cannot be used.
    """
    check_name(name)
    places = _Places(environment, here)
    configuration = places.named("QMD_CONFIG_DIR") or places.shared("XDG_CONFIG_HOME", ".config")
    index = places.named("INDEX_PATH")
    if index is None:
        index = places.shared("XDG_CACHE_HOME", ".cache") / f"{name}{_SUFFIX}"
    elif index.name:
        bare = index.name.removesuffix(_SUFFIX_OF_SQLITE).removesuffix(_SUFFIX)
        index = index.with_name(bare + _SUFFIX)
    else:
        raise SettingsError(f"INDEX_PATH is {index}, which has no name; set it to a folder below")
    return Home(name, configuration / f"{name}.yml", str(index))


def check_name(name: str) -> None:
    """Check that `name` can be the name of files.

    Raises:
        SettingsError: If it cannot.
    """
    is_usable = (
        name not in {"", ".", ".."}
        and "/" not in name
        and name.isprintable()
        and name == name.strip()
        and not name.startswith("-")
        and len(name.encode("utf-8", "replace")) <= _LONGEST_NAME_BYTES
    )
    if not is_usable:
        raise SettingsError(
            f"{name[:_LONGEST_NAME_BYTES]!r} cannot be the name of an index; "
            "use letters, digits and hyphens"
        )


@dataclass(frozen=True, slots=True)
class _Places:
    environment: Mapping[str, str]
    here: Path

    def named(self, variable: str) -> Path | None:
        """Return the path in a variable of the program; None if it is empty or not set."""
        value = self.environment.get(variable, "")
        if not value:
            return None
        if "://" in value or "\0" in value:
            raise SettingsError(f"{variable} is {value!r}, not a path; set it to a local folder")
        if value == "~" or value.startswith("~/"):  # MCP clients set variables without a shell
            value = f"{self._user_home()}{value[1:]}"
        return Path(os.path.normpath(self.here / value))

    def shared(self, variable: str, otherwise: str) -> Path:
        """Return our folder in a folder that all programs share."""
        value = self.environment.get(variable, "")
        # The XDG specification says to ignore relative paths.
        shared = Path(value) if value.startswith("/") else self._user_home() / otherwise
        return Path(os.path.normpath(shared)) / _FOLDER

    def _user_home(self) -> Path:
        home = self.environment.get("HOME", "")
        if home.startswith("/"):
            return Path(home)
        try:
            return Path.home()
        except RuntimeError as error:
            raise SettingsError(
                "this user has no home folder; set QMD_CONFIG_DIR and INDEX_PATH"
            ) from error
