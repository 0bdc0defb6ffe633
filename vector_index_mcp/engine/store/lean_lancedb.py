"""Imports LanceDB without what a local index never needs: in a third of the time, 27 MB less.

If a version of LanceDB needs more than is left, it is imported whole, at the usual cost.
"""

import importlib
import importlib.util
import logging
import os
import re
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import ModuleType
from typing import Any

from vector_index_mcp.engine.deferred import validators_when_used

_log = logging.getLogger(__name__)

_POSITIVE_NUMBERS = ("LANCE_IO_THREADS", "LANCE_CPU_THREADS", "LANCE_IO_CORE_RESERVATION")
_CLOUD_FILE_SYSTEMS = ("pyarrow._s3fs", "pyarrow._gcsfs", "pyarrow._azurefs", "pyarrow._hdfs")
_FILE_SYSTEMS = "pyarrow.fs"  # works without the modules above
_DATASETS = "pyarrow.dataset"
_CLIENT = "lance_namespace_urllib3_client"
_PACKAGES = ("lancedb", "lance_namespace", _CLIENT)
_NATIVE = "lancedb._lancedb"  # cannot be loaded twice


def load() -> None:
    """Import lancedb, unless it has been imported already."""
    # By default, lance logs much to stderr that is of no use to users.
    os.environ.setdefault("LANCEDB_LOG", "error")
    # Arrow's own allocator keeps freed memory: 16 MB more in an idle service (measured).
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
    _find_temporary_folder()
    _drop_senseless_numbers()
    if "lancedb" in sys.modules:
        return
    try:
        _leave_out_the_rest_client()
        with _without_datasets(), _overrides_unchecked(), validators_when_used():
            import lancedb
    except (ImportError, AttributeError, TypeError, RuntimeError):  # it needs a module left out
        _forget()
        import lancedb  # noqa: F401


def _find_temporary_folder() -> None:
    """Set TMPDIR to the folder that Python takes, if it names none that can be written.

    Lance sorts rows below TMPDIR, or below /tmp if that is not set, and takes no other folder.
    """
    if os.name == "posix":
        with suppress(FileNotFoundError):  # no folder can be written
            if (found := tempfile.gettempdir()) != os.environ.get("TMPDIR", "/tmp"):
                os.environ["TMPDIR"] = found


def _drop_senseless_numbers() -> None:
    """Remove variables with which Lance waits for ever or panics, as if they were not set."""
    for name in _POSITIVE_NUMBERS:
        value = os.environ.get(name, "1")
        if not (value.isascii() and value.isdigit() and int(value)):
            _log.warning("%s=%r is no positive number and is left out", name, value)
            del os.environ[name]


def _forget() -> None:
    """Remove the imported modules, so that the next import loads everything."""
    for name in list(sys.modules):
        if name.partition(".")[0] in _PACKAGES and name != _NATIVE:
            del sys.modules[name]


class _Later(type):
    """Stands in for a data type of the REST client, which is imported for its first value."""

    def __call__(cls, *args: Any, **fields: Any) -> Any:
        module = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", cls.__name__).lower()
        actual = getattr(importlib.import_module(f"{_CLIENT}.models.{module}"), cls.__name__)
        return actual(*args, **fields)


def _leave_out_the_rest_client() -> None:
    """Let `import lancedb` work without the client of its remote service.

    lancedb 0.40 uses only the names of the client's data types, and a local index makes a value of
    one of them. The client has 60 modules, and 130 more of data types: 0.7 of lancedb's 1.2 s, and
    18 MB. Two stand-in modules replace it, which only know where their submodules lie.
    """
    spec = None if _CLIENT in sys.modules else importlib.util.find_spec(_CLIENT)
    if spec is None or spec.submodule_search_locations is None:
        return
    package, models = ModuleType(_CLIENT), ModuleType(f"{_CLIENT}.models")
    package.__spec__ = spec
    package.__path__ = list(spec.submodule_search_locations)
    models.__path__ = [f"{place}/models" for place in package.__path__]

    def type_named(name: str) -> type:
        if name.startswith("_"):  # the import system looks for these
            raise AttributeError(name)
        setattr(models, name, later := _Later(name, (), {}))
        return later

    models.__getattr__ = type_named  # type: ignore[method-assign]
    package.models = models  # type: ignore[attr-defined]
    sys.modules.update({_CLIENT: package, models.__name__: models})


class _Datasets(ModuleType):
    """Stands in for pyarrow.dataset; other attributes come from the real module."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or sys.modules.get(_DATASETS) is self:
            raise AttributeError(name)
        return getattr(importlib.import_module(_DATASETS), name)


class _DatasetType(type):
    """Stands in for a type of pyarrow.dataset; it has no instances until the real one exists."""

    def __instancecheck__(cls, value: Any) -> bool:
        actual = sys.modules.get(_DATASETS)
        return actual is not None and isinstance(value, getattr(actual, cls.__name__))

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(getattr(importlib.import_module(_DATASETS), cls.__name__), name)


@contextmanager
def _without_datasets() -> Iterator[None]:
    """Let `import lancedb` work without Arrow's data sets and cloud file systems: 9 MB less.

    lancedb only checks whether its input is a data set, which ours never is; the stand-in is
    enough for that. Later imports of pyarrow.dataset or pyarrow.fs get the real modules.
    """
    if {_DATASETS, _FILE_SYSTEMS} & sys.modules.keys():
        yield
        return
    import pyarrow

    datasets: Any = _Datasets(_DATASETS)
    datasets.Dataset = _DatasetType("Dataset", (), {})
    datasets.Scanner = _DatasetType("Scanner", (), {})
    not_to_be_had: Any = None
    sys.modules.update({**dict.fromkeys(_CLOUD_FILE_SYSTEMS, not_to_be_had), _DATASETS: datasets})
    pyarrow.dataset = datasets
    try:
        yield
    finally:
        for name in (*_CLOUD_FILE_SYSTEMS, _FILE_SYSTEMS, _DATASETS):
            sys.modules.pop(name, None)
        vars(pyarrow).pop("fs", None)


@contextmanager
def _overrides_unchecked() -> Iterator[None]:
    """Replace `@override` by a decorator that does nothing.

    Before Python 3.12 lancedb uses the package overrides, which reads the byte code around every
    use of the decorator: 0.08 of 0.5 s.
    """
    if "overrides" in sys.modules:
        yield
        return
    marks: Any = ModuleType("overrides")
    marks.EnforceOverrides = type("EnforceOverrides", (), {})
    marks.override = lambda method: method
    sys.modules[marks.__name__] = marks
    try:
        yield
    finally:
        del sys.modules[marks.__name__]
