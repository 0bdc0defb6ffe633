"""Opens a store of objects, whatever kind it is of."""

import re
from pathlib import Path

from vector_index_mcp.errors import StorageError
from vector_index_mcp.objects.folder import FolderObjects
from vector_index_mcp.objects.store import Objects

_SCHEME = re.compile(r"([a-z][a-z0-9+.-]*)://")
_BUCKETS = frozenset({"s3", "gs", "az"})  # the schemes of buckets, which are LanceDB's


def opened(uri: str) -> Objects:
    """Return the store at `uri`, a folder or a bucket. Sends no request yet.

    Raises:
        StorageError: If the scheme is unknown, or the library that reads it is not installed.
    """
    scheme = _SCHEME.match(uri)
    if scheme is None:
        return FolderObjects(Path(uri))
    if scheme[1] in _BUCKETS:
        from vector_index_mcp.objects.bucket import BucketObjects  # few starts need it

        return BucketObjects(uri)
    known = ", ".join(f"{name}://" for name in sorted(_BUCKETS))
    raise StorageError(f"{scheme[0]} is not a known kind of store; use a folder, {known}")
