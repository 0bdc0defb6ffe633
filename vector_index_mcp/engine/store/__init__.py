"""The index on disk: two LanceDB tables and a manifest. The only importer of lancedb and pyarrow.

Importing it takes about half a second (lancedb does), so nothing that answers `initialize` does.
"""

import importlib
import importlib.util
import os
import re
import sys
from types import ModuleType
from typing import Any

# lance logs to stderr by itself, mostly what concerns nobody; it looks at this when imported.
os.environ.setdefault("LANCEDB_LOG", "error")
# Arrow's own allocator keeps what it once had: 16 MB more of an idle service, measured.
os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")


# pyarrow.fs does without those of its file systems that cannot be imported.
_CLOUD_FILE_SYSTEMS = ("pyarrow._s3fs", "pyarrow._gcsfs", "pyarrow._azurefs", "pyarrow._hdfs")
_CLIENT = "lance_namespace_urllib3_client"


class _Later(type):
    """A data type of the REST client that is imported when the first value of it is made."""

    def __call__(cls, *args: Any, **fields: Any) -> Any:
        module = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", cls.__name__).lower()
        actual = getattr(importlib.import_module(f"{_CLIENT}.models.{module}"), cls.__name__)
        return actual(*args, **fields)


def _leave_out_the_rest_client() -> None:
    """Let `import lancedb` do without the client of its remote service.

    lancedb 0.40 needs nothing of it but the names of data types, of which a local index makes
    one. The package is 60 modules of a client and 130 of data types: 0.7 of lancedb's 1.2 s and
    18 MB. Two modules that hold nothing but the way to their submodules take its place.
    """
    spec = None if _CLIENT in sys.modules else importlib.util.find_spec(_CLIENT)
    if spec is None or spec.submodule_search_locations is None:
        return
    package, models = ModuleType(_CLIENT), ModuleType(f"{_CLIENT}.models")
    package.__spec__ = spec
    package.__path__ = list(spec.submodule_search_locations)
    models.__path__ = [f"{place}/models" for place in package.__path__]

    def type_named(name: str) -> type:
        if name.startswith("_"):  # what the import system asks for
            raise AttributeError(name)
        setattr(models, name, later := _Later(name, (), {}))
        return later

    models.__getattr__ = type_named  # type: ignore[method-assign]
    package.models = models  # type: ignore[attr-defined]
    sys.modules.update({_CLIENT: package, models.__name__: models})


def _leave_out_datasets() -> None:
    """Let `import lancedb` do without Arrow's data sets and cloud file systems: 9 MB.

    lancedb looks whether what it is given is a data set, which ours never is.
    """
    if "pyarrow.dataset" in sys.modules:
        return
    import pyarrow

    not_to_be_had: Any = None
    sys.modules.update(dict.fromkeys(_CLOUD_FILE_SYSTEMS, not_to_be_had))
    datasets: Any = ModuleType("pyarrow.dataset")
    datasets.Dataset, datasets.Scanner = type("Dataset", (), {}), type("Scanner", (), {})
    sys.modules["pyarrow.dataset"] = pyarrow.dataset = datasets


_leave_out_the_rest_client()
_leave_out_datasets()

from vector_index_mcp.engine.store.index import Index  # noqa: E402
from vector_index_mcp.engine.store.store import Store  # noqa: E402

__all__ = ["Index", "Store"]
