"""Lists the datasets of a service as JSON, for the HTTP interface, the page and the tools."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import anyio.to_thread

from vector_index_mcp.datasets import keeping

if TYPE_CHECKING:  # the service imports LanceDB
    from vector_index_mcp.datasets.dataset import Dataset
    from vector_index_mcp.datasets.refusal import LoadError
    from vector_index_mcp.datasets.service import Datasets


async def listed(datasets: "Datasets") -> list[dict[str, Any]]:
    """Return all datasets as the contract lists them; those that cannot be served with an error."""
    served, errors = await datasets.listed()
    said = await anyio.to_thread.run_sync(keeping.manifests, datasets.registry.root)
    # A manifest that has just been replaced may say nothing.
    found = [_described(each, said.get(each.manifest.id, {})) for each in served]
    found += map(failed, errors)
    return sorted(found, key=lambda each: str(each["id"]))


def ready(dataset: "Dataset") -> dict[str, Any]:
    """Return the public JSON of a dataset that is served."""
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
    """Return the public JSON of a dataset that cannot be served."""
    return {
        "id": error.id,
        "name": error.id,
        "description": "Failed to load dataset",
        "status": "error",
        "error": error.error,
        "manifestPath": str(error.path),
    }


def _described(dataset: "Dataset", fields: Mapping[str, Any]) -> dict[str, Any]:
    names = ("documentCount", "updatedAt", "license", "source")
    known = {name: fields.get(name) for name in names}
    return {
        **ready(dataset),
        "metadataPath": str(dataset.manifest.metadata),
        "indexPath": str(dataset.manifest.index),
        **{name: value for name, value in known.items() if value and type(value) in (str, int)},
    }
