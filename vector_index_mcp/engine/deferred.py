"""Pydantic's models of libraries, defined without their validators, of which few are ever used."""

from collections.abc import Iterator
from contextlib import contextmanager
from types import UnionType
from typing import Annotated, Any, Union, get_origin


@contextmanager
def validators_when_used() -> Iterator[None]:
    """Have models and unions that are defined meanwhile make their validators at the first use."""
    from pydantic import BaseModel, TypeAdapter

    usual, make = BaseModel.model_config, TypeAdapter.__init__
    later = {**usual, "defer_build": True}

    def make_later(self: Any, kind: Any, *, _parent_depth: int = 2, **options: Any) -> None:
        if get_origin(kind) in (Union, UnionType, Annotated):  # a model has settings of its own
            options = {"config": later, **options}
        make(self, kind, **options, _parent_depth=_parent_depth + 1)

    BaseModel.model_config, TypeAdapter.__init__ = later, make_later  # type: ignore[assignment,method-assign]
    try:
        yield
    finally:
        BaseModel.model_config, TypeAdapter.__init__ = usual, make  # type: ignore[method-assign]
