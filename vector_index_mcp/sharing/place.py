"""Where the shared worker is met. Standard library only."""

import hashlib
import os
import sys
from pathlib import Path

from vector_index_mcp import __version__
from vector_index_mcp.background.endpoint import Endpoint, endpoint_of

TOOL_SET = "embedding"
"""What its record calls what it serves. It is no tool set, and no MCP is spoken there."""
_HASH_CHARS = 8
# What decides which model is found and how it is computed: whoever has others meets elsewhere.
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
    """Where services of this version, installation and environment share a worker.

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
    """Where the one is met that is called `name`, as `ps` shows it.

    Raises:
        ProjectError: As above.
    """
    return endpoint_of(TOOL_SET, Path(name))
