"""The models that embed questions: that of the settings, and those that datasets were made with.

A manifest is foreign. What it names is looked for on this machine and never fetched, and a path is
no name.
"""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import anyio
import anyio.abc

from vector_index_mcp.engine.embedder import Embedder
from vector_index_mcp.engine.model import looks_like_folder
from vector_index_mcp.engine.types import Vector
from vector_index_mcp.errors import ModelNotFoundError

_MOST_OTHERS = 2  # that are loaded: each is a process of half a gigabyte
_HUB = "sentence-transformers/"


@dataclass(slots=True)
class _Other:
    """A model beside that of the settings, and how many questions are asked of it."""

    embedder: Embedder
    users: int = 0
    unwanted: anyio.Event = field(default_factory=anyio.Event)
    started: anyio.Event = field(default_factory=anyio.Event)
    ended: anyio.Event = field(default_factory=anyio.Event)


class Models:
    """The models of one service; usable while it is `running`."""

    def __init__(self, usual: str, embedder: Embedder, other: Callable[[str], Embedder]) -> None:
        """Prepare; nothing is loaded yet.

        Args:
            usual: The model of the settings.
            embedder: Embeds with it.
            other: Makes what embeds with another model, which it does not fetch.
        """
        self.usual = usual
        self._embedder, self._other = embedder, other
        self._others: dict[str, _Other] = {}
        """By name; whose turn was longest ago comes first."""
        self._choosing = anyio.Lock()
        self._limiter = anyio.Semaphore(_MOST_OTHERS)
        self._tasks: anyio.abc.TaskGroup | None = None

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """The time in which questions can be embedded."""
        async with self._embedder.running(), anyio.create_task_group() as self._tasks:
            yield
            self._tasks.cancel_scope.cancel()

    async def embedded(self, model: str, query: str) -> tuple[Vector, str]:
        """What a question means to a model, and the digest of its weights.

        Raises:
            EmbeddingError: If the question cannot be embedded.
            ModelNotFoundError: If the model is not here.
        """
        if plain(model) == plain(self.usual):
            return await _embedded(self._embedder, query)
        if looks_like_folder(model):
            raise ModelNotFoundError("a dataset names a model as the hub does, and no path")
        async with self._limiter:
            other = await self._chosen(model)
            try:
                return await _embedded(other.embedder, query)
            except ModelNotFoundError:
                other.embedder.retry()  # somebody may fetch it meanwhile
                raise
            finally:
                other.users -= 1

    async def _chosen(self, model: str) -> _Other:
        """That model, in use by one more, in the place of one that nobody uses."""
        assert self._tasks is not None  # else nobody asks
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
    if (at_once := await embedder.asked(query)) is not None:
        return at_once[0], at_once[1].digest
    [vector] = await embedder.embed([query], urgent=True)
    return vector, (await embedder.identity()).digest


def plain(model: str) -> str:
    """A model's name, however it is written."""
    return model.removeprefix(_HUB).casefold()
