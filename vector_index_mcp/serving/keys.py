"""Keys of servers: from a setting, or from a file that holds nothing else."""

import re
from pathlib import Path

from vector_index_mcp.engine.table_server import Server
from vector_index_mcp.errors import SettingsError
from vector_index_mcp.indexing.place import Remote
from vector_index_mcp.settings import Settings

_LONGEST_KEY_BYTES = 10_000
_KEY = re.compile(rb"[!-~]+")


def key_of(key: str, file: str) -> str:
    """The key that is set, or that stands in the file that is.

    Raises:
        OSError: If the file cannot be read.
        SettingsError: If it holds no key.
    """
    if not file:
        return key
    path = Path(file).expanduser()
    if not path.is_file():  # a pipe would keep us waiting
        raise SettingsError(f"{path} is not a file")
    with path.open("rb") as opened:
        held = opened.read(_LONGEST_KEY_BYTES + 1).strip()
    if len(held) > _LONGEST_KEY_BYTES or not _KEY.fullmatch(held):
        raise SettingsError(f"{path} does not hold a key alone")
    return held.decode()


def remote_of(settings: Settings) -> Remote:
    """What is set about an index that does not lie on this machine.

    Raises:
        OSError: If the file of the key cannot be read.
        SettingsError: If it holds no key.
    """
    key = key_of(settings.lancedb_key, settings.lancedb_key_file)
    server = Server(key, settings.lancedb_region, settings.lancedb_host)
    return Remote(settings.remote_owner, server)
