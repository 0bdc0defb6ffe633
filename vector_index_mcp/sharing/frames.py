"""The frames between a service and the host of the shared worker; checks those of services.

    service: {"arguments": [...], "offline": false, "idle_seconds": 600.0}   which worker it needs
    host:    {"pid": 4711}    or    {"failed": "No space left on device"}

From then on both use the protocol of `engine.models.worker`, with some additions. The host reports
how many services use the worker ({"event": "sharers", "count": 2}), that it ends the worker to free
memory ({"event": "resting"}), and with which status a worker has ended ({"event": "ended",
"status": -9}). A service reports that the worker hangs ({"kill": true}), which ends it for all.
"""

import json
from dataclasses import dataclass
from typing import Any, TypeGuard

from vector_index_mcp.sharing.turns import Kind

LONGEST_LINE_BYTES = 16_000_000
"""The longest line of a service. The largest request takes 2 MB if all of it is escaped."""
_MOST_ARGUMENTS, _LONGEST_ARGUMENT = 8, 4_096
KILL = {"kill": True}


@dataclass(frozen=True, slots=True)
class Wanted:
    """The worker that a service needs. Services with equal needs share a worker."""

    arguments: tuple[str, ...]
    """The worker's arguments: model, device, reranker, dimension."""
    offline: bool
    """Whether the worker must not use the Hugging Face hub."""
    stamp: str
    """Changes with the files of a model in a folder, since it counts as another model then."""


@dataclass(frozen=True, slots=True)
class Request:
    """A request of a service to the worker."""

    number: int
    """The number that the service gave it."""
    kind: Kind
    values: dict[str, Any]
    size: int
    """The size of the service's frame, in bytes."""

    def line(self, number: int) -> bytes:
        """The frame for the worker, in which the host gives the request another `number`."""
        return line({**self.values, "id": number})


def line(values: dict[str, Any]) -> bytes:
    """A frame without a payload."""
    return json.dumps(values).encode() + b"\n"


def parse(data: bytes) -> dict[str, Any]:
    """The values of a frame.

    Raises:
        ValueError: If it is no frame.
    """
    try:
        values = json.loads(data)
    except RecursionError as error:
        raise ValueError("nested too deep") from error
    if not isinstance(values, dict):
        raise ValueError("no object")
    return values


def wanted(values: dict[str, Any]) -> tuple[Wanted, float]:
    """Read the first frame of a service.

    Returns:
        The worker that it needs, and after how many seconds without use the worker may end.

    Raises:
        ValueError: If the frame is invalid.
    """
    arguments, offline = values.get("arguments"), values.get("offline")
    idle, stamp = values.get("idle_seconds"), values.get("stamp")
    if not _are_texts(arguments) or not isinstance(offline, bool) or not isinstance(stamp, str):
        raise ValueError("no worker is described so")
    if len(arguments) > _MOST_ARGUMENTS or any(map(_is_no_argument, arguments)):
        raise ValueError("no worker takes such arguments")
    if not isinstance(idle, float) or not idle > 0:
        raise ValueError("no time to rest")
    return Wanted(tuple(arguments), offline, stamp), idle


def request(values: dict[str, Any], size: int) -> Request:
    """Read a frame with a request.

    Raises:
        ValueError: If the frame is invalid.
    """
    number, urgent = values.get("id"), values.get("urgent")
    are_texts = _are_texts(values.get("texts")) and isinstance(values.get("query", ""), str)
    if not are_texts or not isinstance(number, int) or not isinstance(urgent, bool):
        raise ValueError("no request")
    kind = Kind.RANKING if "query" in values else Kind.QUERY if urgent else Kind.BATCH
    return Request(number, kind, values, size)


def _are_texts(value: Any) -> TypeGuard[list[str]]:
    return isinstance(value, list) and all(isinstance(each, str) for each in value)


def _is_no_argument(text: str) -> bool:
    return len(text) > _LONGEST_ARGUMENT or "\0" in text
