"""The records of files in a published index: key, hash and number of chunks of each. Pure.

Nothing else of the table `files` is published: stamps mean nothing on another machine, and every
machine finds out by itself which files to skip.
"""

import json
import re
from collections.abc import Iterable
from typing import Any

from vector_index_mcp.engine.types import FileRecord
from vector_index_mcp.errors import DamagedIndexError
from vector_index_mcp.files.scan import CLAIMED
from vector_index_mcp.indexing.mirroring import limits
from vector_index_mcp.indexing.preparing.file import is_storable
from vector_index_mcp.indexing.reasons import INDEXED

_HASH = re.compile(r"[0-9a-f]{64}")


def published(records: Iterable[FileRecord]) -> list[FileRecord]:
    """The records that others may use: those of files that were indexed without any problem."""
    return [r for r in records if r.state == INDEXED and not r.reason and is_storable(r.key)]


def dumped(records: Iterable[FileRecord]) -> bytes:
    """The JSON document of `records`; the same bytes for the same files."""
    rows = sorted([r.key, r.content_hash, r.chunk_count] for r in records)
    return json.dumps(rows, ensure_ascii=False, separators=(",", ":")).encode()


def loaded(data: bytes) -> list[FileRecord]:
    """The records in a JSON document, with the stamp CLAIMED.

    Raises:
        DamagedIndexError: If the document is invalid.
    """
    try:
        rows = json.loads(data)
        if not isinstance(rows, list) or len(rows) > limits.MOST_RECORDS:
            raise ValueError("it is no list, or too long")
        records = [_record(*row) for row in rows]
    except (TypeError, ValueError, RecursionError) as error:
        raise DamagedIndexError(f"its records of files are invalid ({error})") from error
    if len({record.key for record in records}) != len(records):
        raise DamagedIndexError("it has two records of one file")
    return records


def _record(key: Any, content_hash: Any, chunk_count: Any) -> FileRecord:
    is_sound = (
        isinstance(key, str)
        and 0 < len(key) <= limits.LONGEST_KEY
        and isinstance(content_hash, str)
        and _HASH.fullmatch(content_hash) is not None
        and type(chunk_count) is int
        and 0 <= chunk_count < limits.MOST_RECORDS
    )
    if not is_sound:
        raise ValueError("a record is invalid")
    return FileRecord(key, CLAIMED, content_hash, chunk_count, INDEXED, "")
