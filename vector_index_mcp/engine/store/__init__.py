"""The index on disk: two LanceDB tables and a manifest. The only importer of lancedb.

Importing it takes 0.4 s, because lancedb does. So nothing that answers `initialize` imports it.
"""

from vector_index_mcp.engine.store import lean_lancedb

lean_lancedb.load()

from vector_index_mcp.engine.store.index import Index  # noqa: E402
from vector_index_mcp.engine.store.store import Store  # noqa: E402

__all__ = ["Index", "Store"]
