"""Reads the keys of servers from settings, or from files that contain nothing else."""

import re
from pathlib import Path

from vector_index_mcp.engine.table_server import Server
from vector_index_mcp.errors import SettingsError
from vector_index_mcp.indexing.place import Remote
from vector_index_mcp.settings import Settings

_LONGEST_KEY_BYTES = 10_000
_KEY = re.compile(rb"[!-~]+")


def key_of(key: str, file: str) -> str:
    """The key in `file`, or `key` if no file is set.

    Raises:
        OSError: If the file cannot be read.
        SettingsError: If the file does not contain exactly one key.
    """
    if not file:
        return key
    path = Path(file).expanduser()
    if not path.is_file():  # reading a pipe could wait forever
        raise SettingsError(f"{path} is not a file: name one that holds the key alone")
    with path.open("rb") as opened:
        held = opened.read(_LONGEST_KEY_BYTES + 1).strip()
    if len(held) > _LONGEST_KEY_BYTES or not _KEY.fullmatch(held):
        raise SettingsError(f"{path} does not hold a key alone: remove all else from it")
    return held.decode()


def remote_of(settings: Settings) -> Remote:
    """The settings for an index that does not lie on this machine; none for one that does.

    Raises:
        OSError: If the file with the key cannot be read.
        SettingsError: If that file does not contain exactly one key.
    """
    from vector_index_mcp.engine.store.reach import is_local  # LanceDB

    if is_local(settings.lancedb_uri):
        return Remote()
    key = key_of(settings.lancedb_key, settings.lancedb_key_file)
    server = Server(key, settings.lancedb_region, settings.lancedb_host)
    return Remote(settings.remote_owner, server)
