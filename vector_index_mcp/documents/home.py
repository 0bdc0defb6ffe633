"""Where the collections of a user are written down, and where the index of them lies. Pure.

`--index NAME` and five variables choose. They are those of the program whose collections these
are; it keeps a file of SQLite where we keep a folder of LanceDB, which gets a name of its own.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from vector_index_mcp.errors import SettingsError

DEFAULT_NAME = "index"

_FOLDER = "qmd"
_SUFFIX, _SUFFIX_OF_SQLITE = ".lancedb", ".sqlite"
_LONGEST_NAME_BYTES = 200  # with all that is put before and behind it, a name has 255


@dataclass(frozen=True, slots=True)
class Home:
    """One set of collections."""

    name: str
    """As `--index` takes it."""
    configuration: Path
    """The file that lists the collections; absolute. It need not be there."""
    index: str
    """The folder of their index, as LanceDB takes it; absolute."""


def home_of(name: str, environment: Mapping[str, str], here: Path) -> Home:
    """The home of the collections called `name`.

    Args:
        name: As `--index` takes it.
        environment: The variables of the process.
        here: An absolute path: where relative ones start.

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
        stem = index.name.removesuffix(_SUFFIX_OF_SQLITE).removesuffix(_SUFFIX)
        index = index.with_name(stem + _SUFFIX)
    else:
        raise SettingsError(f"INDEX_PATH is {index}, which cannot be an index; name a folder in it")
    return Home(name, configuration / f"{name}.yml", str(index))


def check_name(name: str) -> None:
    """Make sure that files can be called `name`.

    Raises:
        SettingsError: If they cannot.
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
        """The path in a variable of the program; None if it is empty."""
        value = self.environment.get(variable, "")
        if not value:
            return None
        if "://" in value or "\0" in value:
            raise SettingsError(f"{variable} is {value!r}, which is no path; name a local folder")
        if value == "~" or value.startswith("~/"):  # no shell reads what a client configures
            value = f"{self._user_home()}{value[1:]}"
        return Path(os.path.normpath(self.here / value))

    def shared(self, variable: str, otherwise: str) -> Path:
        """Our folder in one that all programs share."""
        value = self.environment.get(variable, "")
        # The specification of these variables wants relative paths ignored.
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
