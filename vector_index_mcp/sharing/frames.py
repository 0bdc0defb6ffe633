"""What a service says to the shared worker, checked: it may be anything.

    service: {"arguments": [...], "offline": false, "idle_seconds": 600.0}   which worker it needs
    host:    {"pid": 4711}    or    {"failed": "No space left on device"}

From then on both speak as `engine.worker` does. Besides, the host says how many use the worker
({"event": "sharers", "count": 2}), that it ends one for want of memory ({"event": "resting"}) and
how one has ended ({"event": "ended", "status": -9}); and a service that a worker hangs
({"kill": true}), which ends it for all.
"""

import json
from dataclasses import dataclass
from typing import Any, TypeGuard

LONGEST_LINE_BYTES = 16_000_000
"""Of a service. The largest request, each of its characters escaped, takes two."""
_MOST_ARGUMENTS, _LONGEST_ARGUMENT = 8, 4_096
KILL = {"kill": True}


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which worker a service needs. Two that need the same share it."""

    arguments: tuple[str, ...]
    """Of the worker: model, device, reranker, dimension."""
    offline: bool
    """Whether it must not ask the hub."""
    stamp: str
    """Of the models' files, if they are folders: what is changed is another model."""


@dataclass(frozen=True, slots=True)
class Request:
    """Something to be computed."""

    number: int
    """Of the service's own."""
    urgent: bool
    values: dict[str, Any]
    size: int
    """In bytes, as it came."""

    def line(self, number: int) -> bytes:
        """What the worker gets, who knows it by another `number`."""
        return line({**self.values, "id": number})


def line(values: dict[str, Any]) -> bytes:
    """A frame without a payload."""
    return json.dumps(values).encode() + b"\n"


def parse(data: bytes) -> dict[str, Any]:
    """The values of a frame.

    Raises:
        ValueError: If it is none.
    """
    try:
        values = json.loads(data)
    except RecursionError as error:  # too deep is no less wrong
        raise ValueError("nested too deep") from error
    if not isinstance(values, dict):
        raise ValueError("no object")
    return values


def wanted(values: dict[str, Any]) -> tuple[Wanted, float]:
    """Which worker is asked for, and after how many seconds without use it may end.

    Raises:
        ValueError: If that is not what it says.
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
    """What is to be computed.

    Raises:
        ValueError: If that is not what it says.
    """
    number, urgent = values.get("id"), values.get("urgent")
    are_texts = _are_texts(values.get("texts")) and isinstance(values.get("query", ""), str)
    if not are_texts or not isinstance(number, int) or not isinstance(urgent, bool):
        raise ValueError("no request")
    return Request(number, urgent, values, size)


def _are_texts(value: Any) -> TypeGuard[list[str]]:
    return isinstance(value, list) and all(isinstance(each, str) for each in value)


def _is_no_argument(text: str) -> bool:
    return len(text) > _LONGEST_ARGUMENT or "\0" in text
