"""The models that embed queries: that of the settings, and those that datasets were made with.

A manifest is foreign. The model that it names is looked for on this machine, and never downloaded;
a path instead of a name is refused.
"""

from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import anyio
import anyio.abc

from vector_index_mcp.engine.models.embedder import Embedder
from vector_index_mcp.engine.models.model import (
    full_name,
    is_hub_name,
    looks_like_folder,
    model_on_this_machine,
)
from vector_index_mcp.engine.types import Vector
from vector_index_mcp.errors import ModelNotFoundError

_MOST_OTHERS = 2  # loaded at the same time: each is a process of half a gigabyte
_HUB = "sentence-transformers/"
_BY_PATH = "the dataset's manifest names a model by a path; use its name on the hub instead"
_NO_NAME = "the dataset's manifest names a model by what is no name of a model on the hub"


@dataclass(slots=True)
class _Other:
    """A model beside that of the settings."""

    embedder: Embedder
    users: int = 0
    """How many queries it is embedding."""
    unwanted: anyio.Event = field(default_factory=anyio.Event)
    started: anyio.Event = field(default_factory=anyio.Event)
    ended: anyio.Event = field(default_factory=anyio.Event)


class Models:
    """The models of one service; usable while `running` is open."""

    def __init__(self, usual: str, embedder: Embedder, other: Callable[[str], Embedder]) -> None:
        """Set up the models; nothing is loaded yet.

        Args:
            usual: The model of the settings.
            embedder: The embedder for that model.
            other: Makes an embedder for another model, which it does not download.
        """
        self.usual = usual
        self._embedder, self._other = embedder, other
        self._others: dict[str, _Other] = {}
        """The other models by name, least recently used first."""
        self._choosing = anyio.Lock()
        self._limiter = anyio.Semaphore(_MOST_OTHERS)
        self._tasks: anyio.abc.TaskGroup | None = None

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Run the models: queries can be embedded while this context is open."""
        async with self._embedder.running(), anyio.create_task_group() as self._tasks:
            yield
            self._tasks.cancel_scope.cancel()

    def lacks(self, models: Iterable[str]) -> dict[str, str]:
        """Say by model why its datasets cannot be searched; empty if they can. Blocks."""
        return {model: self._lack_of(model) for model in models}

    def _lack_of(self, model: str) -> str:
        if plain(model) == plain(self.usual):
            return ""
        if refusal := _refusal_of(model):
            return refusal
        try:
            is_here = model_on_this_machine(model) is not None
        except ModelNotFoundError as error:
            return str(error)
        if is_here:
            return ""
        name = full_name(model)
        return f"its model {name} is not on this machine; get it with `hf download {name}`"

    async def embedded(self, model: str, query: str) -> tuple[Vector, str]:
        """Return a query's vector from a model, and the digest of the model's weights.

        Raises:
            EmbeddingError: If the query cannot be embedded.
            ModelNotFoundError: If the model is not on this machine.
        """
        if plain(model) == plain(self.usual):
            return await _embedded(self._embedder, query)
        if refusal := _refusal_of(model):
            raise ModelNotFoundError(refusal)
        async with self._limiter:
            other = await self._chosen(model)
            try:
                return await _embedded(other.embedder, query)
            except ModelNotFoundError:
                other.embedder.retry()  # somebody may have downloaded it by the next query
                raise
            finally:
                other.users -= 1

    async def _chosen(self, model: str) -> _Other:
        """Return the model with one more user; load it if needed, in the place of an unused one."""
        assert self._tasks is not None  # callers embed only while it is running
        name = plain(model)
        async with self._choosing:
            other = self._others.pop(name, None)
            if other is None:
                if len(self._others) >= _MOST_OTHERS:
                    unused = next(n for n, each in self._others.items() if not each.users)
                    leaving = self._others.pop(unused)
                    leaving.unwanted.set()
                    await leaving.ended.wait()
                other = _Other(self._other(model))
                self._tasks.start_soon(_run, other)
                await other.started.wait()
            self._others[name] = other
            other.users += 1
        return other


async def _run(other: _Other) -> None:
    try:
        async with other.embedder.running():
            other.started.set()
            await other.unwanted.wait()
    finally:
        other.ended.set()


async def _embedded(embedder: Embedder, query: str) -> tuple[Vector, str]:
    if (at_once := await embedder.query_at_hand(query)) is not None:
        return at_once[0], at_once[1].digest
    [vector] = await embedder.embed([query], are_queries=True)
    return vector, (await embedder.identity()).digest


def plain(model: str) -> str:
    """Return a model's name for comparisons: in lower case, without the hub's usual prefix."""
    return model.removeprefix(_HUB).casefold()


def _refusal_of(model: str) -> str:
    """Return why a model that a manifest names is not looked for; empty if it is.

    The name becomes an argument of a process, and part of a command in an error's remedy.
    """
    if looks_like_folder(model):
        return _BY_PATH
    return "" if is_hub_name(model) else _NO_NAME
