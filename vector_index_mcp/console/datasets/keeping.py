"""The commands that send, take and delete whole datasets."""

import argparse
import shutil
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import anyio

from vector_index_mcp.console.datasets.arguments import ADD, DELETE, PACK, resolved
from vector_index_mcp.console.terminal import write
from vector_index_mcp.datasets import finding, manifest, packing, table
from vector_index_mcp.datasets.conversion import prepare
from vector_index_mcp.datasets.refusal import BadDatasetError
from vector_index_mcp.errors import SettingsError, UnknownError, VectorIndexError
from vector_index_mcp.foreign import visible


def _pack(line: argparse.Namespace) -> int:
    folder = resolved(line.folder)
    try:
        found = manifest.read(folder / manifest.NAME, folder, folder)
        target = resolved(line.file or f"{found.id}{packing.ENDING}")
        if target.exists():
            raise SettingsError(f"{target} is there already; name another file")
        count = packing.pack(folder, target)
    except (BadDatasetError, OSError) as error:
        raise VectorIndexError(f"{folder} cannot be packed: {error}") from error
    write(visible(f"{target}: {count} files, {target.stat().st_size:,} bytes"))
    return 0


def _add(line: argparse.Namespace) -> int:
    root = resolved(line.output)
    try:
        folder = packing.add(resolved(line.file), root)
    except (BadDatasetError, OSError) as error:
        raise VectorIndexError(f"{line.file} is not added: {error}") from error
    try:
        found = manifest.read(folder / manifest.NAME, root, root)
        if table.is_ours(found.index):
            anyio.run(prepare, found, folder)
    except BadDatasetError as error:
        write(visible(f"{folder} is there, and cannot be served: {error}"), sys.stderr)
        return 1
    write(visible(f"Added {found.id} ({found.name}) as {folder}"))
    return 0


def _delete(line: argparse.Namespace) -> int:
    root = resolved(line.output)
    folders = dict(map(_id_and_folder, finding.find(root).paths))
    folder = folders.get(line.dataset_id)
    if folder is None or folder == root:
        raise UnknownError(f"Dataset '{line.dataset_id}' does not exist")
    if not line.yes:
        if not sys.stdin.isatty():
            raise SettingsError("nothing was deleted; give --yes to delete without being asked")
        write(f"Delete {visible(str(folder))} and all that lies in it? [y/N] ", end="")
        if input().strip().lower() not in {"y", "yes"}:
            write("Nothing was deleted.")
            return 1
    shutil.rmtree(folder)
    write(visible(f"Deleted {folder}"))
    return 0


def _id_and_folder(path: Path) -> tuple[str, Path]:
    folder = path.parent
    try:
        return manifest.read(path, folder, folder).id, folder
    except BadDatasetError:
        return "", folder


COMMANDS: Mapping[str, Callable[[argparse.Namespace], int]] = {
    PACK: _pack,
    ADD: _add,
    DELETE: _delete,
}
"""By its name, what runs a command."""
