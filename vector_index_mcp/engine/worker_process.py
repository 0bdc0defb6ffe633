"""The embedding worker as a process: what it is started as, and what its parent does with it.

Imports no numpy: who only hands its frames on needs none.
"""

from collections.abc import Awaitable, Callable
from typing import Protocol

import anyio.abc

WORKER_MODULE = "vector_index_mcp.engine.worker"
WORKER_ENVIRONMENT = {
    # PyTorch's threads otherwise spin while they wait for each other, which on a busy machine eats
    # the time they wait for: with another process on one of 2 cores, 7 to 20 chunks/s instead of
    # 46 to 54 (measured). Alone on the machine it makes no difference.
    "OMP_WAIT_POLICY": "PASSIVE",
    # PyTorch and its oneDNN keep what they compiled for the last 1,024 shapes of matrices, 1.5 MB
    # each in bfloat16, and hardly two batches have the same number of tokens. A layer multiplies
    # four to six shapes; with eight kept, 1,600 texts of all lengths leave a worker at 469 MB, with
    # 128 at 668 MB, in the same time (measured).
    "LRU_CACHE_CAPACITY": "8",
    "ONEDNN_PRIMITIVE_CACHE_CAPACITY": "8",
    # Matrices of megabytes come and go with each layer. If glibc maps each anew, as a service has
    # it do for itself, the system clears their pages again and again: 66 chunks/s in 498 MB, of
    # which half is the kernel's time, beside 112 in 640 to 720 MB (measured; 32 MiB is its most).
    "MALLOC_MMAP_THRESHOLD_": str(32 << 20),
    "MALLOC_TRIM_THRESHOLD_": str(128 << 20),
    "HF_HUB_DISABLE_PROGRESS_BARS": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "TOKENIZERS_PARALLELISM": "false",
    "TRANSFORMERS_VERBOSITY": "error",
}
LONGEST_HEADER_BYTES = 65_536
"""Of what it says; the numbers behind that are not counted."""
ENDED = "ended"
"""The event with which whoever shares a worker says the exit `status` of one that is gone."""


class Worker(Protocol):
    """A process of one's own, or a share in one that others use as well."""

    @property
    def pid(self) -> int:
        """Of the process that holds the model."""

    @property
    def returncode(self) -> int | None:
        """None as long as it can be used."""

    @property
    def stdin(self) -> anyio.abc.ByteSendStream | None:
        """Takes requests."""

    @property
    def stdout(self) -> anyio.abc.ByteReceiveStream | None:
        """Gives events and answers; ends with the process, or when it is left."""

    def terminate(self) -> None:
        """Have the process end, whoever else uses it: it hangs."""

    def kill(self) -> None:
        """Be rid of it at once; a process that others use goes on for them."""

    async def wait(self) -> int:
        """Its exit status, once it is gone."""

    async def aclose(self) -> None:
        """Give back what it took here."""


StartWorker = Callable[..., Awaitable[Worker]]
"""As `processes.children.start`: this package's `engine` knows no processes but its worker.

It is given the name of a module of this package, the arguments of its `main`, and as `environment`
what to add to the variables.
"""
