"""What belongs to the user and must stay as it is, whatever a project does."""

import hashlib
import os
from pathlib import Path

import pyarrow as pa

from vector_index_mcp.engine.store.reach import Reach
from vector_index_mcp.engine.store.tables import connect


async def own_tables(folder, *names):
    """Tables that the user has made with LanceDB in `folder`."""
    db = await connect(Reach(str(folder)))
    for name in names:
        await db.create_table(name, pa.table({"notes": [f"of {name}", "worth a year"]}))
    db.close()


def state_of(folder):
    """Every entry below `folder`: what it is, where it leads, which bytes it has."""
    found = {}
    for here, folders, files in os.walk(folder):
        for name in (*folders, *files):
            path = Path(here, name)
            found[str(path.relative_to(folder))] = _state(path)
    return found


def _state(path):
    if path.is_symlink():
        return f"link to {path.readlink()}"
    if path.is_file():
        return hashlib.sha256(path.read_bytes()).hexdigest()
    return "folder" if path.is_dir() else "something else"
