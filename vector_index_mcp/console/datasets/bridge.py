"""The commands of the original program's bridge, for scripts: they print JSON.

The result goes to standard output. An error goes to standard error, with status 1. But that an
index is bad is a result of `validate-index`: it goes to standard output, also with status 1.
"""

import argparse
import importlib.util
import sys
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vector_index_mcp import __version__
from vector_index_mcp.console.awaiting import awaited
from vector_index_mcp.console.datasets.arguments import HEALTH, SEARCH, VALIDATE
from vector_index_mcp.console.terminal import write
from vector_index_mcp.console.typed import resolved
from vector_index_mcp.datasets import manifest, table
from vector_index_mcp.datasets.arguments import WrongArguments, asked
from vector_index_mcp.datasets.converting import vectors_in
from vector_index_mcp.datasets.manifest import Manifest
from vector_index_mcp.datasets.refusal import BadDatasetError, Refusal
from vector_index_mcp.errors import VectorIndexError
from vector_index_mcp.foreign import as_json
from vector_index_mcp.serving import loading

if TYPE_CHECKING:
    from vector_index_mcp.settings import Settings

_NAME = "bridge"
_MOST_RESULTS = 100
_ERRORS = (BadDatasetError, Refusal, WrongArguments, VectorIndexError)


def _search(line: argparse.Namespace, settings: "Settings") -> int:
    try:
        index = _index_at(resolved(line.index))
        texts = resolved(line.metadata) if line.metadata else _texts_of(resolved(line.index))
        described = Manifest(_NAME, _NAME, _NAME, index, texts, manifest.DEFAULT_TOP_K, "")
        most = min(max(line.k, 1), _MOST_RESULTS)
        wanted = asked({"dataset": _NAME, "query": line.query, "topK": most})
        service = loading.load_datasets(index.parent, settings)
        found, size = awaited(partial(service.search_one, described, wanted))
    except _ERRORS as error:
        answer = {"error": str(error), "error_type": type(error).__name__}
        write(as_json(answer), sys.stderr)
        return 1
    results = [
        {"score": each.score, "title": each.title, "path": each.path, "snippet": each.snippet}
        for each in found.results
    ]
    return _print({"results": results, "duration_ms": found.milliseconds, "dataset_size": size})


def _validate(line: argparse.Namespace, _: "Settings") -> int:
    place = resolved(line.index)
    try:
        file = _index_at(place)
        if table.is_ours(file):
            facts = table.facts_of(file)
            count, dimension = facts.count, facts.dimension
        else:
            count, dimension = vectors_in(file).vectors.shape
    except BadDatasetError as error:
        _print({"status": "error", "error": str(error)})
        return 1
    properties = {"is_trained": True, "ntotal": count, "d": dimension}
    return _print(
        {
            "status": "ok",
            "index_path": str(place),
            "index_file": str(file),
            "properties": properties,
        }
    )


def _health(_: argparse.Namespace, settings: "Settings") -> int:
    return _print(
        {
            "status": "ok",
            "version": __version__,
            "python": sys.version.partition(" ")[0],
            "model": settings.embedding_model,
            "faiss": importlib.util.find_spec("faiss") is not None,
        }
    )


def _print(answer: Mapping[str, Any]) -> int:
    write(as_json(answer))
    return 0


def _index_at(place: Path) -> Path:
    """Return the index at a path.

    Args:
        place: An index, the folder of a dataset, or the path of a table that has been replaced
            since by a newer one in the same dataset.

    Raises:
        BadDatasetError: If there is no index.
    """
    for folder in (place, place.parent) if not place.exists() else (place,):
        if (folder / manifest.NAME).is_file():
            return manifest.read(folder / manifest.NAME, folder, folder).index
    return manifest.index_in(place)


def _texts_of(index: Path) -> Path:
    """Return the file of the texts beside an index, or beside the folder that the index is in."""
    places = [folder / "metadata.json" for folder in (index.parent, index, index.parent.parent)]
    return next((place for place in places if place.is_file()), places[0])


COMMANDS: "Mapping[str, Callable[[argparse.Namespace, Settings], int]]" = {
    SEARCH: _search,
    VALIDATE: _validate,
    HEALTH: _health,
}
"""The functions that run the commands, by name."""
