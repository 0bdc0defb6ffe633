"""All datasets of a service as JSON, for the HTTP interface and the page."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import anyio.to_thread

from vector_index_mcp.datasets import keeping, manifest
from vector_index_mcp.datasets.refusal import BadDatasetError

if TYPE_CHECKING:  # the service imports LanceDB
    from vector_index_mcp.datasets.dataset import Dataset
    from vector_index_mcp.datasets.service import Datasets


async def listed(datasets: "Datasets") -> list[dict[str, Any]]:
    """All datasets as the contract lists them; those that cannot be served with the reason."""
    ready, errors = await datasets.listed()
    paths = await anyio.to_thread.run_sync(keeping.manifests, datasets.registry.root)
    found = [_described(each, _said_in(paths, each.manifest.id)) for each in ready]
    found += [
        {
            "id": each.id,
            "name": each.id,
            "description": "Failed to load dataset",
            "status": "error",
            "error": each.error,
            "manifestPath": str(each.path),
        }
        for each in errors
    ]
    return sorted(found, key=lambda each: str(each["id"]))


def _described(dataset: "Dataset", said: Mapping[str, Any]) -> dict[str, Any]:
    known = {name: said.get(name) for name in ("documentCount", "updatedAt", "license", "source")}
    described = dataset.manifest
    return {
        "id": described.id,
        "name": described.name,
        "description": described.description,
        "status": "ready",
        "defaultTopK": described.default_top_k,
        "metadataPath": str(described.metadata),
        "indexPath": str(described.index),
        "chunkCount": dataset.facts.count,
        "model": dataset.model,
        **{name: value for name, value in known.items() if value and type(value) in (str, int)},
    }


def _said_in(paths: Mapping[str, Any], id_: str) -> Mapping[str, Any]:
    try:
        return manifest.said_in(paths[id_])
    except (BadDatasetError, KeyError):  # it has just been replaced
        return {}
