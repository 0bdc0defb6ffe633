"""Knows the settings of git: those of the store's repository, and those of the user.

The store's own may come from somebody else. They are read as a list of names and values: git does
not follow what they include, and runs nothing that they name.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from vector_index_mcp.files.repository import state_of_users_settings
from vector_index_mcp.files.state import state_of
from vector_index_mcp.notes.store.disk import GIT, Disk

_CONFIG, _OF_THE_WORK_TREE = f"{GIT}/config", f"{GIT}/config.worktree"
_HAS_BOTH = "extensions.worktreeconfig"
_INCLUDES = ("include.", "includeif.")
_NO = frozenset({"false", "no", "off", "0", ""})
_AGE_SECONDS = 60  # the user's settings may include files that change without a sign

_Stamp = tuple[object, ...]
List = Callable[[bytes | None], str]
"""Lists the settings in a text, or those of the user (None), as `git config --list -z` does."""


def is_true(value: str) -> bool:
    """Return whether git takes a value for true."""
    return value.lower() not in _NO


@dataclass(slots=True)
class Settings:
    """The settings for one store. They are read again after a change. The methods block."""

    disk: Disk
    ask: List
    """Raises a Refusal if git cannot list the settings."""
    _own: tuple[_Stamp, str] | None = field(default=None)
    _users: tuple[_Stamp, Mapping[str, str]] | None = field(default=None)

    def listed(self) -> str:
        """Return the settings of the store's repository as `git config --list -z` prints them.

        Raises:
            Refusal: If git cannot read them.
        """
        stamp = self._stamp(_CONFIG), self._stamp(_OF_THE_WORK_TREE)
        if self._own is None or self._own[0] != stamp:
            data = self.disk.read(_CONFIG)
            found = self.ask(data) if data is not None else ""
            if is_true(_values(found).get(_HAS_BOTH, "")):
                data = self.disk.read(_OF_THE_WORK_TREE)
                found += self.ask(data) if data is not None else ""
            self._own = stamp, found
        return self._own[1]

    def _stamp(self, path: str) -> _Stamp:
        status = self.disk.status(path)
        return () if status is None else state_of(status)

    @property
    def own(self) -> Mapping[str, str]:
        """The settings of the store's repository by name; sections and keys in small letters.

        Raises:
            Refusal: If git cannot read them.
        """
        return _values(self.listed())

    def first_of_own(self, name: str) -> str:
        """Return the first value of a setting of the store's repository; empty if there is none.

        Raises:
            Refusal: If git cannot read the settings.
        """
        return next((value for key, value in _pairs(self.listed()) if key == name), "")

    @property
    def users(self) -> Mapping[str, str]:
        """The settings of the user and the system for this repository, by name.

        Raises:
            Refusal: If git cannot read them.
        """
        stamp = (*state_of_users_settings(), int(time.monotonic()) // _AGE_SECONDS)
        if self._users is None or self._users[0] != stamp:
            self._users = stamp, _values(self.ask(None))
        return self._users[1]

    def get(self, name: str) -> str:
        """Return the value that git would use; empty if there is none.

        Raises:
            Refusal: If git cannot read the settings.
        """
        own = self.own
        return own[name] if name in own else self.users.get(name, "")

    @property
    def may_have_more(self) -> bool:
        """Whether the repository's own settings include files, which are not read.

        Raises:
            Refusal: If git cannot read the settings.
        """
        return any(name.startswith(_INCLUDES) for name in self.own)


def _values(listed: str) -> dict[str, str]:
    """Return the last value of each setting."""
    return dict(_pairs(listed))


def _pairs(listed: str) -> Iterator[tuple[str, str]]:
    """Yield the settings in order, with their values; one without a value is true."""
    for name, end, value in (line.partition("\n") for line in listed.split("\0") if line):
        yield name, value if end else "true"
