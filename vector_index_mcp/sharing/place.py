"""The endpoint of the shared worker's host. Imports the standard library only."""

import hashlib
import os
import sys
from pathlib import Path

from vector_index_mcp import __version__
from vector_index_mcp.background.endpoint import Endpoint, endpoint_of

TOOL_SET = "embedding"
"""Stands for a tool set in the host's record, although it is none and speaks no MCP."""
_HASH_CHARS = 8
# Variables that decide which model is found and how it is computed. Services share a worker only if
# all of these are equal.
_SHAPING = (
    *("HF_", "HUGGINGFACE_", "HUGGING_FACE_", "TRANSFORMERS_", "SENTENCE_TRANSFORMERS_"),
    *("TORCH", "PYTORCH_", "CUDA_", "OMP_", "MKL_", "LD_", "DYLD_"),
)
_NAMED = frozenset(
    {
        *("HOME", "USERPROFILE", "XDG_CACHE_HOME", "PYTHONPATH", "PYTHONHOME"),
        *("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"),
    }
)


def endpoint() -> Endpoint:
    """The endpoint at which services of this version, installation and environment share workers.

    Raises:
        ProjectError: If the user has no runtime folder of their own.
    """
    shaping = {
        name: value
        for name, value in os.environ.items()
        if name.startswith(_SHAPING) or name.upper() in _NAMED
    }
    known = repr((__version__, sys.prefix, sorted(shaping.items())))
    digest = hashlib.sha256(known.encode("utf-8", "surrogateescape")).hexdigest()[:_HASH_CHARS]
    return named(f"embedding-worker-{digest}")


def named(name: str) -> Endpoint:
    """The endpoint with this name, which `ps` shows.

    Raises:
        ProjectError: If the user has no runtime folder of their own.
    """
    return endpoint_of(TOOL_SET, Path(name))
