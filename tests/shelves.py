"""Datasets as people have them: a folder with a manifest, an index and its texts."""

import json
from contextlib import asynccontextmanager

import numpy as np
from fakes import FakeEmbedder

from vector_index_mcp.datasets import flat
from vector_index_mcp.datasets.conversion import prepare
from vector_index_mcp.datasets.registry import Registry
from vector_index_mcp.datasets.remedies import REMEDIES
from vector_index_mcp.datasets.service import Datasets

MODEL = "fake"
DIMENSION = 64
TEXTS = {
    "docs/install.md": "Install the server with pip and start it.",
    "docs/fruit.md": "Bananas are yellow and rich in potassium.",
    "docs/errors.md": "Error E1234 means that the disk is full.",
}


def manifest(id_="sample", **fields):
    """What a manifest says; a field that is None is left out."""
    said = {
        "id": id_,
        "name": f"The {id_}",
        "description": "What a test needs.",
        "index": "index",
        "metadata": "metadata.json",
    }
    return {name: value for name, value in (said | fields).items() if value is not None}


def metadata(texts, **fields):
    """The texts of a dataset, by path, in the shape that the original's indexer writes."""
    listed = [
        {"title": f"About {path}", "path": path, "content": content}
        for path, content in texts.items()
    ]
    return {"model": MODEL, "documents": listed, **fields}


async def embedded(texts):
    """The vectors that the fake model makes of texts."""
    async with FakeEmbedder(MODEL, DIMENSION).running() as model:
        return await model.embed([*texts])


async def put(root, id_="sample", texts=TEXTS, vectors=None, metric="product", **fields):
    """Make a dataset in a folder of its own below `root`; its folder."""
    folder = root / id_
    (folder / "index").mkdir(parents=True, exist_ok=True)
    if vectors is None:
        vectors = await embedded(texts.values()) if texts else np.empty((0, DIMENSION))
    (folder / "index/docs.index").unlink(missing_ok=True)
    flat.write(folder / "index/docs.index", np.asarray(vectors, "<f4"), metric)
    write(folder / "metadata.json", metadata(texts))
    write(folder / "manifest.json", manifest(id_, **fields))
    return folder


def write(path, said):
    """Write JSON, or bytes as they are, into a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(said if isinstance(said, bytes) else json.dumps(said).encode())


def registry_of(root, make=prepare):
    """What is known of the datasets below `root`; tables of ours lie beside it."""
    return Registry(root, root.parent, root.parent / "tables", make)


def datasets_of(root, embedder=None, make=prepare):
    """The service of the datasets below `root`."""
    embedder = embedder or FakeEmbedder(MODEL, DIMENSION)
    return Datasets(registry_of(root, make), embedder, MODEL, REMEDIES)


@asynccontextmanager
async def running(root, embedder=None, make=prepare):
    """The service of the datasets below `root`, while it runs."""
    service = datasets_of(root, embedder, make)
    async with service.running():
        yield service
