"""What a published index says of the files: which were indexed, and of which bytes. Pure.

Nothing else of the table `files` is published: stamps are of the machine that read the files, and
why a file was skipped is found out here.
"""

import json
import re
from collections.abc import Iterable
from typing import Any

from vector_index_mcp.engine.types import FileRecord
from vector_index_mcp.errors import DamagedIndexError
from vector_index_mcp.indexing.ledger import CLAIMED, INDEXED
from vector_index_mcp.indexing.mirroring import limits
from vector_index_mcp.indexing.preparing.file import is_storable

_HASH = re.compile(r"[0-9a-f]{64}")


def published(records: Iterable[FileRecord]) -> list[FileRecord]:
    """Those of `records` that others may use: of files that were indexed as they should be."""
    return [r for r in records if r.state == INDEXED and not r.reason and is_storable(r.key)]


def dumped(records: Iterable[FileRecord]) -> bytes:
    """The document about `records`; the same for the same files."""
    rows = sorted([r.key, r.content_hash, r.chunk_count] for r in records)
    return json.dumps(rows, ensure_ascii=False, separators=(",", ":")).encode()


def loaded(data: bytes) -> list[FileRecord]:
    """The records in a document, of files that nobody has looked at here.

    Raises:
        DamagedIndexError: If it makes no sense.
    """
    try:
        rows = json.loads(data)
        if not isinstance(rows, list) or len(rows) > limits.MOST_RECORDS:
            raise ValueError("it is no list, or too long")
        records = [_record(*row) for row in rows]
    except (TypeError, ValueError, RecursionError) as error:
        raise DamagedIndexError(f"what it says of the files makes no sense ({error})") from error
    if len({record.key for record in records}) != len(records):
        raise DamagedIndexError("it says of a file two things")
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
        raise ValueError("a record is none")
    return FileRecord(key, CLAIMED, content_hash, chunk_count, INDEXED, "")
