"""The activity log: one line of JSON for each call, with its names and outcome, never contents."""

import contextlib
import json
import os
import secrets
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from vector_index_mcp.files import beneath
from vector_index_mcp.notes.store.disk import WORK, Disk
from vector_index_mcp.notes.texts import matter

NAME = "activity.log"
_EARLIER = "activity.log.1"
_MOST_BYTES = 10_000_000  # a larger log becomes `_EARLIER` and replaces the one before it
_TRACE_BYTES = 16
_NAMED = ("project_id", "filename", "chapter_title")
_LONGEST_CHARS = 300


@dataclass(frozen=True, slots=True)
class Call:
    """A call under way."""

    method: str
    given: Mapping[str, Any]
    """The arguments as the client sent them."""
    trace: str = field(default_factory=lambda: secrets.token_hex(_TRACE_BYTES))
    began: float = field(default_factory=time.monotonic)

    def entry(self, error: str = "", code: str = "", context: Any = None) -> dict[str, Any]:
        """Return the log entry of this call, which has just ended."""
        named = {key: self.given[key] for key in _NAMED if isinstance(self.given.get(key), str)}
        failed = {"error": error[:_LONGEST_CHARS]} if error else {}
        return {
            "timestamp": matter.now(),
            "method": self.method[:_LONGEST_CHARS],
            "success": not error,
            **{key: value[:_LONGEST_CHARS] for key, value in named.items()},
            **failed,
            "traceId": self.trace,
            "duration": round((time.monotonic() - self.began) * 1000),
            **({"errorCode": code} if code else {}),
            **({"errorContext": context} if context else {}),
        }


class Log:
    """The log of one store. An entry that cannot be written is dropped, and the call goes on."""

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self._lock = threading.Lock()

    def write(self, entry: Mapping[str, Any]) -> None:
        """Add a line if the folder is a store that has been opened before. Blocks."""
        line = json.dumps(entry, ensure_ascii=False).encode("utf-8", "replace") + b"\n"
        with (
            self._lock,
            contextlib.suppress(OSError),
            beneath.opened(self._disk.root, WORK),
            beneath.opened(self._disk.root, "") as folder,
        ):
            with contextlib.suppress(OSError):  # a log that stays too large goes on
                if folder.status(NAME).st_size > _MOST_BYTES:
                    folder.replace(NAME, _EARLIER)
            flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_NONBLOCK", 0)
            descriptor = folder.open(NAME, flags, 0o600)
            try:
                os.write(descriptor, line)
            finally:
                os.close(descriptor)
