"""Sets up logging: where this process logs to, and the format of a record."""

import logging
from pathlib import Path
from typing import Any

from vector_index_mcp.foreign import visible

_LOG_BYTES = 1_000_000
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
    """Log to a file, as a service does; the file is rotated when it reaches 1 MB."""
    from logging.handlers import RotatingFileHandler

    handler = RotatingFileHandler(path, maxBytes=_LOG_BYTES, backupCount=1, encoding="utf-8")
    _log_to(handler, level)
    for talkative in ("mcp", "uvicorn"):  # they log every request and every start
        logging.getLogger(talkative).setLevel(logging.WARNING)


def _log_to(handler: logging.Handler, level: str) -> None:
    handler.setFormatter(_Formatter(_LOG_FORMAT))
    logging.basicConfig(handlers=[handler], level=level)
