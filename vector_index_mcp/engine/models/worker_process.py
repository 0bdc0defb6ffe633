"""The embedding worker's process as its parent sees it: its environment and its interface.

Imports no numpy: `sharing`, which only passes frames on, does not need it.
"""

from collections.abc import Awaitable, Callable
from typing import Protocol

import anyio.abc

WORKER_MODULE = "vector_index_mcp.engine.models.worker"
WORKER_ENVIRONMENT = {
    # Without this, PyTorch's threads spin while they wait for each other, and so take processor
    # time from each other on a busy machine. Measured with another process on one of 2 cores: 46 to
    # 54 chunks/s with this, 7 to 20 without. On an idle machine it makes no difference.
    "OMP_WAIT_POLICY": "PASSIVE",
    # PyTorch and its oneDNN each cache the kernels of the last 1,024 shapes of matrices, each of
    # 1.5 MB in bfloat16, and hardly two batches have the same number of tokens. A layer multiplies
    # four to six shapes. Measured: 1,600 texts of all lengths leave a worker at 469 MB with eight
    # cached, and at 668 MB with 128, in the same time.
    "LRU_CACHE_CAPACITY": "8",
    "ONEDNN_PRIMITIVE_CACHE_CAPACITY": "8",
    # Each layer allocates and frees matrices of megabytes. If glibc maps each of them anew, as it
    # does in a service, the kernel clears their pages every time. Measured: 66 chunks/s in 498 MB,
    # half of it kernel time, instead of 112 chunks/s in 640 to 720 MB. glibc allows 32 MiB at most.
    "MALLOC_MMAP_THRESHOLD_": str(32 << 20),
    "MALLOC_TRIM_THRESHOLD_": str(128 << 20),
    "HF_HUB_DISABLE_PROGRESS_BARS": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "TOKENIZERS_PARALLELISM": "false",
    "TRANSFORMERS_VERBOSITY": "error",
}
LONGEST_HEADER_BYTES = 65_536
"""The greatest length of a frame's JSON line, without the numbers behind it."""
ENDED = "ended"
"""The event with which the shared host reports the exit `status` of a worker that has ended."""


class Worker(Protocol):
    """A worker process of our own, or our connection to one that is shared."""

    @property
    def pid(self) -> int:
        """The id of the process that holds the model."""

    @property
    def returncode(self) -> int | None:
        """The exit status; None as long as the worker can be used."""

    @property
    def stdin(self) -> anyio.abc.ByteSendStream | None:
        """The stream for requests."""

    @property
    def stdout(self) -> anyio.abc.ByteReceiveStream | None:
        """The stream of events and answers; it ends with the process or the connection."""

    def terminate(self) -> None:
        """End the process because it hangs, even if others use it."""

    def kill(self) -> None:
        """Stop using the process at once; it ends unless others use it."""

    async def wait(self) -> int:
        """Wait for the end, and return the exit status."""

    async def aclose(self) -> None:
        """Release what the connection uses in this process."""


StartWorker = Callable[..., Awaitable[Worker]]
"""Starts a worker. `processes.children.start` is one; the engine itself starts no processes.

Its arguments are the name of a module of this package, the arguments of that module's `main`, and
`environment`: variables to add.
"""
