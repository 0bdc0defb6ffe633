"""Defines the Pydantic models of libraries without their validators: most are never used."""

from collections.abc import Iterator
from contextlib import contextmanager
from types import UnionType
from typing import Annotated, Any, Union, get_origin


@contextmanager
def validators_when_used() -> Iterator[None]:
    """Make models and unions defined in this context build their validators at the first use."""
    from pydantic import BaseModel, TypeAdapter

    usual, make = BaseModel.model_config, TypeAdapter.__init__
    later = {**usual, "defer_build": True}

    def make_later(self: Any, kind: Any, *, _parent_depth: int = 2, **options: Any) -> None:
        if get_origin(kind) in (Union, UnionType, Annotated):  # models have their own config
            options = {"config": later, **options}
        make(self, kind, **options, _parent_depth=_parent_depth + 1)

    BaseModel.model_config, TypeAdapter.__init__ = later, make_later  # type: ignore[assignment,method-assign]
    try:
        yield
    finally:
        BaseModel.model_config, TypeAdapter.__init__ = usual, make  # type: ignore[method-assign]
