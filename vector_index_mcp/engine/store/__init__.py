"""The index on disk: two LanceDB tables and a manifest. The only importer of lancedb and pyarrow.

Importing it takes about a second (lancedb does), so nothing that answers `initialize` does.
"""

import os

# lance logs to stderr by itself, mostly what concerns nobody; it looks at this when imported.
os.environ.setdefault("LANCEDB_LOG", "error")

from vector_index_mcp.engine.store.index import Index
from vector_index_mcp.engine.store.store import Store

__all__ = ["Index", "Store"]
