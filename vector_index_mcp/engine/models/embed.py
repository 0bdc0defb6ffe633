"""Turns texts into vectors in a child process that holds torch (`worker`): the parent's side.

It is a child process because importing torch takes seconds and hundreds of megabytes, and because
a crash or an out-of-memory kill there costs a retry and not the service. The child starts when it
is first needed. This module imports no model library.
"""

import itertools
import json
import logging
import math
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Self

import anyio
import anyio.abc
import anyio.to_thread
import numpy as np
from anyio.streams.buffered import BufferedByteReceiveStream

from vector_index_mcp.engine.models import worker_process
from vector_index_mcp.engine.models.embedder import EmbedderState
from vector_index_mcp.engine.models.model import absolute, model_at_hand, require_folder
from vector_index_mcp.engine.models.queries import Queries
from vector_index_mcp.engine.models.wording import WHOLE, Reading, Wording
from vector_index_mcp.engine.models.worker_process import StartWorker, Worker
from vector_index_mcp.engine.types import ModelIdentity, Vector, Vectors
from vector_index_mcp.errors import (
    EmbeddingError,
    ModelNotFoundError,
    Problem,
    WorkerDiedError,
    counted,
)
from vector_index_mcp.processes.stopping import is_set_within

_log = logging.getLogger(__name__)

# One request takes about 0.2 s. A worker that takes longer than this is taken to hang.
_PATIENCE_SECONDS = 120.0
# What reading a frame raises that is not JSON, not an object, or lacks what it should have.
_NO_FRAME = (ValueError, TypeError, AttributeError, KeyError, RecursionError)
_CRASHES_IN_A_ROW = 3  # after so many without an answer in between, it is not started again
_NOT_RANKED = "it could not rank"


@dataclass(slots=True)
class _Reply:
    """The answer to a request; not there yet until `done` is set."""

    done: anyio.Event = field(default_factory=anyio.Event)
    vectors: Vectors | None = None
    error: str = ""
    is_orphaned: bool = False
    """Whether the worker ended before it answered."""


class WorkerEmbedder:
    """The embedder of a running service. Usable inside `async with embedder.running()`."""

    notice = ""

    def __init__(
        self,
        model_name: str,
        device: str = "cpu",
        idle_seconds: float = math.inf,
        patience_seconds: float = _PATIENCE_SECONDS,
        *,
        dimension: int = 0,
        reranker_name: str = "",
        wording: Wording = WHOLE,
        start_worker: StartWorker,
        remedy_of: Callable[[Problem], str],
    ) -> None:
        """Prepare; the worker starts when it is needed.

        Args:
            model_name: A model's name on the hub, or the path of its folder; empty for a worker
                that only runs a cross-encoder.
            device: The device's name in torch, such as `cpu`.
            idle_seconds: The worker ends after this time without a request.
            patience_seconds: A request that takes longer ends the worker.
            dimension: How many of the first numbers of each vector are used; 0 for all.
            reranker_name: A cross-encoder's name on the hub, or the path of its folder; empty for
                none.
            wording: Which part of a text the model gets to read.
            start_worker: Starts the worker, or joins one that others have started.
            remedy_of: Returns what to do about a problem with the model or the worker.
        """
        self._model_name, self._reranker_name = absolute(model_name), absolute(reranker_name)
        self._queries = Queries(self._model_name, dimension, wording)
        self._wording = wording
        self._device, self._dimension = device, dimension
        self._idle_seconds = idle_seconds
        self._patience_seconds = patience_seconds
        self._start_worker, self._remedy_of = start_worker, remedy_of
        self._last_use = 0.0
        self._is_resting = False
        self._tasks: anyio.abc.TaskGroup | None = None
        self._process: Worker | None = None
        self._identity: ModelIdentity | None = None
        self._replies: dict[int, _Reply] = {}
        self._ids = itertools.count(1)
        self._outbox: deque[dict[str, Any]] = deque()
        self._has_mail = anyio.Event()
        self._changed = anyio.Event()
        self._crashes = 0
        self.state: EmbedderState = "off"
        self.reason = ""
        self.precision = ""
        self.reranker_state: EmbedderState = "off"
        self.reranker_reason = ""
        self.sharers = 0

    @property
    def pid(self) -> int | None:
        """The worker's process id; None while there is none."""
        return self._process.pid if self._process else None

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Self]:
        """Allow the worker to run while the context is open; it has ended when the context ends."""
        async with anyio.create_task_group() as tasks:
            self._tasks = tasks
            if math.isfinite(self._idle_seconds):
                tasks.start_soon(self._rest_when_idle)
            try:
                yield self
            finally:
                self._tasks = None
                tasks.cancel_scope.cancel()

    def start(self) -> None:
        """See `Embedder`."""
        if self.state == "off" and self._tasks is not None:
            self._set_state("loading")
            self._tasks.start_soon(self._run_worker)

    async def _rest_when_idle(self) -> None:
        """End the worker when it has been idle for long enough; the next request starts another."""
        while True:
            idle = anyio.current_time() - self._last_use
            is_unused = self.state == "ready" and not self._replies
            if is_unused and idle >= self._idle_seconds and self._process is not None:
                self._is_resting = True
                self._set_state("loading")  # requests wait for the next worker
                self._process.kill()
            await anyio.sleep(max(0.05, self._idle_seconds - idle if is_unused else 1.0))

    def retry(self) -> None:
        """See `Embedder`."""
        self._queries.forget()
        if self.reranker_state == "unavailable":
            self.reranker_state, self.reranker_reason = "off", ""
        if self.state == "unavailable":
            self._crashes = 0
            self._set_state("off")

    async def identity(self) -> ModelIdentity:
        """Return which model it is; see `Embedder`."""
        self.start()
        while self._identity is None or self.state == "unavailable":
            self._raise_if_unavailable()
            await self._changed.wait()
            self.start()
        return self._identity

    async def identity_at_hand(self) -> ModelIdentity | None:
        """Return which model it is, if that is known; see `Embedder`."""
        try:
            model = await anyio.to_thread.run_sync(model_at_hand, self._model_name, self._dimension)
        except (ModelNotFoundError, OSError):  # the worker will report it
            return None
        return self._wording.identity(model.identity) if model is not None else None

    async def query_at_hand(self, text: str) -> tuple[Vector, ModelIdentity] | None:
        """See `Embedder`."""
        return await self._queries.embed(text)

    @property
    def has_reranker(self) -> bool:
        """Whether `scores` can be called."""
        return bool(self._reranker_name)

    def start_reranker(self) -> None:
        """See `Embedder`."""
        if self.has_reranker and self.reranker_state == "off" and self._tasks is not None:
            self.reranker_state = "loading"
            self._tasks.start_soon(self._load_reranker)

    async def _load_reranker(self) -> None:
        request = {"urgent": False, "texts": [""], "query": ""}
        try:
            await self._answer_to(request, _NOT_RANKED, math.inf)  # it may have to be downloaded
        except EmbeddingError as error:
            if self.reranker_state == "loading":  # else the worker has ended meanwhile
                self.reranker_state = "unavailable"
                why = str(error).removeprefix(f"{_NOT_RANKED}: ")
                self.reranker_reason = f"it cannot be loaded ({why})"
        else:
            self.reranker_state = "ready"

    async def scores(
        self, query: str, texts: Sequence[str], seconds: float | None = None
    ) -> list[float]:
        """Return how well each of `texts` answers `query`; see `Embedder`."""
        if not self.has_reranker:
            raise EmbeddingError("no cross-encoder is configured")
        limit = {} if seconds is None else {"seconds": seconds}
        request = {"urgent": True, "texts": list(texts), "query": query, **limit}
        found = await self._answer_to(request, f"{counted(len(texts), 'text')} could not be ranked")
        return [float(score) for score in found[:, 0]]

    async def embed(self, texts: Sequence[str], *, are_queries: bool = False) -> Vectors:
        """Embed `texts`; see `Embedder`."""
        reading = Reading(self._wording, texts, are_queries=are_queries)
        request = {"urgent": are_queries, "are_queries": are_queries, "texts": reading.given}
        failure = f"{counted(len(texts), 'text')} could not be embedded"
        return reading.vectors(await self._answer_to(request, failure))

    async def _answer_to(
        self, request: dict[str, Any], failure: str, patience_seconds: float | None = None
    ) -> Vectors:
        """Send a request to the worker and return the rows of its answer.

        Args:
            request: The request without its id.
            failure: Says in the message of an error what has failed.
            patience_seconds: A worker that takes longer is taken to hang; None for the usual time.
        """
        self.start()
        while self.state != "ready":
            self._raise_if_unavailable()
            await self._changed.wait()
            self.start()
        if self._identity is not None and not request["texts"]:
            return np.empty((0, self._identity.dimension), dtype="<f4")  # no rows have no shape
        reply, number = _Reply(), next(self._ids)
        self._replies[number] = reply
        try:
            self._outbox.append({"id": number, **request})
            self._has_mail.set()
            patience = patience_seconds or self._patience_seconds
            if not await is_set_within(reply.done, patience) and self._process is not None:
                self._process.terminate()
                self._process.kill()  # `_end` then sets the reply
                await reply.done.wait()
        finally:
            del self._replies[number]
        if reply.vectors is None:
            error = WorkerDiedError if reply.is_orphaned else EmbeddingError
            raise error(f"{failure}: {reply.error}")
        return reply.vectors

    def _raise_if_unavailable(self) -> None:
        if self.state == "unavailable":
            raise ModelNotFoundError(self.reason)

    async def _run_worker(self) -> None:
        """Run one worker process: start it, deliver its answers, tidy up after it."""
        try:
            await anyio.to_thread.run_sync(require_folder, self._model_name, abandon_on_cancel=True)
            process = await self._start_worker(
                worker_process.WORKER_MODULE,
                self._model_name,
                self._device,
                self._reranker_name,
                str(self._dimension),
                environment=worker_process.WORKER_ENVIRONMENT,
            )
        except ModelNotFoundError as error:
            return self._give_up(error.problem or Problem.MODEL_INVALID, str(error))
        except (OSError, ValueError) as error:  # no memory, no interpreter; a name with a NUL
            why = error.strerror if isinstance(error, OSError) else error
            reason = f"the embedding worker cannot be started ({why})"
            return self._give_up(Problem.WORKER_NOT_STARTED, reason)
        self._process = process
        unavailable: tuple[Problem, str] | None = None
        try:
            async with anyio.create_task_group() as tasks:
                assert process.stdin is not None and process.stdout is not None
                tasks.start_soon(self._feed, process.stdin)
                unavailable = await self._deliver(BufferedByteReceiveStream(process.stdout))
                tasks.cancel_scope.cancel()
        finally:
            with anyio.CancelScope(shield=True):
                await self._end(process, unavailable)

    async def _feed(self, sink: anyio.abc.ByteSendStream) -> None:
        """Send the requests for which somebody still waits, until cancelled or the worker ends.

        Whoever waits does not send: it may give up in the middle of a line.
        """
        while True:
            while not self._outbox:
                self._has_mail = anyio.Event()
                await self._has_mail.wait()
            request = self._outbox.popleft()
            if request["id"] in self._replies:
                try:
                    await sink.send(json.dumps(request).encode() + b"\n")
                except (anyio.BrokenResourceError, anyio.ClosedResourceError, OSError):
                    return  # `_deliver` notices that, too

    async def _deliver(self, frames: BufferedByteReceiveStream) -> tuple[Problem, str] | None:
        """Hand out answers until the worker ends.

        Returns:
            Why there can be no model, if the worker reported that; None otherwise.
        """
        while True:
            try:
                line = await frames.receive_until(b"\n", worker_process.LONGEST_HEADER_BYTES)
                header = json.loads(line)
                if header.get("event") == "unavailable":
                    return Problem(header["problem"]), str(header["reason"])
                if "event" in header:
                    self._note_event(header)
                    continue
                size = 4 * header.get("rows", 0) * header.get("dimension", 0)
                payload = await frames.receive_exactly(size) if size else b""
                self._answer(header, payload)
            except (anyio.IncompleteRead, anyio.EndOfStream, anyio.BrokenResourceError):
                return None
            except (anyio.DelimiterNotFound, *_NO_FRAME) as error:  # the rest is unreadable
                _log.warning("the embedding worker is ended: it sent no valid answer (%r)", error)
                return None

    def _answer(self, header: dict[str, Any], payload: bytes) -> None:
        """Hand an answer to the caller that waits for it, if it still does."""
        reply = self._replies.get(header["id"])
        if reply is not None and "error" in header:
            reply.error = header["error"]
        elif reply is not None:
            shape = (header["rows"], header["dimension"])
            found = np.frombuffer(payload, dtype="<f4").reshape(shape)
            # Weights of half precision overflow for some texts; nothing can be compared with that.
            if np.isfinite(found).all():
                reply.vectors = found
            else:
                reply.error = "the model's numbers for them are infinite or undefined"
        self._crashes = 0
        self._last_use = anyio.current_time()
        if reply is not None:
            reply.done.set()

    def _note_event(self, header: dict[str, Any]) -> None:
        event = header.pop("event")
        if event == "model":
            self._identity = self._wording.identity(ModelIdentity(**header))
            self._set_state("loading")
        elif event == "sharers":
            self.sharers = header["count"]
        elif event == "resting":  # the shared host has ended the worker to free memory
            self._is_resting = True
            self._set_state("loading")
        elif event == "ready":
            self.precision = header["precision"]
            self._last_use = anyio.current_time()
            self._set_state("ready")

    async def _end(self, process: Worker, unavailable: tuple[Problem, str] | None) -> None:
        """End the worker process, fail the requests under way, and set the state that follows."""
        if process.returncode is None:
            process.kill()
        status = await process.wait()
        await process.aclose()
        self._process, self.sharers = None, 0
        if self.reranker_state != "unavailable":
            self.reranker_state = "off"
        for reply in self._replies.values():
            reply.error = f"the embedding worker died (status {status})"
            reply.is_orphaned = True
            reply.done.set()
        self._outbox.clear()
        if unavailable:  # set only now: a retry must not meet a worker that is still ending
            self._give_up(*unavailable)
            return
        if self._is_resting:
            self._is_resting = False
            self._set_state("off")
            return
        self._crashes += 1
        if self._crashes >= _CRASHES_IN_A_ROW:
            reason = f"the embedding worker died {self._crashes} times in a row (status {status})"
            self._give_up(Problem.WORKER_DIES, reason)
        else:
            self._set_state("off")

    def _give_up(self, problem: Problem, reason: str) -> None:
        self._set_state("unavailable", f"{reason}; {self._remedy_of(problem)}")

    def _set_state(self, state: EmbedderState, reason: str = "") -> None:
        self.state, self.reason = state, reason
        self._changed.set()
        self._changed = anyio.Event()
