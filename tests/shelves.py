"""Datasets as people have them: a folder with a manifest, an index and its texts."""

import json
import struct
from contextlib import asynccontextmanager

import numpy as np
from fakes import FakeEmbedder

from vector_index_mcp.datasets.conversion import prepare
from vector_index_mcp.datasets.making import About
from vector_index_mcp.datasets.models import Models
from vector_index_mcp.datasets.registry import Registry
from vector_index_mcp.datasets.remedies import REMEDIES
from vector_index_mcp.datasets.service import Datasets
from vector_index_mcp.datasets.workshop import Order, Workshop
from vector_index_mcp.engine.models.cache import EmbeddingCache
from vector_index_mcp.files.folder import Folder, Selection
from vector_index_mcp.indexing.options import Options
from vector_index_mcp.indexing.place import Place
from vector_index_mcp.indexing.preparing.recipe import Recipe
from vector_index_mcp.indexing.service import LiveIndex

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
    write_flat(folder / "index/docs.index", vectors, metric)
    write(folder / "metadata.json", metadata(texts))
    write(folder / "manifest.json", manifest(id_, **fields))
    return folder


def write_flat(path, vectors, metric="product"):
    """Write vectors as the flat index that FAISS writes of them."""
    magic, number = {"product": (b"IxFI", 0), "distance": (b"IxF2", 1)}[metric]
    numbers = np.asarray(vectors, "<f4")
    count, dimension = numbers.shape
    sizes = (dimension, count, 1 << 20, 1 << 20, 1, number, numbers.size)
    path.write_bytes(struct.pack("<4siqqqBiQ", magic, *sizes) + numbers.tobytes())


def write(path, said):
    """Write JSON, or bytes as they are, into a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(said if isinstance(said, bytes) else json.dumps(said).encode())


def registry_of(root, make=prepare):
    """What is known of the datasets below `root`; tables of ours lie beside it."""
    return Registry(root, root.parent, root.parent / "tables", make)


def datasets_of(root, embedder=None, make=prepare, others=None, index_of=None):
    """The service of the datasets below `root`.

    Args:
        root: Their folder.
        embedder: Embeds with MODEL.
        make: Prepares their tables.
        others: What embeds with other models, by name.
        index_of: Makes the indexes that datasets are made of.
    """
    embedder = embedder or FakeEmbedder(MODEL, DIMENSION)

    def other(name):
        return (others or {})[name]

    workshop = Workshop(root, index_of)
    return Datasets(registry_of(root, make), Models(MODEL, embedder, other), workshop, REMEDIES)


def index_of(beside, embedder):
    """Makes the indexes that datasets are made of; they lie in the folder `beside`."""

    def make(order, _):
        options = Options(
            recipe=Recipe(order.chunk_chars or 1_500, is_prose=True),
            quiet_seconds=0.01,
            longest_seconds=0.05,
            rescan_seconds=60.0,
            state_folder=beside / "state",
            remedies=REMEDIES,
        )
        mask = f"**/*.{{{','.join((*order.endings, 'none'))}}}"
        folder = Folder(order.source, selection=Selection(mask=mask))
        place = Place(str(beside / order.source.name), owner=str(order.source))
        cache = EmbeddingCache(beside / "cache", 1_000_000)
        return LiveIndex([folder], place, options, embedder, cache)

    return make


def order(source, id_="made", **given):
    """An order for a dataset of a folder."""
    about = About.of(id_, str(source), "", name="", description="", license_="", **given)
    return Order(source, about, is_appended=given.get("is_appended", False))


@asynccontextmanager
async def running(root, *given, **named):
    """The service of the datasets below `root`, while it runs."""
    service = datasets_of(root, *given, **named)
    async with service.running():
        yield service
