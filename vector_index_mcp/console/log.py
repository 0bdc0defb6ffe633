"""Where this process logs to, and how a record looks."""

import logging
from pathlib import Path
from typing import Any

from vector_index_mcp.foreign import visible

_LOG_BYTES = 1_000_000
_LOG_FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"


class _Formatter(logging.Formatter):
    """One line for a record: it may hold names of files, and a terminal may show it."""

    def formatMessage(self, record: logging.LogRecord) -> str:
        return visible(super().formatMessage(record))

    def formatException(self, ei: Any) -> str:
        return visible(super().formatException(ei), keep="\n\t")


def to_stderr(level: str) -> None:
    """Log to standard error, as a command does."""
    _log_to(logging.StreamHandler(), level)


def to_file(path: Path, level: str) -> None:
    """Log to a file that is kept small, as a service does."""
    from logging.handlers import RotatingFileHandler

    handler = RotatingFileHandler(path, maxBytes=_LOG_BYTES, backupCount=1, encoding="utf-8")
    _log_to(handler, level)
    for talkative in ("mcp", "uvicorn"):  # a line for every request, and for every start
        logging.getLogger(talkative).setLevel(logging.WARNING)


def _log_to(handler: logging.Handler, level: str) -> None:
    handler.setFormatter(_Formatter(_LOG_FORMAT))
    logging.basicConfig(handlers=[handler], level=level)
