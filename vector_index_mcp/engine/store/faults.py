"""LanceDB's errors as ours.

LanceDB raises ValueError for arguments and schemas and a bare RuntimeError for everything that
happens on disk, so the kind of a fault can only be read off its text.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from vector_index_mcp.errors import DamagedIndexError, StoreError

# (part of LanceDB's message, what to tell the person)
_REMEDIES = (
    ("No space left", "the disk is full; free some space, indexing goes on by itself"),
    ("Read-only file system", "the folder is read-only; set VECTOR_INDEX_LANCEDB_URI to another"),
    ("Permission denied", "no permission; set VECTOR_INDEX_LANCEDB_URI to a folder you may write"),
    ("Too many open files", "too many open files; raise the limit (ulimit -n) and restart"),
    ("Disk quota exceeded", "the disk quota is used up; free some space"),
)
_DAMAGE = (
    "Invalid range",
    "file size is too small",
    "failed to decode",
    "failed to fill whole buffer",
    "Not found",
    "was not found",
    "Invalid user input",
    "corrupt",
    "magic",
    "buffer overflow",
    "out of range",
)


@contextmanager
def translated(action: str) -> Iterator[None]:
    """Turn what LanceDB raises while we are `action` (as in "writing") into StoreError."""
    try:
        yield
    except (RuntimeError, ValueError, OSError) as error:
        text = str(error)
        for part, remedy in _REMEDIES:
            if part in text:
                raise StoreError(f"{action} the index failed: {remedy}") from error
        summary = " ".join(text.split())[:300]
        kind = DamagedIndexError if any(part in text for part in _DAMAGE) else StoreError
        raise kind(
            f"{action} the index failed: {summary} "
            "(trigger_index with force_reindex=true builds a new one)"
        ) from error
    except BaseException as error:
        # A panic inside lance reaches Python as an exception that is not an Exception.
        if type(error).__name__ in {"RustPanic", "PanicException"}:
            raise DamagedIndexError(
                f"{action} the index failed inside LanceDB: {error} "
                "(trigger_index with force_reindex=true builds a new one)"
            ) from error
        raise
