"""The commands of the datasets. Their imports stand where they are needed."""

import argparse
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from vector_index_mcp.background.endpoint import endpoint_of
from vector_index_mcp.console.datasets.arguments import (
    ADD,
    DELETE,
    EXPORT,
    HEALTH,
    INDEX,
    PACK,
    SEARCH,
    SERVE,
    VALIDATE,
    resolved,
)
from vector_index_mcp.console.terminal import write
from vector_index_mcp.foreign import visible
from vector_index_mcp.serving.sets import DATASETS

if TYPE_CHECKING:
    from vector_index_mcp.datasets.dataset import Dataset
    from vector_index_mcp.datasets.registry import LoadError
    from vector_index_mcp.settings import Settings


def run(
    line: argparse.Namespace, host_options: Sequence[str], settings: "Callable[[], Settings]"
) -> int:
    """Run a command; its exit status.

    Args:
        line: As the grammar has it.
        host_options: Of the command that starts a service.
        settings: Reads them.

    Raises:
        VectorIndexError: If it cannot be done.
    """
    if line.command in (INDEX, EXPORT):
        from vector_index_mcp.console.datasets import making

        return {INDEX: making.index, EXPORT: making.export}[line.command](line, settings())
    if line.command in (PACK, ADD, DELETE):
        from vector_index_mcp.console.datasets import keeping

        return keeping.COMMANDS[line.command](line)
    if line.command in (SEARCH, VALIDATE, HEALTH):
        from vector_index_mcp.console.datasets import bridge

        return bridge.COMMANDS[line.command](line, settings())
    root = resolved(line.folder)
    if line.command == SERVE:
        from vector_index_mcp.background import relay

        return relay.run(endpoint_of(DATASETS, root), host_options)
    return _list(root, settings(), as_json=line.json)


def _list(root: Path, settings: "Settings", *, as_json: bool) -> int:
    """Print what can be served and what cannot; 1 if there is anything of the latter."""
    import anyio

    from vector_index_mcp.serving.loading import load_datasets

    async def looked() -> "tuple[Sequence[Dataset], Sequence[LoadError]]":
        registry = load_datasets(root, settings).registry
        await registry.follow()
        ready = await registry.ready()
        return [ready[id_] for id_ in sorted(ready)], await registry.errors()

    ready, errors = anyio.run(looked)
    if as_json:
        found = [
            {
                "id": dataset.manifest.id,
                "name": dataset.manifest.name,
                "documents": dataset.facts.count,
                "dimensions": dataset.facts.dimension,
                "model": dataset.model,
            }
            for dataset in ready
        ]
        failed = [{"manifest": str(each.path), "error": each.error} for each in errors]
        write(json.dumps({"datasets": found, "errors": failed}, indent=2))
        return 1 if errors else 0
    if not ready and not errors:
        write(f"There is no dataset in {visible(str(root))}")
    for dataset in ready:
        count, model = dataset.facts.count, dataset.model
        write(visible(f"{dataset.manifest.id}  {count} texts  {model}  {dataset.manifest.name}"))
    for each in errors:
        write(f"{visible(str(each.path))}: {visible(each.error, keep=chr(10))}")
    return 1 if errors else 0
