"""All datasets of a service as JSON, for the HTTP interface and the page."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import anyio.to_thread

from vector_index_mcp.datasets import keeping, manifest
from vector_index_mcp.datasets.refusal import BadDatasetError

if TYPE_CHECKING:  # the service imports LanceDB
    from vector_index_mcp.datasets.dataset import Dataset
    from vector_index_mcp.datasets.registry import LoadError
    from vector_index_mcp.datasets.service import Datasets


async def listed(datasets: "Datasets") -> list[dict[str, Any]]:
    """All datasets as the contract lists them; those that cannot be served with the reason."""
    served, errors = await datasets.listed()
    paths = await anyio.to_thread.run_sync(keeping.manifests, datasets.registry.root)
    found = [_described(each, _said_in(paths, each.manifest.id)) for each in served]
    found += map(failed, errors)
    return sorted(found, key=lambda each: str(each["id"]))


def ready(dataset: "Dataset") -> dict[str, Any]:
    """What everybody is told of a dataset that is served."""
    described = dataset.manifest
    return {
        "id": described.id,
        "name": described.name,
        "description": described.description,
        "defaultTopK": described.default_top_k,
        "status": "ready",
        "chunkCount": dataset.facts.count,
        "model": dataset.model,
    }


def failed(error: "LoadError") -> dict[str, Any]:
    """What everybody is told of one that cannot be."""
    return {
        "id": error.id,
        "name": error.id,
        "description": "Failed to load dataset",
        "status": "error",
        "error": error.error,
        "manifestPath": str(error.path),
    }


def _described(dataset: "Dataset", said: Mapping[str, Any]) -> dict[str, Any]:
    known = {name: said.get(name) for name in ("documentCount", "updatedAt", "license", "source")}
    return {
        **ready(dataset),
        "metadataPath": str(dataset.manifest.metadata),
        "indexPath": str(dataset.manifest.index),
        **{name: value for name, value in known.items() if value and type(value) in (str, int)},
    }


def _said_in(paths: Mapping[str, Any], id_: str) -> Mapping[str, Any]:
    try:
        return manifest.said_in(paths[id_])
    except (BadDatasetError, KeyError):  # it has just been replaced
        return {}
