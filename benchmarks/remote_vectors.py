"""How soon a second machine has all vectors if it takes them from its team's store.

    python benchmarks/remote_vectors.py [--files 10000] [--round-trip 20] [--keep]

A job indexes a project of installed libraries and shares its vectors in a bucket; a machine with
empty caches then indexes a copy, once with the bucket and once, for comparison, with a model that
makes nothing: that is the time of the text alone. The bucket is moto's, behind a proxy that lets
every request wait for the round trip, and each new connection twice.

The model is none: it makes vectors of hashes, after 5 s of loading, 100 texts a second. So no
processor time of a real one is in these figures, and nobody has to wait an hour.
"""

import argparse
import hashlib
import json
import os
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import anyio
import numpy as np
from kept import keep
from projects import make_of_installed
from served import Stopwatch

from vector_index_mcp.codebase.remedies import REMEDIES
from vector_index_mcp.codebase.service import Codebase
from vector_index_mcp.engine.models.cache import EmbeddingCache
from vector_index_mcp.engine.store import Index
from vector_index_mcp.files.folder import Folder
from vector_index_mcp.indexing.options import Options
from vector_index_mcp.indexing.preparing.recipe import Recipe
from vector_index_mcp.indexing.vectors.given import share_vectors
from vector_index_mcp.indexing.vectors.team import TeamPlace

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from buckets import bucket_server, variables
from fakes import FakeEmbedder

DIMENSION = 384
LOADING_SECONDS, TEXTS_PER_SECOND = 5.0, 100.0
HOP_BY_HOP = {"connection", "transfer-encoding", "keep-alive", "content-length"}

Found = dict[str, Any]


# -- a bucket that is far away -------------------------------------------------------------


@dataclass(slots=True)
class Traffic:
    """What went to the bucket and came from it."""

    requests: int = 0
    sent: int = 0
    received: int = 0

    def taken(self) -> Found:
        """As it is now; counting begins anew."""
        found = {
            "requests": self.requests,
            "MB sent": self.sent / 1e6,
            "MB received": self.received / 1e6,
        }
        self.requests = self.sent = self.received = 0
        return found


@contextmanager
def far_away(port: int, seconds: float) -> Iterator[tuple[int, Traffic]]:
    """A proxy before the server at `port`: its own port, and what goes through it."""
    traffic, lock = Traffic(), threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def setup(self) -> None:
            super().setup()
            time.sleep(seconds)
            self.server_behind = HTTPConnection("127.0.0.1", port, timeout=60)

        def finish(self) -> None:
            self.server_behind.close()
            super().finish()

        def forward(self) -> None:
            time.sleep(seconds)
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            self.server_behind.request(self.command, self.path, body, dict(self.headers))
            answer = self.server_behind.getresponse()
            data = answer.read()
            self.send_response(answer.status)
            for name, value in answer.getheaders():
                if name.lower() not in HOP_BY_HOP:
                    self.send_header(name, value)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)
            with lock:
                traffic.requests += 1
                traffic.sent += len(body)
                traffic.received += len(data)

        do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = forward

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield server.server_port, traffic
    finally:
        server.shutdown()


# -- machines ------------------------------------------------------------------------------


class SlowModel(FakeEmbedder):
    """Makes vectors of hashes, as fast as a small model on two cores would of meaning."""

    def __init__(self, texts_per_second: float = TEXTS_PER_SECOND, loading: float = 0.0) -> None:
        super().__init__("slow", DIMENSION)
        self.is_at_hand = True
        self.made = 0
        self._pace, self._loading = 1 / texts_per_second, loading

    async def query_at_hand(self, text: str) -> Any:
        """As the default model is asked for queries: without the worker."""
        await anyio.sleep(self._pace)
        return vector_of(text), await self.identity()

    async def embed(self, texts: Sequence[str], *, are_queries: bool = False) -> Any:
        """As slowly as said."""
        self.start()
        self.state = "ready"
        await anyio.sleep(self._loading + self._pace * len(texts))
        self._loading = 0.0
        self.made += len(texts)
        return np.array([vector_of(text) for text in texts])


def vector_of(text: str) -> Any:
    seed = int.from_bytes(hashlib.sha256(text.encode("utf-8", "replace")).digest()[:8], "big")
    row = np.random.default_rng(seed).standard_normal(DIMENSION, dtype="f4")
    return row / np.linalg.norm(row)


@asynccontextmanager
async def service(root: Path, model: Any, team: TeamPlace | None) -> AsyncIterator[Codebase]:
    """The service of a project on a machine whose folders lie beside it."""
    beside = root.parent
    options = Options(Recipe(1_200), 0.2, 2.0, 3_600, beside / "state", REMEDIES, team)
    cache = EmbeddingCache(beside / "cache", 10**10)
    codebase = Codebase(Folder(root), ".lancedb", options, model, cache)
    async with codebase.running():
        yield codebase


async def complete(codebase: Codebase, watch: Stopwatch, *, with_vectors: bool = True) -> Found:
    """Seconds until all text is found, and until every chunk has its vector."""
    while (run := await codebase.index.catching_up()) is not None:
        await run.finished.wait()
    found: Found = {"text": watch.seconds, "chunks": codebase.index.ledger.chunk_count}
    found["lacking after the text"] = codebase.index.ledger.unembedded_count
    while with_vectors and codebase.index.progress.lacks_vectors:
        await codebase.index.embedding_progressed()
    return found | ({"vectors": watch.seconds} if with_vectors else {})


async def shared(root: Path, uri: str, traffic: Traffic) -> Found:
    """What it takes to share the vectors of an index."""
    traffic.taken()
    watch = Stopwatch()
    index = await Index.open(str(root / ".lancedb"))
    assert index is not None
    given = await share_vectors(index, TeamPlace(uri, root.parent / "team"))
    index.close()
    return {"vectors": given.written, "packs": given.packs, "seconds": watch.seconds} | (
        traffic.taken()
    )


async def with_team(root: Path, uri: str, traffic: Traffic) -> Found:
    traffic.taken()
    model, watch = SlowModel(loading=LOADING_SECONDS), Stopwatch()
    async with service(root, model, TeamPlace(uri, root.parent / "team")) as codebase:
        found = await complete(codebase, watch)
        said = codebase.index.team_notice.partition(": ")[2]
    return found | {"embedded here": model.made, "status": said} | traffic.taken()


async def text_alone(root: Path) -> Found:
    model, watch = SlowModel(), Stopwatch()
    model.absent = "no model in this run"
    async with service(root, model, None) as codebase:
        return await complete(codebase, watch, with_vectors=False)


def copy(root: Path, target: Path) -> Path:
    shutil.copytree(root, target, ignore=shutil.ignore_patterns(".lancedb"))
    return target


def measure(files: int, round_trip: float, folder: Path) -> Found:
    root = make_of_installed(folder / "job" / "project", files).root
    found: Found = {"files": files, "round trip in ms": round_trip}

    async def index() -> None:
        async with service(root, SlowModel(10**9), None) as codebase:
            await complete(codebase, Stopwatch())

    with bucket_server() as server, far_away(server.port, round_trip / 1000) as (port, traffic):
        uri = f"{server.new_bucket()}/team"
        os.environ.update(variables(port))
        anyio.run(index)
        found["shared"] = anyio.run(shared, root, uri, traffic)
        found["again"] = anyio.run(shared, root, uri, traffic)
        alone = copy(root, folder / "alone" / "project")
        found["text alone"] = anyio.run(text_alone, alone)
        second = copy(root, folder / "second" / "project")
        found["with the team's vectors"] = anyio.run(with_team, second, uri, traffic)
    found["vectors by text alone"] = (
        found["with the team's vectors"]["vectors"] / found["text alone"]["text"]
    )
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument("--round-trip", type=float, default=20, help="in ms")
    parser.add_argument("--keep", action="store_true", help="keep what was measured")
    parsed = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = measure(parsed.files, parsed.round_trip, Path(folder))
    print(json.dumps(found, indent=2))
    if parsed.keep:
        keep("remote-vectors", found)


if __name__ == "__main__":
    main()
