"""Imports the MCP library without what a session over a stream never needs.

That takes 0.3 instead of 0.7 s, and 25 MB less: `mcp` 2.3 imports its client, OAuth and an HTTP
server, and makes validators of 500 models for all versions of the protocol. If another version of
the library needs more than this module leaves it, all of the library is imported.
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
    """Import what a server on a stream needs, unless the library is imported already."""
    if "mcp" in sys.modules:
        return
    try:
        _leave_out_the_client()
        with _without_http(), validators_when_used():
            server = importlib.import_module(_SERVER)
        # It would import rich to set up logging, which is set up already.
        server.configure_logging = lambda _: None  # type: ignore[attr-defined]
    except (ImportError, AttributeError, TypeError, RuntimeError):  # it needs what is left out
        _forget()


def complete() -> None:
    """Import what `load` left out, because the library is about to serve HTTP."""
    for name in [name for name in sys.modules if name.partition(".")[0] in _PACKAGES]:
        names = vars(sys.modules[name])
        for key, value in list(names.items()):
            if isinstance(value, _Later):
                names[key] = value.actual
            elif isinstance(value, _Absent):
                names[key] = importlib.import_module(value.__name__)


def _forget() -> None:
    """Undo the import, so that the next one imports all of the library."""
    for name in [name for name in sys.modules if name.partition(".")[0] in _PACKAGES]:
        del sys.modules[name]


class _Package(ModuleType):
    """Stands in for a package until somebody reads one of its names, which executes it."""

    def __getattr__(self, name: str) -> Any:
        spec = self.__spec__
        if name.startswith("__") or spec is None or spec.loader is None:
            raise AttributeError(name)
        self.__class__ = ModuleType  # type: ignore[assignment]
        spec.loader.exec_module(self)
        return getattr(self, name)


def _leave_out_the_client() -> None:
    """Allow the import of `mcp.server` without the imports of `mcp` itself, such as its client."""
    spec = importlib.util.find_spec("mcp")
    if spec is not None and spec.submodule_search_locations is not None:
        package = _Package("mcp")
        package.__spec__ = spec
        package.__path__ = list(spec.submodule_search_locations)
        sys.modules["mcp"] = package


class _Later(type):
    """Stands in for an object of a module that was left out; a call imports and calls it."""

    @property
    def actual(cls) -> Any:
        """The object itself, from the imported module."""
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
    """Replace the modules for HTTP by stand-ins; imports after the context get the real ones."""
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
