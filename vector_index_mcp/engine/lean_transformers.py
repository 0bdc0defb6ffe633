"""sentence_transformers without what only training and compiling need.

After torch, importing sentence_transformers 6.2 with transformers 5.23 and loading a model take
3.2 s. 2 s and 85 MB of that are scipy and scikit-learn, which measure what is trained; tensors that
are spread over machines; and the compiler of torch, which nobody asks: functions are marked for it.
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
    """Let what is not needed be left out of whatever is imported meanwhile.

    Args:
        torch: The module. It finds its compiler again later, for whoever really compiles.
    """
    compiler = _Compiler(_COMPILER)
    stand_ins: dict[str, Any] = {
        # Without them transformers does without; with them it would want more of them.
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


def forget() -> None:
    """Undo what was imported, so that the next import is a whole one."""
    for name in [name for name in sys.modules if name.partition(".")[0] in _PACKAGES]:
        del sys.modules[name]


class _Compiler(ModuleType):
    """Takes every mark, and leaves what it marks as it is."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # what the import system asks for
            raise AttributeError(name)
        return _mark


def _mark(function: Any = None, *_: Any, **__: Any) -> Any:
    """A decorator that does nothing, with and without arguments."""
    return function if callable(function) else _mark


class _Later:
    """Part of the compiler that masks of attention may need, imported when the first is made."""

    home = f"{_COMPILER}._trace_wrapped_higher_order_op"

    def __new__(cls) -> Any:
        return importlib.import_module(cls.home).TransformGetItemToIndex()


def _module(name: str, **attributes: Any) -> ModuleType:
    module = ModuleType(name)
    vars(module).update(attributes)
    return module
