"""Sets up logging: where this process logs to, and the format of a record."""

import logging
import os
from pathlib import Path
from typing import Any

from vector_index_mcp.foreign import visible

_LOG_BYTES = 1_000_000
_STDERR = 2
_LOG_FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"


class _Formatter(logging.Formatter):
    """Makes records safe for a terminal, each on one line: a file's name may hold any character."""

    def formatMessage(self, record: logging.LogRecord) -> str:
        return visible(super().formatMessage(record))

    def formatException(self, ei: Any) -> str:
        return visible(super().formatException(ei), keep="\n\t")


def to_stderr(level: str) -> None:
    """Log to standard error, as a command does."""
    _log_to(logging.StreamHandler(), level)


def to_file(path: Path, level: str) -> None:
    """Log to a file, as a service does; the file is rotated when it reaches 1 MB.

    If standard error is that file, it becomes the new one then, so that the last words of a crash
    stand where they are looked for.
    """
    from logging.handlers import RotatingFileHandler

    class Rotating(RotatingFileHandler):
        def doRollover(self) -> None:
            is_stderr = _is_file(path, _STDERR)
            super().doRollover()
            if is_stderr and self.stream is not None:
                os.dup2(self.stream.fileno(), _STDERR)

    handler = Rotating(path, maxBytes=_LOG_BYTES, backupCount=1, encoding="utf-8")
    _log_to(handler, level)
    for talkative in ("mcp", "uvicorn"):  # they log every request and every start
        logging.getLogger(talkative).setLevel(logging.WARNING)


def _is_file(path: Path, descriptor: int) -> bool:
    """Whether a descriptor is that of the file at `path`."""
    try:
        return os.path.samestat(path.stat(), os.fstat(descriptor))
    except OSError:
        return False


def _log_to(handler: logging.Handler, level: str) -> None:
    handler.setFormatter(_Formatter(_LOG_FORMAT))
    logging.basicConfig(handlers=[handler], level=level)
