"""The arguments of a command's call, each of which has to be of its type."""

from collections.abc import Mapping
from typing import Any

from vector_index_mcp.errors import QueryError


class Given:
    """The arguments of a call; each method checks the type of an argument and returns it."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values = values

    def text(self, name: str, default: str = "") -> str:
        """Return a string."""
        return str(self._of(name, str, default))

    def flag(self, name: str) -> bool:
        """Return a boolean; False if it is missing."""
        return bool(self._of(name, bool, False))

    def whole(self, name: str) -> int | None:
        """Return a whole number; None if it is missing."""
        found = self._of(name, int, None)
        return None if found is None else int(found)

    def number(self, name: str) -> float:
        """Return a number; 0 if it is missing."""
        return float(self._of(name, (int, float), 0.0))

    def _of(self, name: str, kinds: Any, default: Any) -> Any:
        value = self._values.get(name)
        if value is None:
            return default
        if not isinstance(value, kinds):
            raise QueryError(f"{name} has the wrong type, {type(value).__name__}; give another")
        return value
