"""The embedding worker: the child process that holds torch. Only `embed` has it started.

It exchanges frames over its standard streams. A frame is a line of JSON; in an answer, the vectors
follow the line as raw little-endian float32.

    parent: {"id": 1, "urgent": false, "are_queries": false, "texts": [...]}
    worker: {"event": "model", "name": ..., "digest": ..., "dimension": ...}   before it loads
            {"event": "ready", "precision": "bfloat16"}
            {"event": "unavailable", "problem": "model_nowhere", "reason": ...}  and ends
            {"id": 1, "rows": 2, "dimension": 384}<bytes>    or    {"id": 1, "error": ...}

A request with a "query" beside its texts is for the cross-encoder. The answer has one row of
dimension 1 for each text: how well it answers the query. If that takes longer than the request's
"seconds", the answer is an error, because nobody waits any more. The cross-encoder is loaded for
the first such request, while the worker goes on answering others.

Urgent requests (queries) overtake the others. When its input ends, which also happens if the parent
is killed, the worker ends at once, even in the middle of a batch.
"""

import copy
import itertools
import json
import logging
import math
import os
import queue
import threading
import time
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from typing import Any, BinaryIO, NoReturn

import numpy as np

from vector_index_mcp.engine.batched import batched
from vector_index_mcp.engine.models import lean_torch, library
from vector_index_mcp.engine.models.model import Model, find_model
from vector_index_mcp.engine.models.trial import Reduced, fastest
from vector_index_mcp.engine.types import Vectors
from vector_index_mcp.errors import ModelNotFoundError, Problem

_log = logging.getLogger(__name__)

_MOST_THREADS = 8  # on a large machine, the user keeps the other processors
_BATCH_JUDGED = 8  # pairs; the time limit is checked between two batches
_LEAST_NORM = 1e-12
_MOST_DIFFERENCE = 0.02  # between two scores of a cross-encoder, which are from 0 to 1
# Batches differ in shape, so memory that one has freed seldom fits the next, and the heap grows.
# Measured: after 114 different batches in float32, from 487 to 808 MB, of which 514 are in use. If
# free memory is given back this often, the heap stays below 730 MB, at no measurable cost.
_KEEPING_SECONDS = 5.0
_PROBE = ["def parse(line): return line.split(',')", "where is the configuration read? " * 40]


# Measured for bfloat16 over 384 chunks: a cosine of 0.99989 at least, 1.7 times as many chunks a
# second, and 11 ms instead of 13 for a query.
_VECTORS = Reduced(0.9, lambda one, other: bool(np.sum(one * other, axis=1).min() > 0.999))
_JUDGEMENTS = Reduced(0.9, lambda one, other: bool(np.abs(one - other).max() < _MOST_DIFFERENCE))

_Request = dict[str, Any]
# What looking for a model, loading it and computing it may raise.
_FAULTS = (
    *(RuntimeError, ValueError, TypeError, MemoryError, OSError, ImportError),
    ModelNotFoundError,
)


class _Inbox:
    """The queue of requests, the urgent ones first. Any thread may use it."""

    def __init__(self) -> None:
        self._requests: queue.PriorityQueue[tuple[bool, int, _Request]] = queue.PriorityQueue()
        self._arrivals = itertools.count()

    def put(self, request: _Request) -> None:
        self._requests.put((not request["urgent"], next(self._arrivals), request))

    def get(self, timeout: float | None) -> _Request:
        """Return the next request.

        Raises:
            queue.Empty: If none arrives within `timeout` seconds.
        """
        return self._requests.get(timeout=timeout)[2]


class Encoder:
    """A loaded model, in the precision that is fastest here and still close to float32."""

    def __init__(self, model: Model, device: str) -> None:
        # This import takes seconds and 200 MB; it is why this process exists.
        torch = lean_torch.imported()
        torch.set_num_threads(min(_MOST_THREADS, torch.get_num_threads()))
        known = _known(model) if device == "cpu" else None
        loaded = known or library.embedding_model(model, device)
        self._model, self.precision = fastest(
            loaded,
            _reduced(loaded.device, _VECTORS, partial(loaded.in_precision, "bfloat16")),
            lambda model, times: _of_unit_length(model.encode(_PROBE * times)),
        )

    def encode(self, texts: list[str], *, are_queries: bool = False) -> Vectors:
        """Embed `texts`: float32 rows of unit length, in order.

        Args:
            texts: The texts to embed.
            are_queries: Whether they are queries and not documents: some models put another
                prompt before a query, or compute it in another way.
        """
        return _of_unit_length(self._model.encode(texts, are_queries=are_queries))


def _known(model: Model) -> Any:
    """Return the model computed without the library; None if its kind needs the library."""
    from vector_index_mcp.engine.models import packed_bert

    known = packed_bert.load(model)
    try:
        return known if known is not None and np.isfinite(known.encode(_PROBE)).all() else None
    except (RuntimeError, ValueError, IndexError):  # its files do not fit together
        return None


def _of_unit_length(vectors: Vectors) -> Vectors:
    # Not done in the model: in bfloat16, the length would be off by a thousandth.
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.ascontiguousarray(vectors / np.maximum(norms, _LEAST_NORM), dtype="<f4")


class Reranker:
    """A cross-encoder, loaded in a thread at the first request: that may take minutes."""

    def __init__(self, model_name: str, device: str, again: Callable[[_Request], None]) -> None:
        """Prepare.

        Args:
            model_name: See `find_model`.
            device: The device's name in torch.
            again: Queues a request again that had to wait for the model; if the model could not be
                loaded, the request has a "failure".
        """
        self._model_name = model_name
        self._device = device
        self._again = again
        self._model: Any = None
        self._waiting: list[_Request] = []
        self._is_loading = False
        self._lock = threading.Lock()

    def keeps(self, request: _Request) -> bool:
        """Keep a request until the model is loaded, and return True; False if it is loaded.

        The request is queued again once the model is loaded or has failed to load.
        """
        with self._lock:
            if self._model is not None or "failure" in request:
                return False
            self._waiting.append(request)
            if not self._is_loading:
                self._is_loading = True
                threading.Thread(target=self._load, daemon=True).start()
        return True

    def _load(self) -> None:
        model, failure = None, {}
        try:
            model = self._loaded()
        except _FAULTS as error:
            failure = {"failure": f"{type(error).__name__}: {error}"}
        with self._lock:
            self._model, self._is_loading = model, False
            waiting, self._waiting = self._waiting, []
        for request in waiting:
            self._again(request | failure)

    def scores(self, request: _Request) -> Vectors:
        """Return how well each text answers the query: float32, shape (texts, 1), 0 to 1.

        Raises:
            TimeoutError: If the request's time is over, so that nobody waits any more.
        """
        query, texts = request["query"], request["texts"]
        found = np.empty((len(texts), 1), dtype="<f4")
        order = sorted(range(len(texts)), key=lambda number: len(texts[number]))
        for batch in batched(order, _BATCH_JUDGED):
            if time.monotonic() > request.get("until", math.inf):
                raise TimeoutError("nobody waits for it any more")
            found[batch, 0] = _judged(self._model, [(query, texts[n]) for n in batch])
        return found

    def _loaded(self) -> Any:
        found = find_model(self._model_name)  # first: a missing model costs no import
        import torch

        loaded = library.cross_encoder(found, self._device)
        model, _ = fastest(
            loaded,
            # Measured: MiniLM then reads 30 texts in 0.5 s instead of 1.2.
            _reduced(
                loaded.device.type,
                _JUDGEMENTS,
                lambda: copy.deepcopy(loaded).to(torch.bfloat16),
            ),
            lambda model, times: _judged(model, [(_PROBE[1], text) for text in _PROBE] * times),
        )
        return model


def _reduced(
    device: str, limits: Reduced, make: Callable[[], Any]
) -> dict[str, tuple[Reduced, Callable[[], Any]]]:
    """Return what `fastest` tries besides full precision: bfloat16, if it can be fast here."""
    return {"bfloat16": (limits, make)} if device == "cpu" and _has_bfloat16() else {}


def _has_bfloat16() -> bool:
    """Return whether torch may use instructions of this processor for bfloat16.

    Without them it multiplies such numbers one by one, and only the trial would take long: half of
    the time until the default model is ready on a processor with AVX2 alone.
    """
    import torch

    try:
        return bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())
    except (AttributeError, RuntimeError):  # this torch has no such function, or no oneDNN
        return True


def _judged(model: Any, pairs: list[tuple[str, str]]) -> Vectors:
    return np.asarray(
        model.predict(pairs, batch_size=_BATCH_JUDGED, show_progress_bar=False), dtype="<f4"
    )


def main(
    source: BinaryIO,
    sink: BinaryIO,
    give_back: Callable[[], None],
    model_name: str,
    device: str,
    reranker_name: str = "",
    dimension: str = "0",
) -> None:
    """Serve requests until the input ends.

    Args:
        source: The stream of requests.
        sink: The stream for answers.
        give_back: Returns unused memory to the system.
        model_name: See `find_model`; empty for a worker that embeds nothing.
        device: The device's name in torch.
        reranker_name: The cross-encoder; see `find_model`. Empty for none.
        dimension: See `find_model`; in decimal digits.
    """
    requests = _Inbox()
    threading.Thread(target=_read, args=(source, requests), daemon=True).start()
    if not model_name:
        _send(sink, {"event": "ready", "precision": ""})
        _serve(requests, sink, None, Reranker(reranker_name, device, requests.put), give_back)
    try:
        model = find_model(model_name, int(dimension))
        _send(sink, {"event": "model", **asdict(model.identity)})
        encoder = Encoder(model, device)
    except ModelNotFoundError as error:
        _send(sink, {"event": "unavailable", "problem": error.problem, "reason": str(error)})
        return
    except (OSError, ValueError, RuntimeError, ImportError) as error:
        reason, problem = f"the embedding model {model_name} cannot be loaded ({error})", _of(error)
        _send(sink, {"event": "unavailable", "problem": problem, "reason": reason})
        return
    _send(sink, {"event": "ready", "precision": encoder.precision})
    _serve(requests, sink, encoder, Reranker(reranker_name, device, requests.put), give_back)


def _of(error: Exception) -> Problem:
    """Return the problem with a model that the library cannot load."""
    wants_code = "trust_remote_code" in str(error)
    return Problem.MODEL_WITH_CODE if wants_code else Problem.MODEL_UNLOADABLE


def _serve(
    requests: _Inbox,
    sink: BinaryIO,
    encoder: Encoder | None,
    reranker: Reranker,
    give_back: Callable[[], None],
) -> NoReturn:
    """Answer requests for ever; now and then give unused memory back to the system."""
    has_worked, given_back = False, time.monotonic()
    while True:
        if has_worked and time.monotonic() - given_back >= _KEEPING_SECONDS:
            give_back()
            has_worked, given_back = False, time.monotonic()
        try:
            request = requests.get(timeout=_KEEPING_SECONDS if has_worked else None)
        except queue.Empty:
            continue
        _answer(sink, encoder, reranker, request)
        has_worked = True


def _answer(sink: BinaryIO, encoder: Encoder | None, reranker: Reranker, request: _Request) -> None:
    is_judged = "query" in request
    if is_judged and reranker.keeps(request):
        return
    if "failure" in request:
        _send(sink, {"id": request["id"], "error": request["failure"]})
        return
    try:
        if is_judged:
            vectors = reranker.scores(request)
        elif encoder is None:
            raise ValueError("this worker has no embedding model")
        else:
            vectors = encoder.encode(request["texts"], are_queries=request["are_queries"])
    except _FAULTS as error:
        _send(sink, {"id": request["id"], "error": f"{type(error).__name__}: {error}"})
        return
    rows, dimension = vectors.shape
    _send(sink, {"id": request["id"], "rows": rows, "dimension": dimension}, vectors.tobytes())


def _read(source: BinaryIO, requests: _Inbox) -> None:
    status = 1
    try:
        for line in source:
            request = json.loads(line)
            if "seconds" in request:
                request["until"] = time.monotonic() + request["seconds"]
            requests.put(request)
        status = 0
    except Exception as error:  # noqa: BLE001 - the rest is unreadable, and the parent would wait
        _log.error(
            "the embedding worker ends: it cannot read a request (%s: %s)",
            type(error).__name__,
            error,
        )
    finally:
        os._exit(status)  # not sys.exit: the main thread may be deep inside torch


def _send(sink: BinaryIO, header: dict[str, Any], payload: bytes = b"") -> None:
    sink.write(json.dumps(header).encode() + b"\n" + payload)
    sink.flush()
