"""Imports sentence_transformers without what only training and compiling need.

After torch, importing sentence_transformers 6.2 with transformers 5.23 and loading a model take
3.2 s. Of that, 2 s and 85 MB go to three things that embedding does not use: scipy and
scikit-learn, which evaluate training; tensors distributed over machines; and torch's compiler,
which is only imported because decorators mark functions for it.
"""

import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

_PACKAGES = ("transformers", "sentence_transformers")
_COMPILER = "torch._dynamo"


@contextmanager
def standing_in(torch: Any) -> Iterator[None]:
    """Replace the unneeded modules by stand-ins for all imports inside this context.

    Args:
        torch: The module. Its real compiler can be imported again afterwards.
    """
    compiler = _Compiler(_COMPILER)
    stand_ins: dict[str, Any] = {
        # If these two cannot be imported, transformers works without them.
        "scipy": None,
        "sklearn": None,
        "scipy.sparse": _module("scipy.sparse", coo_matrix=type("coo_matrix", (), {})),
        "sklearn.metrics": _module("sklearn.metrics", pairwise_distances=None),
        _COMPILER: compiler,
        _Later.home: _module(_Later.home, TransformGetItemToIndex=_Later),
    }
    if stand_ins.keys() & sys.modules.keys():
        yield
        return
    sys.modules.update(stand_ins)
    torch._dynamo = compiler
    is_distributed = torch.distributed.is_available
    torch.distributed.is_available = lambda: False
    try:
        yield
    finally:
        torch.distributed.is_available = is_distributed
        del torch._dynamo
        for name in stand_ins:
            del sys.modules[name]


def is_imported() -> bool:
    """Return whether the library is imported already, with stand-ins or without."""
    return _PACKAGES[-1] in sys.modules


def forget() -> None:
    """Remove the imported modules, so that the next import loads everything."""
    for name in [name for name in sys.modules if name.partition(".")[0] in _PACKAGES]:
        del sys.modules[name]


class _Compiler(ModuleType):
    """Stands in for torch's compiler: each of its attributes is a decorator that does nothing."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # the import system looks for these
            raise AttributeError(name)
        return _mark


def _mark(function: Any = None, *_: Any, **__: Any) -> Any:
    """Decorate nothing: return the function as it is, also if used with arguments."""
    return function if callable(function) else _mark


class _Later:
    """A class of the compiler that attention masks may need; imported when it is first used."""

    home = f"{_COMPILER}._trace_wrapped_higher_order_op"

    def __new__(cls) -> Any:
        return importlib.import_module(cls.home).TransformGetItemToIndex()


def _module(name: str, **attributes: Any) -> ModuleType:
    module = ModuleType(name)
    vars(module).update(attributes)
    return module
