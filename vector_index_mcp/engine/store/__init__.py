"""The index on disk: two LanceDB tables and a manifest. The only importer of lancedb and pyarrow.

Importing it takes about half a second (lancedb does), so nothing that answers `initialize` does.
"""

import importlib.util
import os
import sys
from types import ModuleType

# lance logs to stderr by itself, mostly what concerns nobody; it looks at this when imported.
os.environ.setdefault("LANCEDB_LOG", "error")


def _leave_out_the_rest_client() -> None:
    """Let `import lancedb` do without the client of its remote service.

    lancedb 0.40 needs only the data types of that package, but the package's own module imports 60
    more, with half of lancedb's import time (0.6 of 1.2 s) and 13 MB. A module that holds nothing
    but the way to its submodules takes its place.
    """
    name = "lance_namespace_urllib3_client"
    spec = None if name in sys.modules else importlib.util.find_spec(name)
    if spec is not None and spec.submodule_search_locations is not None:
        package = ModuleType(name, "Without its contents: see vector_index_mcp.engine.store.")
        package.__spec__ = spec
        package.__path__ = list(spec.submodule_search_locations)
        sys.modules[name] = package


_leave_out_the_rest_client()

from vector_index_mcp.engine.store.index import Index  # noqa: E402
from vector_index_mcp.engine.store.store import Store  # noqa: E402

__all__ = ["Index", "Store"]
