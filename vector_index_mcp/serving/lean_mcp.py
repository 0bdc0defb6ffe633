"""MCP's library without what a session over a stream never needs: 0.3 of 0.7 s, 25 MB less.

`mcp` 2.3 imports its client, OAuth, HTTP and what serves that, and makes a validator of each of 500
models for all versions of the protocol. A version that needs more than this one gets all of it.
"""

import importlib
import importlib.util
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

from vector_index_mcp.engine.deferred import validators_when_used

_SERVER = "mcp.server.mcpserver.server"
_PACKAGES = ("mcp", "mcp_types")
_LEFT_OUT = (
    "mcp.server.auth.middleware.bearer_auth",
    "mcp.server.auth.routes",
    "mcp.server.sse",
    "mcp.server.streamable_http",
    "mcp.server.streamable_http_manager",
    "httpx2",
    "starlette",
    "starlette.applications",
    "starlette.datastructures",
    "starlette.middleware",
    "starlette.middleware.authentication",
    "starlette.requests",
    "starlette.responses",
    "starlette.routing",
    "starlette.types",
)


def load() -> None:
    """Import what a server on a stream needs, unless the library is there already."""
    if "mcp" in sys.modules:
        return
    try:
        _leave_out_the_client()
        with _without_http(), validators_when_used():
            server = importlib.import_module(_SERVER)
        # It would import rich, for a log that we have set up already.
        server.configure_logging = lambda _: None  # type: ignore[attr-defined]
    except (ImportError, AttributeError, TypeError, RuntimeError):  # it needs more than we know
        _forget()


def complete() -> None:
    """Give the library what it was loaded without, because it is to serve HTTP."""
    for name in [name for name in sys.modules if name.partition(".")[0] in _PACKAGES]:
        names = vars(sys.modules[name])
        for key, value in list(names.items()):
            if isinstance(value, _Later):
                names[key] = value.actual
            elif isinstance(value, _Absent):
                names[key] = importlib.import_module(value.__name__)


def _forget() -> None:
    """Undo what was imported, so that the next import is a whole one."""
    for name in [name for name in sys.modules if name.partition(".")[0] in _PACKAGES]:
        del sys.modules[name]


class _Package(ModuleType):
    """Stands in for a package until somebody wants one of its own names."""

    def __getattr__(self, name: str) -> Any:
        spec = self.__spec__
        if name.startswith("__") or spec is None or spec.loader is None:
            raise AttributeError(name)
        self.__class__ = ModuleType  # type: ignore[assignment]
        spec.loader.exec_module(self)
        return getattr(self, name)


def _leave_out_the_client() -> None:
    """Let `mcp.server` be imported without what `mcp` itself imports, its client above all."""
    spec = importlib.util.find_spec("mcp")
    if spec is not None and spec.submodule_search_locations is not None:
        package = _Package("mcp")
        package.__spec__ = spec
        package.__path__ = list(spec.submodule_search_locations)
        sys.modules["mcp"] = package


class _Later(type):
    """A name of a module that was left out; whoever calls it gets the actual one."""

    @property
    def actual(cls) -> Any:
        """What it stands for."""
        return getattr(importlib.import_module(cls.__module__), cls.__name__)

    def __call__(cls, *args: Any, **named: Any) -> Any:
        return cls.actual(*args, **named)

    def __instancecheck__(cls, value: Any) -> bool:
        return cls.__module__ in sys.modules and isinstance(value, cls.actual)


class _Absent(ModuleType):
    """Stands in for a module that was left out."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        later = _Later(name, (), {"__module__": self.__name__})
        setattr(self, name, later)
        return later


@contextmanager
def _without_http() -> Iterator[None]:
    """Leave out what serves HTTP; whoever imports it afterwards gets the real one."""
    absent = [name for name in _LEFT_OUT if name not in sys.modules]
    for name in absent:
        module = _Absent(name)
        module.__path__ = []
        sys.modules[name] = module
    try:
        yield
    finally:
        for name in absent:
            del sys.modules[name]
