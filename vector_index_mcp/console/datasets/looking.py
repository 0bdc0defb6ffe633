"""The commands that only read datasets: `list`, `info`, `search` and `validate`."""

import argparse
import json
import logging
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio.to_thread

from vector_index_mcp.console.awaiting import awaited
from vector_index_mcp.console.datasets.arguments import CHECK, INFO, LIST, SEARCH
from vector_index_mcp.console.terminal import write
from vector_index_mcp.console.typed import resolved
from vector_index_mcp.datasets import keeping, manifest, registry
from vector_index_mcp.datasets.arguments import Asked, WrongArguments, asked
from vector_index_mcp.datasets.dataset import Dataset
from vector_index_mcp.datasets.finding import lack_of
from vector_index_mcp.datasets.manifest import Manifest
from vector_index_mcp.datasets.refusal import BadDatasetError, LoadError, Refusal
from vector_index_mcp.datasets.service import Found
from vector_index_mcp.errors import QueryError, UnknownError, VectorIndexError, counted
from vector_index_mcp.files.plain import content_of
from vector_index_mcp.files.removal import size_of
from vector_index_mcp.foreign import as_json, visible
from vector_index_mcp.serving.loading import load_datasets

if TYPE_CHECKING:
    from vector_index_mcp.settings import Settings

_HOW_TO_GET_ONE = (
    "`datasets list FOLDER` looks in another folder, `datasets index SOURCE --dataset-id ID` makes "
    "a dataset from a folder of texts, and `datasets add FILE` unpacks one that `datasets pack` "
    "wrote"
)
_LARGEST_METADATA_BYTES = 100_000_000
_MOST_SNIPPET_CHARS = 300  # four lines of a terminal
_LABELS = {
    "id": "Id",
    "name": "Name",
    "description": "About",
    "documentCount": "Documents",
    "chunkCount": "Chunks",
    "model": "Model",
    "embeddingDimensions": "Dimensions",
    "source": "Made of",
    "sourceRevision": "Revision",
    "license": "License",
    "createdAt": "Made",
    "updatedAt": "Changed",
    "path": "Folder",
    "bytes": "Bytes",
}


def _list(line: argparse.Namespace, settings: "Settings") -> int:
    """Print which datasets can be served and which cannot; returns 1 if any cannot."""
    root = resolved(line.folder)
    ready, errors = awaited(partial(_found_in, root, settings))
    if line.json:
        found = [
            {
                "id": dataset.manifest.id,
                "name": dataset.manifest.name,
                "texts": dataset.facts.count,
                "dimensions": dataset.facts.dimension,
                "model": dataset.model,
            }
            for dataset in ready
        ]
        failed = [{"manifest": str(each.path), "error": each.error} for each in errors]
        write(json.dumps({"datasets": found, "errors": failed}, indent=2))
        return 1 if errors else 0
    if not ready and not errors:
        write(visible(f"there is no dataset in {root}" if root.is_dir() else lack_of(root)))
        write(_HOW_TO_GET_ONE, sys.stderr)
    for dataset in ready:
        texts, model = counted(dataset.facts.count, "text"), dataset.model
        write(visible(f"{dataset.manifest.id}  {texts}  {model}  {dataset.manifest.name}"))
    for each in errors:
        write(f"{visible(str(each.path))}: {visible(in_words(each.error), keep=chr(10))}")
    return 1 if errors else 0


def in_words(error: str) -> str:
    """Return an error as a sentence; the contract has faults of a manifest as a JSON array."""
    try:
        faults = json.loads(error)
        return "; ".join(
            f"{'.'.join(map(str, each['path'])) or 'the manifest'}: {each['message']}"
            for each in faults
        )
    except (ValueError, LookupError, TypeError):
        return error


def _silence() -> None:
    """Keep the registry from logging each bad dataset; `list` prints them itself."""
    logging.getLogger(registry.__name__).setLevel(logging.ERROR)


async def _found_in(
    root: Path, settings: "Settings"
) -> tuple[Sequence[Dataset], Sequence[LoadError]]:
    _silence()
    datasets = load_datasets(root, settings)
    await datasets.registry.follow()
    return await datasets.listed()


def manifest_of(line: argparse.Namespace) -> Path:
    """Return the path of the manifest of the dataset that a command is about.

    Raises:
        SettingsError: If several folders have a dataset with its id.
        UnknownError: If there is no such dataset; lists those that exist, or says what is wrong
            with the manifest in the folder of that name.
    """
    root = resolved(line.output)
    try:
        return keeping.manifest_of(root, line.dataset_id)
    except UnknownError as error:
        if (bad := keeping.unreadable(root, line.dataset_id)) is not None:
            raise UnknownError(f"{bad[0]}: {in_words(bad[1])}") from error
        known = ", ".join(sorted(keeping.manifests(root))) or "no datasets"
        raise UnknownError(f"{error} in {root}; that folder has {known}") from error


def _info(line: argparse.Namespace, _: "Settings") -> int:
    """Print the contents of a dataset's manifest, its folder and its size."""
    path = manifest_of(line)
    facts = {**manifest.said_in(path), "path": str(path.parent), "bytes": size_of(path.parent)}
    if line.json:
        write(as_json(facts, indent=2))
        return 0
    for name, label in _LABELS.items():
        if (value := facts.get(name)) not in (None, ""):
            words = f"{value:,}" if isinstance(value, int) else str(value)
            write(f"{label:<11} {visible(words)}")
    return 0


def _search(line: argparse.Namespace, settings: "Settings") -> int:
    """Print the texts of datasets that answer a question best; returns 1 if there are none.

    Raises:
        QueryError: If the question or a dataset makes no sense.
    """
    given = {"dataset": line.dataset_id, "query": " ".join(line.words), "topK": line.k}
    try:
        wanted = asked(given)
        is_one = wanted.ids == (line.dataset_id,)
        found = (_found_in_one if is_one else _found_in_several)(line, wanted, settings)
    except (BadDatasetError, Refusal, WrongArguments) as error:
        raise QueryError(str(error)) from error
    for number, result in enumerate(found.results, start=1):
        snippet = " ".join(result.snippet.split())
        if len(snippet) > _MOST_SNIPPET_CHARS:
            snippet = f"{snippet[:_MOST_SNIPPET_CHARS].rstrip()}…"
        place = result.path if is_one else f"{result.dataset}: {result.path}"
        write(visible(f"{number}. {result.title} ({result.score:.2f})  {place}"))
        write(f"   {visible(snippet)}")
    for note in found.notes if found.results else [*found.notes, "nothing found"]:
        write(visible(note), sys.stderr)
    return 0 if found.results else 1


def _found_in_one(line: argparse.Namespace, wanted: Asked, settings: "Settings") -> Found:
    root = resolved(line.output)
    described = manifest.read(manifest_of(line), root, root.parent)
    found, _ = awaited(partial(load_datasets(root, settings).search_one, described, wanted))
    return found


def _found_in_several(line: argparse.Namespace, wanted: Asked, settings: "Settings") -> Found:
    _silence()
    return awaited(partial(load_datasets(resolved(line.output), settings).search_once, wanted))


def _check(line: argparse.Namespace, settings: "Settings") -> int:
    """Print what is wrong with a dataset; returns 1 if anything is."""
    root = resolved(line.output)
    path = manifest_of(line)
    problems, dataset = awaited(partial(_examined, path, root, settings))
    facts: Mapping[str, Any] = {}
    if dataset is not None:
        found = dataset.facts
        facts = {"texts": found.count, "dimensions": found.dimension, "model": dataset.model}
    if line.json:
        answer = {"id": line.dataset_id, "valid": not problems, "errors": problems, **facts}
        write(as_json(answer, indent=2))
        return 1 if problems else 0
    for problem in problems:
        write(f"{line.dataset_id}: {visible(problem, keep=chr(10))}")
    if not problems:
        size = f"{counted(facts['texts'], 'text')}, {counted(facts['dimensions'], 'dimension')}"
        write(visible(f"{line.dataset_id}: can be served ({size}, {facts['model']})"))
    return 1 if problems else 0


async def _examined(
    path: Path, root: Path, settings: "Settings"
) -> tuple[list[str], Dataset | None]:
    try:
        described = manifest.read(path, root, root.parent)
        dataset = await load_datasets(root, settings).registry.opened(described)
    except (BadDatasetError, VectorIndexError) as error:
        return [str(error)], None
    try:
        problems = await dataset.examined(manifest.said_in(path))
        # Whoever serves a table needs no metadata, so nobody has read the file yet.
        fault = await anyio.to_thread.run_sync(_fault_of_metadata, described)
        return [*problems, *filter(None, [fault])], dataset
    except VectorIndexError as error:
        return [str(error)], dataset
    finally:
        dataset.release()


def _fault_of_metadata(described: Manifest) -> str:
    """Return what is wrong with the metadata beside a table; empty if nothing is."""
    path = described.metadata
    try:
        if not described.index.is_dir() or path.stat().st_size > _LARGEST_METADATA_BYTES:
            return ""
        values = json.loads(content_of(path, _LARGEST_METADATA_BYTES))
    except (OSError, ValueError, RecursionError) as error:
        return f"{path.name} cannot be read ({error}); make the dataset again"
    return "" if isinstance(values, dict) else f"{path.name} is no JSON object"


COMMANDS: "Mapping[str, Callable[[argparse.Namespace, Settings], int]]" = {
    LIST: _list,
    INFO: _info,
    CHECK: _check,
    SEARCH: _search,
}
"""The functions that run the commands, by name."""
