"""How soon a machine that has indexed nothing answers from an index that a job has published.

    python benchmarks/remote_mirror.py --folder DIR [--files 10000] [--round-trip 0.02] [--keep]

The files are those of installed libraries. The store is a bucket on this machine whose server waits
for a round trip before each answer, and twice for a new connection; it counts requests and bytes,
and limits nothing else. The other machine is another user: another home, with nothing in its
caches.

The model has one layer and random weights: a hundred thousand chunks are embedded in minutes
instead of an hour, and still, its vectors can be compared. What is published stays in DIR.
"""

import argparse
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import anyio
from kept import keep
from projects import Project, landmarks, make_of_installed
from served import (
    COMMAND,
    Stopwatch,
    cpu_seconds,
    environment,
    front_end,
    is_indexed,
    service_of,
    status,
    status_when,
    stop,
)

RUNS, NAMES = 3, 5
BUCKET = "bucket"
_DATE = "Thu, 01 Jan 2026 00:00:00 GMT"
_MAKE_MODEL = """
import shutil, sys
from pathlib import Path
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules import Transformer
from sentence_transformers.sentence_transformer.modules import Normalize, Pooling
from transformers import BertConfig, BertModel
from vector_index_mcp.engine.models.model import find_model
source, place = Path(find_model("all-MiniLM-L6-v2").folder), Path(sys.argv[1])
torch.manual_seed(7)
shape = dict(vocab_size=30522, hidden_size=384, num_hidden_layers=1, num_attention_heads=4,
             intermediate_size=64, max_position_embeddings=64, initializer_range=0.3)
BertModel(BertConfig(**shape)).save_pretrained(place / "part")
for name in ("tokenizer.json", "tokenizer_config.json", "vocab.txt"):
    if (source / name).exists():
        shutil.copy(source / name, place / "part")
parts = [Transformer(str(place / "part"), max_seq_length=16), Pooling(384), Normalize()]
SentenceTransformer(modules=parts, device="cpu").save(str(place / "model"))
"""


@dataclass(slots=True)
class Bucket:
    """A folder, served as a bucket that is far away."""

    folder: Path
    round_trip: float
    """In seconds."""
    requests: int = 0
    sent: int = 0
    """Bytes."""
    lock: threading.Lock = field(default_factory=threading.Lock)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def __init__(self, bucket: Bucket, *arguments: Any) -> None:
        self.bucket = bucket
        super().__init__(*arguments)

    def setup(self) -> None:
        super().setup()
        time.sleep(self.bucket.round_trip)  # of the connection

    def do_GET(self) -> None:
        """Send an object."""
        time.sleep(self.bucket.round_trip)
        path = self.bucket.folder / self.path.partition("?")[0].removeprefix(f"/{BUCKET}/")
        is_there = path.is_file()
        size = path.stat().st_size if is_there else 0
        self.send_response(200 if is_there else 404)
        for name, value in (("Content-Length", size), ("ETag", '"x"'), ("Last-Modified", _DATE)):
            self.send_header(name, str(value))
        self.end_headers()
        if is_there:
            with path.open("rb") as file:
                shutil.copyfileobj(file, self.wfile, 1 << 20)
        with self.bucket.lock:
            self.bucket.requests += 1
            self.bucket.sent += size

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


def variables_of(port: int) -> dict[str, str]:
    """What leads a program to the bucket."""
    return {
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
        "AWS_ALLOW_HTTP": "true",
        "AWS_ACCESS_KEY_ID": "somebody",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "AWS_REGION": "us-east-1",
    }


def published(folder: Path, files: int) -> tuple[Project, Path, Path]:
    """A project, the model, and the folder to which its index is published; made once."""
    place = folder / f"mirror-{files}"
    root, model, store = place / "project", place / "model", place / "store"
    is_made = (store / "branches").is_dir()
    if not is_made:
        shutil.rmtree(place, ignore_errors=True)
        root.mkdir(parents=True)
        subprocess.run([sys.executable, "-c", _MAKE_MODEL, str(place)], check=True)
        make_of_installed(root, files)
        variables = environment(place / "job", embedding_model=str(model))
        command = [*COMMAND, "publish", str(root), str(store)]
        subprocess.run(command, env=variables | {"HOME": str(place / "job")}, check=True)
        shutil.rmtree(root / ".lancedb")
    sizes = [path.stat().st_size for path in root.rglob("*") if path.is_file()]
    return Project(root, len(sizes), sum(sizes)), model, store


async def first_answer(
    project: Project, names: dict[str, str], model: Path, bucket: Bucket, port: int
) -> dict[str, float]:
    """Seconds and bytes from the start of a client until all is there."""
    bucket.requests = bucket.sent = 0
    with tempfile.TemporaryDirectory() as home:
        chosen = {"embedding_model": str(model), "shared_index": f"s3://{BUCKET}"}
        variables = environment(Path(home), **chosen, lancedb_uri=f"{home}/index")
        variables |= {"HOME": home, **variables_of(port)}
        watch, found = Stopwatch(), {}
        async with front_end(project.root, variables) as client:
            found["initialized"] = watch.seconds
            for name, file in names.items():
                while await first_file(client, name) != file:
                    await anyio.sleep(0.02)
                found.setdefault("first right answer", watch.seconds)
            found["all right answers"] = watch.seconds
            now = await status_when(client, is_indexed)
            found["all compared with the disk"] = watch.seconds
            found["chunks"] = now["indexed_chunk_count"]
            found["processor"] = cpu_seconds(service_of(project.root))
            while "not compared" in (now["shared_index"] or ""):
                now = await status(client)
            found["vectors compared"] = watch.seconds
            found["chunks embedded"] = now["model"]["chunks_embedded"]
            assert now["shared_index"].startswith("fetched"), now["shared_index"]
        await stop(project.root, variables)
    return found | {"requests": bucket.requests, "MB": bucket.sent / 1e6}


async def first_file(client: Any, name: str) -> str:
    """The file of the best result; empty while there is none."""
    answer = await client.call_tool("search_index", {"query": name})
    results = (answer.structured_content or {}).get("results") or [{"file_path": ""}]
    return str(results[0]["file_path"])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--folder", type=Path, required=True, help="keeps what is published")
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument("--round-trip", type=float, default=0.02, help="in seconds")
    parser.add_argument("--keep", action="store_true", help="write the results to results/")
    arguments = parser.parse_args()
    project, model, store = published(arguments.folder.resolve(), arguments.files)
    names = landmarks(project, NAMES)
    bucket = Bucket(store, arguments.round_trip)
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(_Handler, bucket)) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        port = server.server_address[1]
        runs = [anyio.run(first_answer, project, names, model, bucket, port) for _ in range(RUNS)]
        server.shutdown()
    found = {what: statistics.median(run[what] for run in runs) for what in runs[0]}
    for what, value in found.items():
        print(f"{what}: {value:,.2f}")
    if arguments.keep:
        result = {"files": project.files, "round trip": bucket.round_trip, **found}
        keep("remote_mirror", result, "python benchmarks/remote_mirror.py --folder DIR --keep")
    return 0


if __name__ == "__main__":
    sys.exit(main())
