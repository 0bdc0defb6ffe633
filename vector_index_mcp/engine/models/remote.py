"""Turns texts into vectors with a user's server that has OpenAI's API. Imports no model library.

The server may get another model at any moment: after a restart, or behind the same name. So every
request also contains the probe (`probed_model`), whose vector shows which model answered.
"""

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Self

import anyio
import anyio.abc
import anyio.to_thread
import numpy as np

from vector_index_mcp.engine.models.cache import EmbeddingCache
from vector_index_mcp.engine.models.embedder import Embedder, EmbedderState
from vector_index_mcp.engine.models.judging_apart import JudgedApart
from vector_index_mcp.engine.models.openai_api import OpenAiApi
from vector_index_mcp.engine.models.probed_model import PROBE, ProbedModel, Server
from vector_index_mcp.engine.models.server_vectors import (
    Encoding,
    in_requests,
    most_bytes,
    normalised,
    sendable,
    vectors_in,
)
from vector_index_mcp.engine.types import ModelIdentity, Vector, Vectors
from vector_index_mcp.errors import (
    EmbeddingError,
    ModelNotFoundError,
    Problem,
    ServerError,
    SettingsError,
    counted,
    sentence,
)

_log = logging.getLogger(__name__)

_MOST_TRIES_OF_500 = 3  # some servers answer 500 to a text that they cannot embed
_MOST_TRIES_TO_CONNECT = 2  # after that it is gone, and whoever waits is better served without it
_MOST_CHANGES = 3
_LONGEST_NAME_CHARS = 100
_UNAUTHORIZED, _FORBIDDEN, _NOT_FOUND, _NOT_IMPLEMENTED = 401, 403, 404, 501
_OVERLOADED = frozenset({408, 425, 429, 503, 529})
_BAD_REQUEST = frozenset({400, 415, 422})


@dataclass(frozen=True, slots=True)
class Patience:
    """How long we wait for the server, in seconds."""

    answer: float = 60.0
    """For one answer."""
    query: float = 3.0
    """For the vector of a query; after that, the query is answered by words alone."""
    pause: float = 0.2
    """Before the first repetition of a request; twice as long before each further one."""
    longest_pause: float = 30.0
    """The longest pause, even if the server asks for a longer one."""
    total: float = 60.0
    """For one request: all its pauses and failed answers together."""
    short_total: float = 2.0
    """The same, for a query and for a check whether the server is there."""
    look: float = 2.0
    """Before the second check whether the server is there; twice as long before each next one."""
    longest_look: float = 60.0
    """The longest pause between two such checks."""


class ServerEmbedder(JudgedApart):
    """The embedder of a service that uses a server. Usable inside `async with x.running()`."""

    def __init__(
        self,
        server: Server,
        cache: EmbeddingCache,
        reranker: Embedder,
        *,
        key_of: Callable[[], str],
        mask: Callable[[str], str],
        remedy_of: Callable[[Problem], str],
        patience: Patience | None = None,
        sleep: Callable[[float], Awaitable[None]] = anyio.sleep,
    ) -> None:
        """Prepare; nothing is sent yet.

        Args:
            server: The server.
            cache: A cache for the probe alone, to recognise the model after a restart.
            reranker: The embedder whose cross-encoder judges; it may have none.
            key_of: Returns the bearer token; empty for none. Called before each check whether the
                server is there. It may raise OSError or SettingsError.
            mask: Replaces the credentials in a text before the text is sent.
            remedy_of: Returns what to do about a problem with the server.
            patience: How long we wait for the server.
            sleep: Waits the given seconds before a request is repeated.
        """
        super().__init__(reranker)
        self._server, self._cache = server, cache
        self._model = ProbedModel(server, cache)
        self._key_of, self._mask, self._remedy_of = key_of, mask, remedy_of
        self._patience, self._sleep = patience or Patience(), sleep
        self._api = OpenAiApi(server.url, is_local=server.is_local)
        self._tasks: anyio.abc.TaskGroup | None = None
        self._is_connecting = False
        self._wanted = anyio.Event()
        self._changed = anyio.Event()
        self._encoding: Encoding = "base64"
        self._name_there = ""
        self._batches = anyio.Lock()
        self._queries = 0
        self._no_queries = anyio.Event()
        self.state: EmbedderState = "off"
        self.reason = ""
        self.precision = ""

    @property
    def notice(self) -> str:
        """See `Embedder`."""
        server = self._server
        words = f"texts are embedded by the server at {server.host}"
        if not server.is_local:
            words += ": they leave this machine, and so do queries"
        if self.is_misnamed:
            words += f"; asked for the model {server.model}, it answers with {self._name_there}"
        return words

    @property
    def is_misnamed(self) -> bool:
        """Whether the server names another model in its answers than the one we asked for."""
        return self._name_there not in ("", self._server.model)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Self]:
        """Allow requests to the server while the context is open; close all connections after."""
        async with AsyncExitStack() as stack:
            stack.callback(self._cache.close)
            await stack.enter_async_context(self._reranker.running())
            await stack.enter_async_context(self._api.open())
            self._tasks = await stack.enter_async_context(anyio.create_task_group())
            try:
                yield self
            finally:
                tasks, self._tasks = self._tasks, None
                tasks.cancel_scope.cancel()

    def start(self) -> None:
        """See `Embedder`."""
        if self.state == "off" and self._tasks is not None:
            self._set_state("loading")
            self._connect()

    def retry(self) -> None:
        """See `Embedder`."""
        self._reranker.retry()
        if self.state == "unavailable":
            self._set_state("loading" if self._is_connecting else "off")
            self._wanted.set()

    async def identity(self) -> ModelIdentity:
        """Return which model it is; see `Embedder`."""
        self.start()
        while self.state != "ready" or self._model.identity is None:
            if self.state == "unavailable":
                raise ModelNotFoundError(self.reason)
            await self._changed.wait()
            self.start()
        return self._model.identity

    async def identity_at_hand(self) -> ModelIdentity | None:
        """Return which model it is, if that is known; see `Embedder`."""
        return self._model.identity

    async def query_at_hand(self, text: str) -> tuple[Vector, ModelIdentity] | None:
        """See `Embedder`."""
        try:
            with anyio.fail_after(self._patience.query):
                return await self._embedded_query(text)
        except (EmbeddingError, TimeoutError):
            return None

    async def _embedded_query(self, text: str) -> tuple[Vector, ModelIdentity]:
        [vector] = await self.embed([text], are_queries=True)
        return vector, await self.identity()

    async def embed(self, texts: Sequence[str], *, are_queries: bool = False) -> Vectors:
        """Embed `texts`; see `Embedder`."""
        total = self._patience.short_total if are_queries else self._patience.total
        sent = [sendable(self._mask(text)) for text in texts]
        for _ in range(_MOST_CHANGES):
            identity = await self.identity()
            parts = [np.empty((0, identity.dimension), dtype="<f4")]
            for part in in_requests(sent):
                async with self._turn(are_queries=are_queries):
                    parts.append(await self._embedded(part, total))
                if self._model.identity != identity:
                    break
            else:
                return np.concatenate(parts)
        raise EmbeddingError(
            f"the server at {self._server.host} answers with one model after another"
        )

    @asynccontextmanager
    async def _turn(self, *, are_queries: bool) -> AsyncIterator[None]:
        """Let one batch run at a time, and start none while a query waits for its answer."""
        if not are_queries:
            async with self._batches:
                while self._queries:
                    await self._no_queries.wait()
                yield
            return
        self._queries += 1
        try:
            yield
        finally:
            self._queries -= 1
            if not self._queries:
                self._no_queries.set()
                self._no_queries = anyio.Event()

    async def _embedded(self, texts: Sequence[str], total: float) -> Vectors:
        """Return the vectors of some texts.

        If `_model.identity` has changed meanwhile, the caller must discard the result.

        Raises:
            EmbeddingError: If the server works, but cannot embed these texts.
            ModelNotFoundError: If the server does not work.
        """
        identity = self._model.identity
        try:
            found = await self._asked([PROBE, *texts], total)
            if not self._model.made(found[0]):
                await self._look_at_model(total)
            if not self._model.made_beside_others(found[0]):
                raise ServerError("answers with several models")
            return self._cut(found[1:])
        except ServerError as error:
            if _is_about_server(error) or not await self._is_well():
                self._lose(error)
                raise ModelNotFoundError(self.reason) from None
            if self._model.identity != identity:
                return np.empty((0, 0), dtype="<f4")
            words = f"the server at {self._server.host} {error}"
            failure = f"{counted(len(texts), 'text')} could not be embedded"
            raise EmbeddingError(f"{failure}: {words}") from None

    async def _is_well(self) -> bool:
        """Return whether the server embeds the probe alone; then the other texts are at fault."""
        try:
            await self._look_at_model(self._patience.short_total)
        except ServerError:
            return False
        return True

    async def _asked(self, texts: Sequence[str], total: float) -> Vectors:
        """Return the vectors of `texts`; repeat the request while that may help.

        Args:
            texts: Few enough for one request.
            total: How many seconds the tries may take together, not counting the last answer.

        Raises:
            ServerError: If no try succeeds.
        """
        spent, pause, tries, unreached = 0.0, self._patience.pause, 0, 0
        while True:
            tries += 1
            began = anyio.current_time()
            try:
                return await self._answered(texts)
            except ServerError as error:
                wait = min(max(pause, error.retry_after), self._patience.longest_pause)
                spent += anyio.current_time() - began + wait
                unreached += error.is_unreachable
                is_last = (
                    not error.is_passing
                    or (error.status == 500 and tries >= _MOST_TRIES_OF_500)
                    or unreached >= _MOST_TRIES_TO_CONNECT
                    or spent > total
                )
                if is_last:
                    raise
                _log.debug("the server at %s %s; trying again", self._server.host, error)
            await self._sleep(wait)
            pause *= 2

    async def _answered(self, texts: Sequence[str]) -> Vectors:
        own = self._model.own_dimension if len(texts) > 1 else 0
        answer = await self._api.post(
            "embeddings",
            {"model": self._server.model, "input": texts, "encoding_format": self._encoding},
            most_bytes=most_bytes(len(texts), own),
            seconds=self._patience.answer,
        )
        vectors = vectors_in(answer, len(texts))
        named = answer.get("model")
        if isinstance(named, str):
            shown = "".join(char if char.isprintable() else "?" for char in named)
            self._name_there = shown[:_LONGEST_NAME_CHARS]
        return vectors

    async def _look_at_model(self, total: float) -> None:
        """Find out which model answers, with a request for the probe alone.

        Raises:
            ServerError: If the server does not answer, or its vectors are shorter than wanted.
        """
        try:
            [probe] = await self._asked([PROBE], total)
        except ServerError as error:
            if self._encoding == "float" or error.status not in _BAD_REQUEST:
                raise
            self._encoding = "float"
            [probe] = await self._asked([PROBE], total)
        await anyio.to_thread.run_sync(self._model.learn, probe)

    def _cut(self, vectors: Vectors) -> Vectors:
        """Shorten the vectors to the wanted length and normalize them again."""
        wanted = self._server.dimension
        return normalised(vectors[:, :wanted]) if wanted else vectors

    # -- whether it is there ---------------------------------------------------------------

    def _connect(self) -> None:
        if not self._is_connecting and self._tasks is not None:
            self._is_connecting = True
            self._tasks.start_soon(self._look_until_there)

    async def _look_until_there(self) -> None:
        """Check for the server until it is there, or until only the user can mend it."""
        pause = self._patience.look
        try:
            while not await self._look_once():
                with anyio.move_on_after(pause):
                    await self._wanted.wait()
                self._wanted = anyio.Event()
                pause = min(2 * pause, self._patience.longest_look)
        finally:
            self._is_connecting = False

    async def _look_once(self) -> bool:
        """Look for the server; return True if it is there, or if only the user can help."""
        try:
            self._api.key = await anyio.to_thread.run_sync(self._key_of)
            await self._look_at_model(self._patience.short_total)
        except ServerError as error:
            self._give_up(error)
            return not error.is_passing
        except (OSError, SettingsError) as error:
            words = f"the key of the embedding server cannot be read ({sentence(error)})"
            remedy = self._remedy_of(Problem.SERVER_REFUSES)
            self._set_state("unavailable", f"{words}; {remedy}")
            return True
        self._set_state("ready")
        return True

    def _lose(self, error: ServerError) -> None:
        """Become unavailable; look for the server again if it may come back by itself."""
        self._give_up(error)
        if error.is_passing:
            self._connect()

    def _give_up(self, error: ServerError) -> None:
        words = f"the embedding server at {self._server.host} {error}"
        self._set_state("unavailable", f"{words}; {self._remedy_of(_problem_of(error))}")

    def _set_state(self, state: EmbedderState, reason: str = "") -> None:
        self.state, self.reason = state, reason
        self._changed.set()
        self._changed = anyio.Event()


def _is_about_server(error: ServerError) -> bool:
    """Return whether the server would answer with this error to any texts."""
    refusals = {_UNAUTHORIZED, _FORBIDDEN, _NOT_FOUND, _NOT_IMPLEMENTED} | _OVERLOADED
    return error.is_unreachable or error.status in refusals


def _problem_of(error: ServerError) -> Problem:
    if error.problem is not None:
        return error.problem
    if error.status in {_UNAUTHORIZED, _FORBIDDEN}:
        return Problem.SERVER_REFUSES
    return Problem.SERVER_SILENT if error.is_passing else Problem.SERVER_INVALID
