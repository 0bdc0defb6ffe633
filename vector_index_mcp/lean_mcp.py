"""The MCP package without what a server on a pipe or a socket never needs.

Importing mcp 2.3 also loads what encrypts the state of dialogues (cryptography, 7 MB and 10 ms)
and what streams answers over HTTP (sse_starlette, with all of uvicorn, 3 MB and 30 ms).
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType

# What mcp takes from where, while it is imported and never after.
_UNUSED = {
    "cryptography.exceptions": ("InvalidTag",),
    "cryptography.hazmat.primitives.ciphers.aead": ("AESGCM",),
    "cryptography.hazmat.primitives.hashes": ("SHA256",),
    "cryptography.hazmat.primitives.kdf.hkdf": ("HKDF",),
    "sse_starlette": ("EventSourceResponse",),
}


def load() -> None:
    """Import the MCP server, unless that has happened already.

    An mcp that wants more of these modules than is known here gets them whole.
    """
    if "mcp" in sys.modules:
        return
    try:
        with _standing_in():
            import mcp.server.mcpserver  # noqa: F401
    except (ImportError, AttributeError, TypeError):
        for name in [name for name in sys.modules if name.partition(".")[0] == "mcp"]:
            del sys.modules[name]


@contextmanager
def _standing_in() -> Iterator[None]:
    """Let classes that do nothing take the place of `_UNUSED` for a while."""
    absent = [name for name in _UNUSED if name not in sys.modules]
    for name in absent:
        sys.modules[name] = stand_in = ModuleType(name)
        vars(stand_in).update({unused: type(unused, (Exception,), {}) for unused in _UNUSED[name]})
    try:
        yield
    finally:
        for name in absent:
            del sys.modules[name]


class NoState:
    """The codec of a server whose tools ask nothing back: it has no state to seal or to accept."""

    def seal(self, payload: bytes) -> str:
        """Fail: nothing here calls it."""
        raise NotImplementedError("no tool of this server asks its client back")

    def unseal(self, token: str) -> bytes:
        """Refuse whatever a client claims to have been given."""
        from mcp.server.request_state import InvalidRequestState

        raise InvalidRequestState("not of this server")
