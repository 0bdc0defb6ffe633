"""The commands that pack, unpack and delete whole datasets: `pack`, `add` and `delete`."""

import argparse
import sys
from collections.abc import Callable, Mapping

import anyio

from vector_index_mcp.console.datasets.arguments import ADD, DELETE, PACK, USUAL_FOLDER
from vector_index_mcp.console.datasets.looking import manifest_of
from vector_index_mcp.console.terminal import confirmed, write
from vector_index_mcp.console.typed import resolved
from vector_index_mcp.datasets import keeping, manifest, packing, table
from vector_index_mcp.datasets.conversion import prove
from vector_index_mcp.datasets.refusal import BadDatasetError
from vector_index_mcp.errors import SettingsError, VectorIndexError, counted, sentence
from vector_index_mcp.foreign import visible


def _pack(line: argparse.Namespace) -> int:
    folder = resolved(line.folder)
    if not folder.exists() and (known := resolved(USUAL_FOLDER) / line.folder).is_dir():
        folder = known  # the argument is the id of a dataset
    try:
        found = manifest.read(folder / manifest.NAME, folder, folder)
        if table.is_ours(found.index):
            anyio.run(prove, found.index)
        target = resolved(line.file or f"{found.id}{packing.ENDING}")
        if target.exists():
            raise SettingsError(f"{target} exists already; name another file")
        count = packing.pack(folder, target)
    except (BadDatasetError, OSError) as error:
        raise VectorIndexError(f"{folder} cannot be packed: {sentence(error)}") from error
    write(visible(f"{target}: {counted(count, 'file')}, {target.stat().st_size:,} bytes"))
    return 0


def _add(line: argparse.Namespace) -> int:
    root = resolved(line.output)
    try:
        folder = packing.add(resolved(line.file), root)
    except (BadDatasetError, OSError) as error:
        raise VectorIndexError(f"{line.file} cannot be added: {sentence(error)}") from error
    try:
        found = manifest.read(folder / manifest.NAME, root, root)
        if table.is_ours(found.index):
            anyio.run(prove, found.index)
    except BadDatasetError as error:
        write(visible(f"{folder} was added, but cannot be served: {error}"), sys.stderr)
        return 1
    write(visible(f"Added {found.id} ({found.name}) as {folder}"))
    return 0


def _delete(line: argparse.Namespace) -> int:
    root = resolved(line.output)
    path = manifest_of(line)
    question = f"Delete the dataset in {visible(str(path.parent))}?"
    unasked = "nothing was deleted; give --yes to delete without being asked"
    if not (line.yes or confirmed(question, unasked)):
        write("Nothing was deleted.")
        return 1
    left = keeping.delete(path, root, root.parent)
    write(visible(f"Deleted {line.dataset_id}"))
    if left is not None:
        write(visible(f"Other files stay in {left}"))
    return 0


COMMANDS: Mapping[str, Callable[[argparse.Namespace], int]] = {
    PACK: _pack,
    ADD: _add,
    DELETE: _delete,
}
"""The functions that run the commands, by name."""
